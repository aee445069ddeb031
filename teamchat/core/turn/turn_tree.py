"""The work tree of a turn: what changed in its files since the turn began."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from threading import Event, Timer

from msgspec import Struct

from teamchat.core.checkpoint.compare import changes_and_lines, left_out_changes
from teamchat.core.checkpoint.paths import is_within, readable
from teamchat.core.checkpoint.take import Begun, end_and_begin, end_turn
from teamchat.core.checkpoint.values import Checkpoint, CheckpointLimits, GitRepository, Lines, PathChange, What
from teamchat.core.errors import CheckpointFailed
from teamchat.runners.untrusted.file_changes import FileChange, FileChanges, NoCheckpoint

MOST_LISTED = 1_000  # Changed files on a receipt; the checkpoints have all.
_NOT_NAMED = ("private", "output")  # paths left out for these reasons are named only if they changed
SLOW_S = 240.0  # Seconds. The receipt mentions a checkpoint that took at least as long.


LONG_S = 1.0


@contextmanager
def telling(slow: Callable[[bool], None]) -> Iterator[None]:
    """Tell when a look at the files in the block takes over a second, and when it is over."""
    told = Event()

    def tell() -> None:
        told.set()
        slow(False)

    timer = Timer(LONG_S, tell)
    timer.daemon = True
    with suppress(RuntimeError):  # the system starts no more threads
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.is_alive():
            timer.join()
        if told.is_set():
            slow(True)


class TurnSpan(Struct, eq=False):
    """The time of a turn's or a check's work in a work tree; `name` is the name of its checkpoints.

    A check has number 0.
    """

    number: int
    name: str
    top: Path
    writes: bool
    began: float
    ended: float = float("inf")


class TurnTree(Struct, frozen=True):
    """The work tree of one turn."""

    folder: Path
    """The state folder."""
    refs: str
    limits: Callable[[], CheckpointLimits]
    """Says how long a look at the files may take."""
    spans: Sequence[TurnSpan]
    """The spans of all turns."""
    repository: GitRepository
    span: TurnSpan
    before: str
    """The tree of its checkpoint before the turn."""
    begun: Begun | None = None
    keep: Callable[[Begun], None] | None = None
    """Keeps the checkpoint after the turn for work that follows at once."""
    slow: Callable[[bool], None] = lambda _over: None
    """As in `WorkTrees.before`."""

    def changes(self, cwd: Path) -> FileChanges | NoCheckpoint:
        """List the changes since the turn began, with paths relative to `cwd`. Blocks while git reads the work tree."""
        top, turn = self.repository.top, f"{self.refs}/{self.span.name}"
        try:
            with telling(self.slow):
                after = self._after(f"{turn}/after", f"{turn}/before")
            same = after.tree == self.before
            touched = {} if same else left_out_changes(self.repository, self.before, after.tree)
            listed = [] if same else list(self._listed(after, touched, cwd))
        except CheckpointFailed as failed:
            return NoCheckpoint(str(failed))
        finally:
            self.span.ended = time.monotonic()
        both = [self.begun.checkpoint, after] if self.begun else [after]
        left_out = (path.path for taken in both for path in taken.left_out if path.why not in _NOT_NAMED)
        return FileChanges(
            str(top),
            self.before,
            after.tree,
            tuple(islice(listed, MOST_LISTED)),
            max(0, len(listed) - MOST_LISTED),
            tuple(sorted({*map(readable, (*left_out, *touched))})),
            self._others(),
            next(filter(None, map(slowness, both)), None),
        )

    def _after(self, ref: str, began: str) -> Checkpoint:
        if self.keep is None:
            return end_turn(self.repository, self.folder, ref, began, self.limits())
        ended = end_and_begin(self.repository, self.folder, ref, began, self.limits())
        self.keep(ended)
        return ended.checkpoint

    def _others(self) -> tuple[int, ...]:
        """List the turns that may write and ran in this work tree at the same time."""
        own = self.span
        return tuple(
            other.number
            for other in self.spans
            if other is not own and other.writes and other.top == own.top and other.ended > own.began
        )

    def _listed(self, after: Checkpoint, touched: Mapping[str, What], cwd: Path) -> Iterator[FileChange]:
        changed, lines = changes_and_lines(self.repository, self.before, after.tree)
        whats: dict[str, What] = {change.path: self._what(change, after) for change in changed}
        for path, what in sorted({**touched, **whats}.items()):
            count = lines.get(path, Lines(None, None))
            shown = readable(os.path.relpath(self.repository.top / path, cwd.resolve()))
            yield FileChange(shown, what, count.added, count.removed)

    def _what(self, change: PathChange, after: Checkpoint) -> What:
        """Say what happened to a path. A path that one of the checkpoints left out was there all the time."""
        taken = self.begun.checkpoint if self.begun else None
        lacks = taken if change.old is None else after if change.new is None else None
        places = {omitted.path for omitted in lacks.left_out} if lacks else set()
        return "changed" if is_within(change.path, places) else change.what


def slowness(taken: Checkpoint) -> str | None:
    """Say that a checkpoint took long, and name its largest files; None if it did not."""
    if taken.seconds < SLOW_S:
        return None
    largest = ", ".join(f"{readable(path)} ({size >> 20} MB)" for path, size in taken.largest)
    return f"recording the files took {taken.seconds:.0f} s; the largest: {largest or 'none is new'}"
