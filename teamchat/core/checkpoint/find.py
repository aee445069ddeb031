"""The repository that a folder is in, as git itself finds it."""

from __future__ import annotations

import os
import shlex
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from teamchat.core.checkpoint.values import GitRepository, NoRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of
from teamchat.patterns import regex
from teamchat.runners.git_server import find_git
from teamchat.runners.untrusted.regular_files import read_regular

if TYPE_CHECKING:
    from collections.abc import Callable

    from teamchat.core.checkpoint.git import GitFailed

_OWNED = regex(rb"safe\.directory (.+)")
_WRONG = regex(rb"fatal: (bad .*config.*|.*configuration files)")
_MARK = "--teamchat-next"  # rev-parse prints an option that it does not know
_READ = ("HEAD", "config", "config.worktree", "commondir")  # files that git opens before it says where a repository is
_LONGEST_S = 30.0
_LONGEST = 1 << 16  # bytes of a file that names a folder
_NONE = "no git repository"


def find_repository(
    folder: Path, state_folder: Path, stopped: Callable[[], bool] | None = None
) -> GitRepository | NoRepository:
    """Find the repository whose work tree `folder` is in. Its checkpoints are in the state folder.

    `stopped` says whether a person wants the search to end.

    git finds it, so that `safe.directory` and every way to place a repository are what the user knows; `rev-parse` runs
    nothing that a configuration names. A work tree outside the folder of its `.git` (`core.worktree`) does not count:
    a strange repository could name the user's home folder.
    """
    if reason := known_reason(folder):
        return NoRepository(reason, _making(folder) if reason == _NONE else None)
    from teamchat.core.checkpoint.git import GitFailed, GitProgram, git_environment

    asked = ("--show-toplevel", _MARK, "--absolute-git-dir", _MARK, "--git-common-dir", _MARK, "--show-object-format")
    try:
        git = GitProgram(folder, git_environment(users_own=True), _LONGEST_S, stopped=stopped)
        printed = git("rev-parse", *asked)
    except GitFailed as failed:
        return _refusal(folder, failed)
    except CheckpointFailed as failed:
        return NoRepository(str(failed))
    top, own, common, form = (
        os.fsdecode(part).removesuffix("\n") for part in printed.split(os.fsencode(f"\n{_MARK}\n"))
    )
    git_dir, common_dir = Path(own).resolve(), (folder / common).resolve()
    if not _is_in(Path(top), git_dir):
        return NoRepository(f"its repository {git_dir} names another folder as its work tree")
    store = state_folder.resolve() / "checkpoints" / sha256(os.fsencode(common_dir)).hexdigest()[:16]
    return GitRepository(Path(top).resolve(), git_dir, common_dir, store, form.strip())


def why_none(folder: Path) -> NoRepository | None:
    """Say why the folder is in no repository; None where it is in one."""
    repository = find_repository(folder, Path(os.sep))  # no checkpoint of it is looked for
    return repository if isinstance(repository, NoRepository) else None


def known_reason(folder: Path) -> str | None:
    """Say why there is no repository, if git need not be asked, which takes milliseconds."""
    if find_git(os.environ) is None:
        return "git is not installed"
    if not os.path.isdir(folder):  # noqa: PTH112 (False also for a name that is too long)
        return f"there is no folder {folder}"
    real = Path(os.path.realpath(folder))
    signs = (place / name for place in (real, *real.parents) for name in (".git", "HEAD"))  # `HEAD`: of a bare one
    sign = next(filter(os.path.lexists, signs), None)
    return _NONE if sign is None else _waiting(sign)


def _waiting(sign: Path) -> str | None:
    """Say why git would wait for ever: a pipe stands where it reads a file of the repository."""
    own = sign.parent if sign.name == "HEAD" else sign
    if (pointed := _named_in(sign, "gitdir:")) is not None:
        own = sign.parent / pointed
    shared = _named_in(own / "commondir", "")
    folders = [own] if shared is None else [own, own / shared]
    for file in (sign, *(folder / name for folder in folders for name in _READ)):
        if file.exists() and not (file.is_file() or file.is_dir()):
            return f"{file} is no file, and git would wait for what it has; remove it"
    return None


def _named_in(file: Path, word: str) -> str | None:
    """Read the folder that a file of git names; None if the file cannot be read."""
    try:
        return os.fsdecode(read_regular(file, _LONGEST)).removeprefix(word).strip()
    except (OSError, ValueError):
        return None


def _is_in(top: Path, git_dir: Path) -> bool:
    """Whether the `.git` in `top` is, or names, that folder."""
    marked = top / ".git"
    if marked.is_dir():
        return marked.resolve() == git_dir
    pointed = _named_in(marked, "gitdir:")
    return pointed is not None and (top / pointed).resolve() == git_dir


def _refusal(folder: Path, failed: GitFailed) -> NoRepository:
    """Explain what git said when it was asked for the repository around the folder."""
    if b"not a git repository" in failed.told:
        return NoRepository(_NONE, _making(folder))
    if b"must be run in a work tree" in failed.told:
        return NoRepository("no work tree of a git repository")
    if owned := _OWNED.search(failed.told):
        unquoted = "".join(shlex.split(os.fsdecode(owned[1])))  # git quotes a path for a shell where it must be
        trusting = command_of("git", "config", "--global", "--add", "safe.directory", unquoted)
        reason = f"git refuses the repository around {folder}: it belongs to another user"
        return NoRepository(reason, trusting, refused=True)
    if wrong := _WRONG.search(failed.told):
        reason = f"git cannot read its configuration: {printable(os.fsdecode(wrong[1]))}"
        return NoRepository(reason, refused=True)
    return NoRepository(f"git refuses {folder}: {failed}", refused=True)


def _making(folder: Path) -> str:
    return command_of("git", "-C", str(folder), "init")
