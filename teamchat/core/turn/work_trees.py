"""Checkpoints around each turn: what the turn changed in the files, by whatever tool.

A turn in a git work tree has one before its agent starts (complete half a second earlier at most), and one after its
process has ended. Their difference is on the receipt, and undo reverts it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct, field

from teamchat.core.checkpoint.compare import changes_and_lines
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.ignored import RULES, ignored_in
from teamchat.core.checkpoint.paths import is_within, readable
from teamchat.core.checkpoint.refs import prune_daily, tree_of
from teamchat.core.checkpoint.values import Checkpoint, GitRepository, Lines, NoRepository, PathChange
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import fence_key, name_of
from teamchat.core.turn.ahead import Ahead
from teamchat.core.worktrees.records import Owner
from teamchat.digests import sha256
from teamchat.runners.file_changes import FileChange, FileChanges, Kind, NoCheckpoint

MOST_LISTED = 1_000  # changed files on a receipt; the checkpoints have all
SLOW_S = 240.0  # a checkpoint that takes longer is told


def refs_of(secret: str) -> str:
    """Where a session keeps its checkpoints. `secret` is its own: stores may share a repository."""
    return f"refs/teamchat/{sha256(secret.encode()).hexdigest()[:12]}"


def owner_of(db: Database, session: int) -> Owner:
    """The session as the owner of its members' worktrees."""
    return Owner(session, name_of(db, session), refs_of(fence_key(db, session)))


class WorkTrees(Struct):
    """Takes the checkpoints of the turns of a session. `refs` is of `refs_of`. `ahead` may have begun one already."""

    ahead: Ahead
    refs: str
    _spans: list[_Span] = field(default_factory=list)
    _seen: dict[Path, GitRepository] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The state folder."""
        return self.ahead.folder

    def before(self, number: int, cwd: Path, *, writes: bool) -> TurnTree | NoTree:
        """The work tree of a turn that is about to start. Blocks while git reads it."""
        repository = self.ahead.find(cwd)
        if isinstance(repository, NoRepository):
            return NoTree(NoCheckpoint(repository.reason))
        self._seen[repository.top] = repository
        span = _Span(number, repository.top, writes, time.monotonic())
        self._spans.append(span)
        try:
            taken = self.ahead.before(repository, f"{self.refs}/{number}/before")
        except CheckpointFailed as failed:
            return NoTree(NoCheckpoint(str(failed)))
        return TurnTree(self, repository, span, taken.tree, taken)

    def interrupted(self, number: int, cwd: Path) -> FileChanges | NoCheckpoint:
        """What changed since the beginning of a turn whose end nobody saw. Blocks while git reads the work tree."""
        repository = find_repository(cwd)
        if isinstance(repository, NoRepository):
            return NoCheckpoint(repository.reason)
        try:
            before = tree_of(repository, self.folder, f"{self.refs}/{number}/before")
        except CheckpointFailed as failed:
            return NoCheckpoint(str(failed))
        if before is None:
            return NoCheckpoint("it was killed before its files were recorded")
        return TurnTree(self, repository, _Span(number, repository.top, False, 0.0), before).changes(cwd)

    def prune(self, keep_s: float) -> list[str]:
        """Remove old checkpoints of the work trees that turns worked in, once a day. Returns what went wrong."""
        problems = []
        for repository in self._seen.values():
            try:
                prune_daily(repository, self.folder, keep_s)
            except (CheckpointFailed, OSError) as failed:
                problems.append(f"old checkpoints stay: {failed}")
        return problems

    def others(self, span: _Span) -> tuple[int, ...]:
        """The turns that may write and ran in the same work tree during a span."""
        return tuple(
            other.number
            for other in self._spans
            if other is not span and other.writes and other.top == span.top and other.ended > span.began
        )


class _Span(Struct, eq=False):
    """When a turn was at work in a work tree."""

    number: int
    top: Path
    writes: bool
    began: float
    ended: float = float("inf")


class NoTree(Struct, frozen=True):
    """A turn whose files cannot be compared."""

    why: NoCheckpoint

    def changes(self, _cwd: Path) -> NoCheckpoint:
        return self.why


class TurnTree(Struct, frozen=True):
    """The work tree of one turn. `before` names the tree that it had before the turn."""

    trees: WorkTrees
    repository: GitRepository
    span: _Span
    before: str
    taken: Checkpoint | None = None

    def changes(self, cwd: Path) -> FileChanges | NoCheckpoint:
        """What changed since, with paths relative to `cwd`. Blocks while git reads the work tree."""
        top = self.repository.top
        try:
            after = self.trees.ahead.after(self.repository, f"{self.trees.refs}/{self.span.number}/after")
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
            self.trees.others(self.span),
            next(filter(None, (_slow(taken) for taken in (self.taken, after) if taken)), None),
        )

    def _listed(self, after: Checkpoint, cwd: Path) -> Iterator[FileChange]:
        """The changes, without files that are only no longer ignored by git."""
        found, lines = changes_and_lines(self.repository, self.before, after.tree)
        added = [change.path for change in found if change.old is None]
        rules = any(change.path.rpartition("/")[2] == RULES for change in found)
        ignored = ignored_in(self.repository, self.trees.folder, self.before, added) if rules else set()
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
