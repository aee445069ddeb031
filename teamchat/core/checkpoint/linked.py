"""A linked worktree of a repository, as `git worktree add` makes one, without a program of the repository's choice.

`git worktree add` reads the repository's configuration, which can name hooks and filters. The format is documented
(gitrepository-layout) and small, so it is written here. Every step can be repeated after a process was killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.checkpoint.paths import folders_of
from teamchat.core.checkpoint.shadow import keep_file, open_shadow
from teamchat.core.checkpoint.values import GitRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.core.files.whole_files import write_private
from teamchat.runners.untrusted.regular_files import read_regular

_LONGEST_S = 60.0
_LINKS = ("refs", "packed-refs", "objects")


def linked_at(repository: GitRepository, state_folder: Path, folder: Path) -> GitRepository | None:
    """Return the linked worktree of the repository at `folder`; None if the folder is not one, or no longer."""
    linked = find_repository(folder, state_folder)
    ours = isinstance(linked, GitRepository) and linked.top == folder and linked.git_dir == _own(repository, folder)
    return linked if ours and isinstance(linked, GitRepository) else None


def link(repository: GitRepository, state_folder: Path, folder: Path, branch: str) -> str | None:
    """Make `folder` a linked worktree on `branch`, which begins where the HEAD of `repository` is.

    Returns that commit, None before the first one. The index is a copy of that of `repository`. Only the file `.git` is
    written. An existing branch stays where it is. Raises `CheckpointFailed`.
    """
    if (repository.common_dir / "reftable").exists():
        raise CheckpointFailed(f"{repository.common_dir} keeps its refs as reftables; no worktree can be made there")
    with _opened(repository, state_folder, branch, folder) as git:
        own = _own(repository, folder)
        if own.exists():  # left by a killed process; whoever else made it may have put links in it
            shutil.rmtree(own)
        own.mkdir(parents=True)
        start = _commit(git, "HEAD")
        if start and _commit(git, f"refs/heads/{branch}") is None:
            _set_branch(repository, git, branch, start)
        (own / "commondir").write_text("../..\n")
        (own / "gitdir").write_bytes(os.fsencode(folder / ".git") + b"\n")
        (own / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        _copy_index(repository, own)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".git").write_bytes(b"gitdir: " + os.fsencode(own) + b"\n")
        return start


def relink(repository: GitRepository, folder: Path, linked: Path, moved: Path) -> None:
    """Join the work tree at `folder`, which will be at `moved`, with the repository, which may have moved as well.

    `linked` is where the work tree was when it was made or joined last.

    It does the same as `git worktree repair`, and keeps the name that `linked_at` recognises. Raises `OSError`.
    """
    own = _own(repository, moved)
    if (earlier := _own(repository, linked)).exists() and not own.exists():
        earlier.rename(own)
    if own.exists() and folder.exists():
        (own / "gitdir").write_bytes(os.fsencode(moved / ".git") + b"\n")
        (folder / ".git").unlink(missing_ok=True)  # an agent may have made it a link
        write_private(folder / ".git", b"gitdir: " + os.fsencode(own) + b"\n")


def move_on(repository: GitRepository, state_folder: Path, folder: Path, branch: str, start: str | None) -> str | None:
    """Have a work tree whose branch is still at `start` begin at the HEAD of `repository`, with a copy of its index.

    Returns where it begins now: `start` again if its branch has commits. Raises `CheckpointFailed`.
    """
    own = _own(repository, folder)
    with _opened(repository, state_folder, branch, folder) as git:
        now = _commit(git, "HEAD")
        on_it = _names_branch(own / "HEAD", branch)
        if not (on_it and now and _commit(git, f"refs/heads/{branch}") in (start, now, None)):
            return start
        _set_branch(repository, git, branch, now)
        _copy_index(repository, own)
        return now


def unlink(repository: GitRepository, state_folder: Path, folder: Path, branch: str, start: str | None) -> int:
    """Remove the work tree at `folder` with its files, and its branch where that has no commits of its own.

    Returns how many commits only the branch has; then it stays. Raises `CheckpointFailed`.
    """
    with _opened(repository, state_folder, branch, folder) as git:
        commits = _own_commits(git, branch, start)
        if not commits:
            with contextlib.suppress(GitFailed):  # there is none
                git("update-ref", "--no-deref", "-d", f"refs/heads/{branch}")
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(_own(repository, folder))
    return commits


def branches(repository: GitRepository, state_folder: Path) -> set[str]:
    """List the names of all branches. Raises `CheckpointFailed`."""
    with _opened(repository, state_folder) as git:
        listed = git("for-each-ref", "--format=%(refname)", "refs/heads/").decode(errors="replace")
        return {name.removeprefix("refs/heads/") for name in listed.splitlines()}


def _own(repository: GitRepository, folder: Path) -> Path:
    """Return the folder where the repository keeps HEAD and index of the work tree at `folder`."""
    digest = sha256(os.fsencode(folder)).hexdigest()[:12]
    return repository.common_dir / "worktrees" / f"teamchat-{digest}"


def refuse_links(repository: GitRepository, branch: str = "", folder: Path | None = None) -> None:
    """Raise `CheckpointFailed` where a link would lead changes of the `branch` or the work tree elsewhere."""
    heads = [f"refs/heads/{part}" for part in (*folders_of(branch), branch) if part]
    places = [repository.common_dir / name for name in ("refs", "refs/heads", *heads, "packed-refs", "worktrees")]
    for place in (*places, *([_own(repository, folder)] if folder else [])):
        if place.is_symlink():
            raise CheckpointFailed(f"{place} is a link, and no worktree is made or changed through it; remove it")


@contextlib.contextmanager
def _opened(
    repository: GitRepository, state_folder: Path, branch: str = "", folder: Path | None = None
) -> Iterator[GitProgram]:
    """Open a git on the refs and objects of the user's repository, which never reads its configuration.

    It is to change the `branch` and what the repository keeps of the work tree at `folder`. One process at a time has
    it. Raises `CheckpointFailed`.
    """
    refuse_links(repository, branch, folder)
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        users = repository.store.with_name(f"{repository.store.name}.users")
        users.mkdir(mode=0o700, exist_ok=True)
        for name in _LINKS:
            link, to = users / name, repository.common_dir / name
            if not (link.is_symlink() and link.readlink() == to):
                link.unlink(missing_ok=True)
                link.symlink_to(to)
        keep_file(users / "config", (repository.store / "config").read_bytes())
        env = {name: value for name, value in shadow.git.env.items() if name != "GIT_INDEX_FILE"}
        env |= {"GIT_DIR": str(repository.git_dir), "GIT_COMMON_DIR": str(users)}
        yield replace(shadow.git, env=env)


def _commit(git: GitProgram, name: str) -> str | None:
    try:
        return git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    except GitFailed:
        return None


def _own_commits(git: GitProgram, branch: str, start: str | None) -> int:
    if (tip := _commit(git, f"refs/heads/{branch}")) is None:
        return 0
    known = [name for name in (start, _commit(git, "HEAD")) if name and _commit(git, name)]
    return int(git("rev-list", "--count", tip, *(f"^{name}" for name in known)))


def _set_branch(repository: GitRepository, git: GitProgram, branch: str, commit: str) -> None:
    ref = f"refs/heads/{branch}"
    repository.common_dir.joinpath(f"{ref}.lock").unlink(missing_ok=True)
    git("update-ref", "--no-deref", ref, commit)


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
