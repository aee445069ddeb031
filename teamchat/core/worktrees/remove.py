"""Removes worktrees: their files, git's records of them, and the branch where it has no commits of its own.

The only copy of something is never removed: changes that are not merged, files that no checkpoint records (ignored and
large files, nested repositories), and commits that are on no branch. Such a worktree stays, or with `--force` that part
of it moves.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint.compare import entries
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.git import GitFailed, GitProgram, git_environment
from teamchat.core.checkpoint.linked import refuse_links, unlink
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.refs import refs_below, set_refs
from teamchat.core.checkpoint.restore import KEPT, is_spare
from teamchat.core.checkpoint.shadow import open_shadow
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import SUBMODULE, GitRepository, TreeEntry
from teamchat.core.errors import CheckpointFailed, UsageError
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of, quote
from teamchat.core.worktrees import PlaceTurn
from teamchat.core.worktrees.merging import difference
from teamchat.core.worktrees.records import Opened, Worktree, forget, opened
from teamchat.runners.untrusted.regular_files import read_regular

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_REMOVING = "removing"  # the name of the file beside removed work, until the person is told
_LONGEST_S = 60.0
_MOST_NAMED = 5
_MODULES = "modules"  # git keeps the repositories of a worktree's submodules there, by their names


class Removed(Struct, frozen=True):
    """A worktree that is gone. With `commits` of its own its branch stays.

    `detached` names the new branches of its commits that were on no branch, `kept` the folder with its only copies.
    """

    tree: Worktree
    commits: int
    detached: str | None = None
    kept: Path | None = None


class OnlyThere(Struct, frozen=True):
    """The contents of a worktree that no checkpoint and no branch has: files, and commits that a reflog knows."""

    files: tuple[str, ...] = ()
    commits: int = 0

    @property
    def told(self) -> str:
        """`.env, build/; 2 commits on no branch`; empty where there is nothing."""
        files = ", ".join(self.files[:_MOST_NAMED])
        more = f" and {len(self.files) - _MOST_NAMED} more" if len(self.files) > _MOST_NAMED else ""
        commits = f"{self.commits} commit{'s' * (self.commits > 1)} on no branch" if self.commits else ""
        return printable("; ".join(part for part in (f"{files}{more}", commits) if part))


def need_merged(state: Path, trees: list[Worktree], places: Mapping[str, PlaceTurn]) -> None:
    """Raise `UsageError`, with the losses, where one of them has unmerged changes or files that only it has."""
    lost = not_merged(state, trees)
    commands = [*merge_commands(lost, places)]
    unfit = (name for name in lost if name in places and places[name].unfit)
    commands += [f"teamchat worktrees remove --force {quote(name)}" for name in unfit]
    for tree in trees:
        there = opened(state, tree)
        if tree.member not in lost and isinstance(there, Opened) and (remains := only_there(state, there).told):
            lost[tree.member] = f"only {tree.member}'s worktree {tree.folder} has {remains}; --force moves it"
            commands.append(f"teamchat worktrees remove --force {quote(tree.member)}")
    if lost:
        raise UsageError("; ".join(lost.values()), "\n".join(commands))


def merge_commands(names: Iterable[str], places: Mapping[str, PlaceTurn]) -> tuple[str, ...]:
    """Write the commands that merge the worktrees of those names: one for all that are places of one plan."""
    fit = [name for name in names if name not in places or not places[name].unfit]
    together = [name for name in fit if name in places and not places[name].judged]
    if len(together) < 2:
        return tuple(command_of("teamchat", "merge", name) for name in fit)
    judged = [name for name in fit if name in places and places[name].judged]
    return ("teamchat merge --all", *(command_of("teamchat", "merge", name) for name in judged))


def not_merged(state: Path, trees: list[Worktree]) -> dict[str, str]:
    """List the unmerged changes of each of the worktrees, by its member; fully merged ones are left out."""
    return {tree.member: loss for tree in trees if (loss := _lost(state, tree))}


def only_there(state: Path, there: Opened) -> OnlyThere:
    """Find files and commits that no merge brings and no checkpoint has. Raises `CheckpointFailed`.

    Blocks while git reads the worktree.
    """
    listed = ("ls-files", "--others", "--directory", "--no-empty-directory", "-z")
    take(there.own, state, there.tree.ref("now"))
    with open_shadow(there.own, state, _LONGEST_S) as shadow:
        files = shadow.git(*listed).split(b"\0")[:-1]
    paths = [
        *(readable(os.fsdecode(path)) for path in files),
        *(f"{readable(path)}/" for path in submodules(state, there)),
    ]
    return OnlyThere(tuple(paths), _detached(there)[1])


def submodules(state: Path, there: Opened) -> list[str]:
    """List the submodules fetched in the worktree: their files and commits are in no other place. Blocks."""
    tree = take(there.own, state, there.tree.ref("now")).tree
    links = (path for path, entry in entries(there.own, tree).items() if entry.mode == SUBMODULE)
    fetched = (path for path in links if os.path.lexists(there.tree.folder / path / ".git"))
    return sorted({*fetched, *_modules(there.own.git_dir / _MODULES)})


def _modules(folder: Path) -> Iterator[str]:
    """List the names of the repositories of submodules, also of submodules that are no longer in the files."""
    for place, inner, names in os.walk(folder):
        if "HEAD" in names:
            yield os.path.relpath(place, folder)
            inner.clear()


def remove(state: Path, tree: Worktree) -> Removed:
    """Remove a worktree, but keep its only copies. Raises `CheckpointFailed`.

    Parts that are already gone are not an error.
    """
    home, commits, detached = find_repository(tree.top, state), 0, None
    if isinstance(home, GitRepository) and home.top == tree.top:
        refuse_links(home, tree.branch, tree.folder)  # before anything is moved
    there = opened(state, tree)
    known: Mapping[str, Sequence[TreeEntry]] = {}
    form = "sha1"
    if isinstance(there, Opened):
        detached = _keep_detached(there)
        known, form = _known(state, there), there.home.object_format
    modules = there.own.git_dir / _MODULES if isinstance(there, Opened) else None
    kept_folder = _take_out(state, tree, known, form, modules)
    if isinstance(home, GitRepository) and home.top == tree.top:
        commits = unlink(home, state, tree.folder, tree.branch, tree.start)
        set_refs(home, state, dict.fromkeys(refs_below(home, state, tree.refs)))
    forget(state, tree)
    return Removed(tree, commits, detached, kept_folder)


def _known(state: Path, there: Opened) -> dict[str, list[TreeEntry]]:
    """Collect the entries of each path in the user's files, and in the common tree of the last merge or the making."""
    by_path: dict[str, list[TreeEntry]] = {}
    for tree in (take(there.home, state, there.tree.ref("seen")).tree, there.base):
        for path, entry in entries(there.home, tree).items():
            by_path.setdefault(path, []).append(entry)
    return by_path


