"""A linked worktree of a repository, as `git worktree add` makes one, without a program of the repository's choice.

`git worktree add` reads the repository's configuration, which can name hooks and filters. What it writes is documented
(gitrepository-layout) and small, so it is written here. Every step can be repeated after a process was killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.checkpoint.shadow import Shadow, open_shadow
from teamchat.core.checkpoint.values import GitRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.digests import sha256
from teamchat.runners.regular_files import read_regular

_LONGEST_S = 60.0


def linked_at(repository: GitRepository, folder: Path) -> GitRepository | None:
    """The linked worktree of the repository at `folder`; None if the folder is not one, or no longer."""
    found = find_repository(folder)
    ours = isinstance(found, GitRepository) and found.top == folder and found.git_dir == _own(repository, folder)
    return found if ours and isinstance(found, GitRepository) else None


def link(repository: GitRepository, state_folder: Path, folder: Path, branch: str) -> str | None:
    """Make `folder` a linked worktree on `branch`, which begins where the HEAD of `repository` is.

    Returns that commit, None before the first one. The index is a copy of that of `repository`. Only the file `.git` is
    written. An existing branch stays where it is. Raises `CheckpointFailed`.
    """
    if (repository.common_dir / "reftable").exists():
        raise CheckpointFailed(f"{repository.common_dir} keeps its refs as reftables; no worktree can be made there")
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        own = _own(repository, folder)
        own.mkdir(parents=True, exist_ok=True)
        start = _commit(shadow, "HEAD")
        if start and _commit(shadow, f"refs/heads/{branch}") is None:
            _set_branch(shadow, branch, start)
        (own / "commondir").write_text("../..\n")
        (own / "gitdir").write_bytes(os.fsencode(folder / ".git") + b"\n")
        (own / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        _copy_index(repository, own)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".git").write_bytes(b"gitdir: " + os.fsencode(own) + b"\n")
        return start


def move_on(repository: GitRepository, state_folder: Path, folder: Path, branch: str, start: str | None) -> str | None:
    """Have a work tree whose branch is still at `start` begin at the HEAD of `repository`, with a copy of its index.

    Returns where it begins now: `start` again, where its branch has got commits. Raises `CheckpointFailed`.
    """
    own = _own(repository, folder)
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        now = _commit(shadow, "HEAD")
        on_it = _names_branch(own / "HEAD", branch)
        if not (on_it and now and _commit(shadow, f"refs/heads/{branch}") in (start, now, None)):
            return start
        _set_branch(shadow, branch, now)
        _copy_index(repository, own)
        return now


def unlink(repository: GitRepository, state_folder: Path, folder: Path, branch: str, start: str | None) -> int:
    """Remove the work tree at `folder` with its files, and its branch where that has no commits of its own.

    Returns how many commits only the branch has; then it stays. Raises `CheckpointFailed`.
    """
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        commits = _own_commits(shadow, branch, start)
        if not commits:
            _drop(shadow, f"refs/heads/{branch}")
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(_own(repository, folder))
    return commits


def branches(repository: GitRepository, state_folder: Path) -> set[str]:
    """The names of all branches. Raises `CheckpointFailed`."""
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        listed = shadow.git("for-each-ref", "--format=%(refname)", "refs/heads/").decode(errors="replace")
        return {name.removeprefix("refs/heads/") for name in listed.splitlines()}


def set_refs(repository: GitRepository, state_folder: Path, refs: dict[str, str | None]) -> None:
    """Set refs of teamchat to trees, and remove those with None, all at once. Raises `CheckpointFailed`."""
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        known = _all_refs(shadow)
        lines = [f"update {ref} {tree}\n" for ref, tree in refs.items() if tree]
        lines += [f"delete {ref}\n" for ref, tree in refs.items() if tree is None and ref in known]
        for ref in refs:  # a killed git may have left its locks
            repository.common_dir.joinpath(f"{ref}.lock").unlink(missing_ok=True)
        shadow.git("update-ref", "--no-deref", "--stdin", given="".join(lines).encode())


def _all_refs(shadow: Shadow) -> set[str]:
    return set(shadow.git("for-each-ref", "--format=%(refname)", "refs/teamchat/").decode().splitlines())


def _own(repository: GitRepository, folder: Path) -> Path:
    """What the repository keeps of the work tree at `folder`: its HEAD and its index."""
    digest = sha256(os.fsencode(folder)).hexdigest()[:12]
    return repository.common_dir / "worktrees" / f"teamchat-{digest}"


def _users(shadow: Shadow) -> GitProgram:
    """A git that has the HEAD of the user's work tree."""
    own = {"GIT_DIR": str(shadow.repository.git_dir), "GIT_COMMON_DIR": str(shadow.folder)}
    return replace(shadow.git, env={**shadow.git.env, **own})


def _commit(shadow: Shadow, name: str) -> str | None:
    try:
        return _users(shadow)("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    except GitFailed:
        return None


def _own_commits(shadow: Shadow, branch: str, start: str | None) -> int:
    if (tip := _commit(shadow, f"refs/heads/{branch}")) is None:
        return 0
    known = [name for name in (start, _commit(shadow, "HEAD")) if name and _commit(shadow, name)]
    return int(_users(shadow)("rev-list", "--count", tip, *(f"^{name}" for name in known)))


def _set_branch(shadow: Shadow, branch: str, commit: str) -> None:
    ref = f"refs/heads/{branch}"
    shadow.repository.common_dir.joinpath(f"{ref}.lock").unlink(missing_ok=True)
    shadow.git("update-ref", "--no-deref", ref, commit)


def _drop(shadow: Shadow, ref: str) -> None:
    with contextlib.suppress(GitFailed):  # there is none
        shadow.git("update-ref", "--no-deref", "-d", ref)


def _copy_index(repository: GitRepository, own: Path) -> None:
    """Copy the index and, if it is split, the file with its shared part."""
    for shared in repository.git_dir.glob("sharedindex.*"):
        _copy(shared, own / shared.name)
    index = repository.git_dir / "index"
    if index.exists():
        _copy(index, own / "index")


def _copy(file: Path, to: Path) -> None:
    new = to.with_name(f"{to.name}.new")
    shutil.copyfile(file, new)
    new.replace(to)


def _names_branch(head: Path, branch: str) -> bool:
    """Whether a HEAD, which an agent may have replaced by anything, names the branch."""
    with contextlib.suppress(OSError, ValueError):
        return read_regular(head) == os.fsencode(f"ref: refs/heads/{branch}\n")
    return False
