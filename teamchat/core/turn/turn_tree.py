"""The work tree of a turn: what changed in its files since the turn began."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint.compare import changes_and_lines
from teamchat.core.checkpoint.ignored import RULES, ignored_in
from teamchat.core.checkpoint.paths import is_within, readable
from teamchat.core.checkpoint.values import Checkpoint, GitRepository, Lines, PathChange
from teamchat.core.errors import CheckpointFailed
from teamchat.core.turn.ahead import Ahead
from teamchat.runners.file_changes import FileChange, FileChanges, Kind, NoCheckpoint

MOST_LISTED = 1_000  # changed files on a receipt; the checkpoints have all
SLOW_S = 240.0  # a checkpoint that takes longer is told


class Span(Struct, eq=False):
    """When a turn was at work in a work tree."""

    number: int
    top: Path
    writes: bool
    began: float
    ended: float = float("inf")


class TurnTree(Struct, frozen=True):
    """The work tree of one turn. `before` names the tree that it had before the turn, `spans` are of all turns."""

    ahead: Ahead
    refs: str
    spans: Sequence[Span]
    repository: GitRepository
    span: Span
    before: str
    taken: Checkpoint | None = None

    def changes(self, cwd: Path) -> FileChanges | NoCheckpoint:
        """What changed since, with paths relative to `cwd`. Blocks while git reads the work tree."""
        top = self.repository.top
        try:
            after = self.ahead.after(self.repository, f"{self.refs}/{self.span.number}/after")
            same = after.tree == self.before
            found = [] if same else list(self._listed(after, cwd))
        except CheckpointFailed as failed:
            return NoCheckpoint(str(failed))
        finally:
            self.span.ended = time.monotonic()
        return FileChanges(
            str(top),
            self.before,
            after.tree,
            tuple(islice(found, MOST_LISTED)),
            max(0, len(found) - MOST_LISTED),
            tuple(sorted({readable(one.path) for taken in (self.taken, after) if taken for one in taken.left_out})),
            self._others(),
            next(filter(None, (_slow(taken) for taken in (self.taken, after) if taken)), None),
        )

    def _others(self) -> tuple[int, ...]:
        """The turns that may write and ran in the same work tree meanwhile."""
        own = self.span
        return tuple(
            other.number
            for other in self.spans
            if other is not own and other.writes and other.top == own.top and other.ended > own.began
        )

    def _listed(self, after: Checkpoint, cwd: Path) -> Iterator[FileChange]:
        """The changes, without files that are only no longer ignored by git."""
        found, lines = changes_and_lines(self.repository, self.before, after.tree)
        added = [change.path for change in found if change.old is None]
        rules = any(change.path.rpartition("/")[2] == RULES for change in found)
        ignored = ignored_in(self.repository, self.ahead.folder, self.before, added) if rules else set()
        for change in found:
            if change.path not in ignored:
                count = lines.get(change.path, Lines(None, None))
                path = readable(os.path.relpath(self.repository.top / change.path, cwd.resolve()))
                yield FileChange(path, self._what(change, after), count.added, count.removed)

    def _what(self, change: PathChange, after: Checkpoint) -> Kind:
        """What happened to a path. What one of the checkpoints left out was there all the time."""
        lacks = self.taken if change.old is None else after if change.new is None else None
        places = {one.path for one in lacks.left_out} if lacks else set()
        return "changed" if is_within(change.path, places) else change.what


def _slow(taken: Checkpoint) -> str | None:
    if taken.seconds < SLOW_S:
        return None
    largest = ", ".join(f"{readable(path)} ({size >> 20} MB)" for path, size in taken.largest)
    return f"recording the files took {taken.seconds:.0f} s; the largest: {largest or 'none is new'}"