def _take_out(
    state: Path, tree: Worktree, known: Mapping[str, Sequence[TreeEntry]], form: str, modules: Path | None
) -> Path | None:
    """Move the folder to the place for kept files, and remove files that are known elsewhere. Returns its remains.

    The repositories of its submodules, which git has in `modules`, move first: whoever is killed has lost none.
    """
    if not tree.made:  # no turn has worked there
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(tree.folder)
        return None
    token = time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(4)
    target = state.resolve() / KEPT / token / tree.folder.name
    try:
        target.parent.mkdir(mode=0o700, parents=True)
        moved = target.with_name(_MODULES)
        with _marked(target.parent), contextlib.suppress(FileNotFoundError):
            if modules and modules.is_dir():
                shutil.move(modules, moved)
            tree.folder.rename(target)
            _remove_known(target, known, form)
            if modules:
                _point_at(modules, moved, target)
    except (OSError, GitFailed) as error:
        raise CheckpointFailed(f"{tree.folder} cannot be moved to {target}: {error}") from error
    return next((place for place in (target, moved) if place.is_dir()), None)


def _point_at(modules: Path, moved: Path, kept: Path) -> None:
    """Let the `.git` files among the kept files name the repositories of submodules in their new place."""
    for place, folders, names in os.walk(kept):
        pointer = Path(place, ".git")
        if ".git" in names and (module := _moved(pointer, modules, moved)):
            pointer.unlink()
            pointer.write_bytes(b"gitdir: " + os.fsencode(module) + b"\n")
            git = GitProgram(moved, git_environment(), _LONGEST_S)
            git("config", "--file", str(module / "config"), "core.worktree", place)
        folders[:] = [name for name in folders if name != ".git"]


def _moved(pointer: Path, modules: Path, to: Path) -> Path | None:
    """Find the new place of the repository that a `.git` file names; None if it was elsewhere."""
    named = read_regular(pointer).removeprefix(b"gitdir: ").strip()
    inside = os.fsdecode(named).partition(f"/{modules.parent.name}/{_MODULES}/")[2]
    module = to / inside
    return module if inside and module.resolve().is_relative_to(to.resolve()) and (module / "HEAD").exists() else None


