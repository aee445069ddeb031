"""Removes worktrees: their files, what git keeps of them, and the branch where it has no commits of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.linked import unlink
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.refs import refs_below, set_refs
from teamchat.core.checkpoint.values import GitRepository
from teamchat.core.errors import UsageError
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.core.worktrees.merging import difference
from teamchat.core.worktrees.records import Worktree, forget, opened


class Removed(Struct, frozen=True):
    """A worktree that is gone. With `commits` of its own its branch stays."""

    tree: Worktree
    commits: int


def need_merged(state: Path, trees: list[Worktree]) -> None:
    """Raises `UsageError`, with what would be lost, where one of them has changes that are not merged."""
    if lost := not_merged(state, trees):
        raise UsageError("; ".join(lost.values()), "\n".join(f"teamchat merge {quote(name)}" for name in lost))


def not_merged(state: Path, trees: list[Worktree]) -> dict[str, str]:
    """What would be lost with each of the worktrees, by its member; without those where nothing would."""
    return {tree.member: told for tree in trees if (told := _lost(state, tree))}


def remove(state: Path, tree: Worktree) -> Removed:
    """Remove a worktree with what is not merged. What is gone already is no error. Raises `CheckpointFailed`."""
    home, commits = find_repository(tree.top, state), 0
    if isinstance(home, GitRepository) and home.top == tree.top:
        commits = unlink(home, state, tree.folder, tree.branch, tree.start)
        set_refs(home, state, dict.fromkeys(refs_below(home, state, tree.refs)))
    elif tree.folder.exists():
        shutil.rmtree(tree.folder)
    forget(state, tree)
    return Removed(tree, commits)


def _lost(state: Path, tree: Worktree) -> str | None:
    """What would be lost with a worktree; None where nothing would."""
    there = opened(state, tree)
    if isinstance(there, str):
        usable = tree.made and tree.folder.exists()
        return f"{tree.member}'s worktree {tree.folder} cannot be compared: {printable(there)}" if usable else None
    found = difference(state, there)
    if not found.changes:
        return None
    files = printable(", ".join(readable(change.path) for change in found.changes[:5]))
    more = f" and {len(found.changes) - 5} more" if len(found.changes) > 5 else ""
    return f"{tree.member} has changes that are not merged: {files}{more} (+{found.added} \u2212{found.removed})"
