"""Makes the worktree of a member from the user's work tree in its present state, uncommitted changes included.

A worktree with unmerged changes stays unchanged. Another one gets the user's changes since then.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, count
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.checkpoint.compare import changes, entries
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.linked import branches, link, linked_at, move_on
from teamchat.core.checkpoint.paths import folders_of
from teamchat.core.checkpoint.refs import tree_of
from teamchat.core.checkpoint.restore import Restore, restore
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import SUBMODULE, GitRepository, NoRepository, PathChange, TreeEntry
from teamchat.core.errors import CheckpointFailed, NotTrusted, UnknownName, UsageError
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.core.worktrees.records import (
    Opened,
    Owner,
    Worktree,
    branch_name,
    find,
    folder_for,
    keep,
    member_key,
    opened,
)


def ready(state: Path, owner: Owner, member: str, cwd: Path, *, refresh: bool = True) -> Path:
    """Make the member's worktree ready, and find in it the folder that `cwd` is in the user's. Blocks while git works.

    Without `refresh` an existing one stays unchanged. Raises `UsageError` outside of a git work tree, `NotTrusted`
    where a link in the worktree leads elsewhere, and `CheckpointFailed`.
    """
    home = find_repository(cwd, state)
    if isinstance(home, NoRepository):
        what = "mend that" if home.refused else "make a repository"
        raise UsageError(
            f"{member} cannot have a worktree in {cwd}: {home.reason}; there, "
            f'set workspace = "shared" in the team file, or {what}',
            home.hint,
        )
    tree = find(state, owner.session, member) or _new(state, owner, member, home)
    if tree.top != home.top:
        raise UsageError(
            f"{member}'s worktree is one of {tree.top}, and it works in {home.top} now",
            f"teamchat worktrees remove {quote(tree.member)}",
        )
    if not (tree.made and tree.folder.exists()):
        _fill(state, tree, home)
    elif refresh:
        _refresh(state, tree, home)
    return _inside(tree, home, cwd)


def place(state: Path, session: int, member: str, cwd: Path) -> Path | None:
    """Find where `ready` would have that member work; None without a worktree. Nothing is made or read of git."""
    tree = find(state, session, member)
    there = tree and tree.made and Path(os.path.realpath(cwd)).is_relative_to(tree.top)
    return placed(tree.folder, tree.top, cwd) if tree and there else None


def placed(folder: Path, top: Path, place: Path) -> Path:
    """Find a place of the work tree `top` in the worktree `folder`."""
    return folder / Path(os.path.realpath(place)).relative_to(top)


def empty_submodules(state: Path, session: int, member: str) -> list[str]:
    """List the submodules that the user has fetched and the member's worktree has not. Raises `CheckpointFailed`."""
    tree = find(state, session, member)
    home = find_repository(tree.top, state) if tree else None
    if tree is None or not isinstance(home, GitRepository) or not (seen := tree_of(home, state, tree.ref("seen"))):
        return []
    modes = ((path, entry.mode) for path, entry in entries(home, seen).items())
    return [path for path, mode in modes if mode == SUBMODULE and not os.path.lexists(tree.folder / path / ".git")]


def _new(state: Path, owner: Owner, member: str, home: GitRepository) -> Worktree:
    branch = free_name(branch_name(owner.name, member), branches(home, state))
    folder = folder_for(state, owner.session, member, home.top)
    refs = f"{owner.refs}/worktrees/{member_key(member)}"
    return keep(state, Worktree(owner.session, owner.name, member, branch, home.top, folder, refs))


def free_name(name: str, taken: Collection[str]) -> str:
    """Find a free name for a branch: the name, or one with numbers behind its parts, that git allows beside `taken`.

    A branch cannot also be a folder of branches: beside `a` there is no `a/b`.
    """
    folders = {folder for other in taken for folder in folders_of(other)}
    parts, free = name.split("/"), ""
    for place, part in enumerate(parts, 1):
        numbered = chain((f"{free}{part}",), (f"{free}{part}-{number}" for number in count(2)))
        refused = {*taken, *folders} if place == len(parts) else taken
        free = next(path for path in numbered if path not in refused) + "/"
    return free.rstrip("/")