@contextlib.contextmanager
def _marked(folder: Path) -> Iterator[None]:
    """Mark the things that a removal has taken out, so that the next command names them if this process is killed."""
    marker = folder / _REMOVING
    lock = os.open(f"{marker}.new", _NEW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path(f"{marker}.new").rename(marker)
        yield
        if list(folder.iterdir()) == [marker]:
            marker.unlink()
            _remove_empty(folder)
    finally:
        os.close(lock)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()


def told(gone: Removed) -> None:
    """Let no other command name the kept things, as the person has been told."""
    if gone.kept:
        (gone.kept.parent / _REMOVING).unlink(missing_ok=True)


def left_behind(state: Path) -> list[Path]:
    """List the remains of killed removals; each is returned once."""
    paths: list[Path] = []
    for marker in sorted((state / KEPT).glob(f"*/{_REMOVING}")):
        with contextlib.suppress(OSError):
            lock = os.open(marker, _LOOK)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # else its process is alive
                paths += sorted(place for place in marker.parent.iterdir() if place != marker)
                marker.unlink()
                _remove_empty(marker.parent)
            finally:
                os.close(lock)
    return paths


def _remove_known(top: Path, known: Mapping[str, Sequence[TreeEntry]], form: str) -> None:
    """Remove the files that are as known, and the folders that are empty then; what cannot be removed is kept."""
    for place, _, names, folder in os.fwalk(top, topdown=False, follow_symlinks=False):
        inner = os.path.relpath(place, top)
        for name in (*names, *_links(folder)):
            path = name if inner == "." else f"{inner}/{name}"
            pointer = path == ".git" and stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode)
            with contextlib.suppress(OSError):
                if pointer or is_spare(folder, name, known.get(path, ()), form):
                    os.unlink(name, dir_fd=folder)
        with contextlib.suppress(OSError):
            Path(place).rmdir()


def _links(folder: int) -> Iterator[str]:
    """List links to folders, which `fwalk` does not name as files."""
    for name in os.listdir(folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            yield name


def _git(repository: GitRepository) -> GitProgram:
    return GitProgram(repository.git_dir, git_environment() | {"GIT_DIR": str(repository.git_dir)}, _LONGEST_S)


def _detached(there: Opened) -> tuple[list[str], int]:
    """Find the tips of commits that only a detached HEAD or a reflog has, and count these commits."""
    git, home = _git(there.own), _git(there.home)
    tips, known = set[str](), ["--branches", "--tags", "--remotes", *_reflog(home, "HEAD")]
    with contextlib.suppress(GitFailed):
        tips.add(git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip())
    with contextlib.suppress(GitFailed):
        known.append(home("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip())
    tips.update(_reflog(git, "HEAD"), _reflog(git, f"refs/heads/{there.tree.branch}"))
    lost = git("rev-list", "--no-walk", *sorted(tips), "--not", *known).decode().split() if tips else []
    if not lost:
        return [], 0
    independent = git("merge-base", "--independent", *lost).decode().split()  # commits that no other one leads to
    return independent, int(git("rev-list", "--count", *lost, "--not", *known))


def _reflog(git: GitProgram, ref: str) -> list[str]:
    """List the commits that a reflog names and that are still there."""
    with contextlib.suppress(GitFailed):
        return list(dict.fromkeys(git("rev-list", "--walk-reflogs", "--ignore-missing", ref).decode().split()))
    return []


def _keep_detached(there: Opened) -> str | None:
    """Make a branch of each tip that is on none. Returns their names."""
    made = []
    for tip in _detached(there)[0]:
        made.append(branch := f"{there.tree.branch}-detached-{tip[:12]}")
        try:
            _git(there.own)("-c", f"core.hooksPath={os.devnull}", "update-ref", f"refs/heads/{branch}", tip)
        except GitFailed as failed:
            raise CheckpointFailed(f"the commits of {there.tree.folder} cannot be kept: {failed}") from failed
    return ", ".join(made) or None


def _lost(state: Path, tree: Worktree) -> str | None:
    """Describe the losses of removing a worktree; None if there are none."""
    there = opened(state, tree)
    if isinstance(there, str):
        usable = tree.made and tree.folder.exists()
        return f"{tree.member}'s worktree {tree.folder} cannot be compared: {printable(there)}" if usable else None
    compared = difference(state, there)
    if not compared.changes:
        return None
    files = printable(", ".join(readable(change.path) for change in compared.changes[:5]))
    more = f" and {len(compared.changes) - 5} more" if len(compared.changes) > 5 else ""
    return f"{tree.member} has changes that are not merged: {files}{more} (+{compared.added} \u2212{compared.removed})"
