"""Checkpoints around each turn: what the turn changed in the files, by whatever tool.

A turn in a git work tree has one before its agent starts (complete half a second earlier at most), and one after its
process has ended. Their difference is on the receipt, and undo reverts it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.values import GitRepository, NoRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import fence_key, name_of
from teamchat.core.turn.ahead import Ahead
from teamchat.digests import sha256
from teamchat.runners.file_changes import FileChanges, NoCheckpoint

if TYPE_CHECKING:
    from teamchat.core.turn.turn_tree import Span, TurnTree
    from teamchat.core.worktrees.records import Owner


def refs_of(secret: str) -> str:
    """Where a session keeps its checkpoints. `secret` is its own: stores may share a repository."""
    return f"refs/teamchat/{sha256(secret.encode()).hexdigest()[:12]}"


def owner_of(db: Database, session: int) -> Owner:
    """The session as the owner of its members' worktrees."""
    from teamchat.core.worktrees.records import Owner

    return Owner(session, name_of(db, session), refs_of(fence_key(db, session)))


class WorkTrees(Struct):
    """Takes the checkpoints of the turns of a session. `refs` is of `refs_of`. `ahead` may have begun one already.

    `seen` are the repositories that turns worked in, by their folders.
    """

    ahead: Ahead
    refs: str
    _spans: list[Span] = field(default_factory=list)
    seen: dict[Path, GitRepository] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The state folder."""
        return self.ahead.folder

    def before(self, number: int, cwd: Path, *, writes: bool) -> TurnTree | NoCheckpoint:
        """The work tree of a turn that is about to start. Blocks while git reads it."""
        repository = self.ahead.find(cwd)
        if isinstance(repository, NoRepository):
            return NoCheckpoint(repository.reason)
        from teamchat.core.turn.turn_tree import Span, TurnTree

        self.seen[repository.top] = repository
        span = Span(number, repository.top, writes, time.monotonic())
        self._spans.append(span)
        try:
            taken = self.ahead.before(repository, f"{self.refs}/{number}/before")
        except CheckpointFailed as failed:
            return NoCheckpoint(str(failed))
        return TurnTree(self.ahead, self.refs, self._spans, repository, span, taken.tree, taken)

    def interrupted(self, number: int, cwd: Path) -> FileChanges | NoCheckpoint:
        """What changed since the beginning of a turn whose end nobody saw. Blocks while git reads the work tree."""
        repository = find_repository(cwd)
        if isinstance(repository, NoRepository):
            return NoCheckpoint(repository.reason)
        from teamchat.core.checkpoint.refs import tree_of
        from teamchat.core.turn.turn_tree import Span, TurnTree

        try:
            before = tree_of(repository, self.folder, f"{self.refs}/{number}/before")
        except CheckpointFailed as failed:
            return NoCheckpoint(str(failed))
        if before is None:
            return NoCheckpoint("it was killed before its files were recorded")
        span = Span(number, repository.top, False, 0.0)
        return TurnTree(self.ahead, self.refs, self._spans, repository, span, before).changes(cwd)

    def prune(self, keep_s: float) -> list[str]:
        """Remove old checkpoints of the work trees that turns worked in, once a day. Returns what went wrong."""
        from teamchat.core.checkpoint.refs import prune_daily

        problems = []
        for repository in self.seen.values():
            try:
                prune_daily(repository, self.folder, keep_s)
            except (CheckpointFailed, OSError) as failed:
                problems.append(f"old checkpoints stay: {failed}")
        return problems