def _fill(state: Path, tree: Worktree, home: GitRepository) -> None:
    """Make everything, also parts that a killed process had begun: no turn can have worked there."""
    tree = keep(state, replace(tree, made=False))
    if tree.folder.exists():
        shutil.rmtree(tree.folder)
    start = link(home, state, tree.folder, tree.branch)
    wanted = entries(home, take(home, state, tree.ref("seen")).tree)
    own = linked_at(home, state, tree.folder)
    if own is None:
        raise CheckpointFailed(f"git does not find the worktree that was made in {tree.folder}")
    write_files(own, state, wanted, {})
    take(own, state, tree.ref("base"))
    keep(state, replace(tree, start=start, made=True))


def _refresh(state: Path, tree: Worktree, home: GitRepository) -> None:
    """Bring a worktree that has no changes of its own to where the user's work tree is now."""
    there = usable(state, tree)
    now = take(there.own, state, tree.ref("now")).tree
    seen = take(home, state, tree.ref("seen"), also=changed_paths(there, now)).tree
    if unmerged(there, now, seen):
        return
    wanted = {change.path: change.new for change in _files(changes(home, now, seen))}
    start = move_on(home, state, tree.folder, tree.branch, tree.start)
    if wanted or now != there.base:
        write_files(there.own, state, wanted, entries(home, now))
        take(there.own, state, tree.ref("base"))
    if start != tree.start:
        keep(state, replace(tree, start=start))


def need_worktree(state: Path, session: int, session_name: str, member: str) -> Worktree:
    """Find the worktree of that member. Raises `UnknownName` where it has none in that session."""
    worktree = find(state, session, member)
    if worktree is None:
        raise UnknownName(f"{member} has no worktree in session {session_name}", "teamchat worktrees")
    return worktree


def changed_paths(there: Opened, now: str) -> set[str]:
    """Return the paths that the member has changed, by the tree `now` of its worktree.

    The user's files at these paths are recorded, whatever git ignores or only the user may read: a change of what the
    user's tree lacks would look like one that both have made.
    """
    return set() if now == there.base else {change.path for change in changes(there.home, there.base, now)}


def unmerged(there: Opened, now: str, seen: str) -> tuple[PathChange, ...]:
    """List the member's changes, by the tree `now` of its worktree, that the user's tree `seen` does not have."""
    if now == there.base:
        return ()
    users = entries(there.home, seen)
    changed = _files(changes(there.home, there.base, now))
    return tuple(change for change in changed if users.get(change.path) != change.new)


def usable(state: Path, tree: Worktree) -> Opened:
    """Open the worktree with its repository. Raises `UsageError` where it cannot be used."""
    there = opened(state, tree)
    if isinstance(there, str):
        raise UsageError(
            f"{tree.member}'s worktree cannot be used: {printable(there)}",
            f"teamchat worktrees remove --force {quote(tree.member)}",
        )
    return there


def _files(found: tuple[PathChange, ...]) -> Iterator[PathChange]:
    """Leave out submodules, whose work trees are of other repositories."""
    for change in found:
        if all(side is None or side.mode != SUBMODULE for side in (change.old, change.new)):
            yield change


def write_files(
    own: GitRepository, state: Path, wanted: Mapping[str, TreeEntry | None], known: Mapping[str, TreeEntry | None]
) -> None:
    """Write the `wanted` files in a worktree that has the `known` ones. Raises `CheckpointFailed`."""
    for path, entry in wanted.items():
        if entry and entry.mode == SUBMODULE:  # git takes an empty folder for one that is not fetched
            (own.top / path).mkdir(parents=True, exist_ok=True)
    restore(state, [Restore(own, known, wanted)])


def _inside(tree: Worktree, home: GitRepository, cwd: Path) -> Path:
    inside = placed(tree.folder, home.top, cwd)
    inside.mkdir(parents=True, exist_ok=True)
    if (real := os.path.realpath(inside)) != str(inside):
        moved = f"{tree.member}'s folder in its worktree was {inside}, and now is {real}"
        raise NotTrusted(printable(moved), f"teamchat worktrees remove --force {quote(tree.member)}")
    return inside
