"""Changes that an undo of turns in a worktree leaves in the user's files, since they were merged after the turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint.compare import changes, entries
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.refs import tree_of
from teamchat.core.conversation.differences import known_changes
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.turns import Turn
from teamchat.core.worktrees.records import Opened, all_of, opened
from teamchat.runners.untrusted.file_changes import FileChanges


class MergedChanges(Struct, frozen=True):
    """The paths of the user's files that have changes of these turns of a member.

    `last`: the last merge of the member's worktree brought all of them in, so that its undo removes them.
    """

    member: str
    paths: tuple[str, ...]
    turns: tuple[int, ...]
    last: bool


def merged_since(state: Path, session: int, turns: Sequence[Turn]) -> Iterator[MergedChanges]:
    """Find the merged changes of the turns, for each readable worktree of the session. Blocks while git reads."""
    changed = [(turn, known) for turn in turns if (known := known_changes(turn))]
    for tree in all_of(state, session):
        its = [(turn, known) for turn, known in changed if known.top == str(tree.folder)]
        there = opened(state, tree) if its else "no turn worked there"
        if isinstance(there, str):
            continue
        try:
            if merged := _merged(state, there, its):
                yield merged
        except CheckpointFailed:
            continue  # its checkpoints are gone, which the plan of the files says


def _merged(state: Path, there: Opened, its: Sequence[tuple[Turn, FileChanges]]) -> MergedChanges | None:
    if its[0][1].before == there.base:  # nothing was merged since
        return None
    known, last = entries(there.home, there.base), _of_last_merge(state, there)
    paths: dict[str, None] = {}
    turns = []
    for turn, recorded in its:
        made = changes(there.home, recorded.before, recorded.after)
        if merged := [change.path for change in made if known.get(change.path) == change.new]:
            paths |= dict.fromkeys(merged)
            turns.append(turn.number)
    if not turns:
        return None
    return MergedChanges(there.tree.member, tuple(map(readable, sorted(paths))), tuple(turns), paths.keys() <= last)


def _of_last_merge(state: Path, there: Opened) -> frozenset[str]:
    """Find the paths that the last merge of the worktree changed in the user's files."""
    before, after = (tree_of(there.home, state, there.tree.ref(f"merged/{name}")) for name in ("before", "after"))
    if before is None or after is None:
        return frozenset()
    return frozenset(change.path for change in changes(there.home, before, after))
