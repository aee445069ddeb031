"""Checkpoints around each turn: its changes in the files, by whatever tool.

A turn in a git work tree has one before its agent starts, and one after its process has ended. Their difference is on
the receipt, and undo reverts it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.values import CheckpointLimits, GitRepository, NoRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import fence_key, name_of
from teamchat.runners.child.supervisor import Stopper
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint

if TYPE_CHECKING:
    from teamchat.core.checkpoint.take import Begun
    from teamchat.core.turn.turn_tree import TurnSpan, TurnTree
    from teamchat.core.worktrees.records import Owner


def refs_of(secret: str) -> str:
    """Name the refs of a session's checkpoints. `secret` is the session's own: stores may share a repository."""
    return f"refs/teamchat/{sha256(secret.encode()).hexdigest()[:12]}"


def owner_of(db: Database, session: int) -> Owner:
    """Return the session as the owner of its members' worktrees."""
    from teamchat.core.worktrees.records import Owner

    return Owner(session, name_of(db, session), refs_of(fence_key(db, session)))


AT_ONCE_S = 2.0  # Seconds between two works in line that can share one checkpoint.


class _Newest(Struct, frozen=True):
    """The newest checkpoint, which work that follows or begins at the same time can share, and its time."""

    top: Path
    begun: Begun
    at: float


class WorkTrees(Struct):
    """Takes the checkpoints of a session's turns. `folder` is the state folder, `refs` comes from `refs_of`.

    A request to `stopper` ends a running look at the files. `seen` has the repositories that turns worked in, by their
    folders. `refused` is the last one that git did not read.
    """

    folder: Path
    refs: str
    stopper: Stopper = field(default_factory=Stopper)
    _spans: list[TurnSpan] = field(default_factory=list)
    seen: dict[Path, GitRepository] = field(default_factory=dict)
    refused: NoRepository | None = None
    _newest: _Newest | None = None
    _begins: Lock = field(default_factory=Lock)

    def before(
        self,
        name: str,
        cwd: Path,
        *,
        number: int = 0,
        writes: bool = False,
        in_line: bool = False,
        slow: Callable[[bool], None] = lambda _over: None,
    ) -> TurnTree | NoCheckpoint:
        """Take the checkpoint before a turn, or a check, and return its work tree. Blocks while git reads it.

        Its checkpoints get the name `name`. A check has no number. For work that is `in_line`, the checkpoint at its
        end serves as the beginning of work that follows at once, and works that begin at the same time share one.
        `slow` is called by another thread if a look takes over a second, and again, with True, when it is over.
        """
        limits = self.limits()
        repository = find_repository(cwd, self.folder, limits.stopped)
        if isinstance(repository, NoRepository):
            self.refused = repository if repository.refused else self.refused
            return NoCheckpoint(repository.reason)
        from teamchat.core.checkpoint.take import begin_turn, begin_with
        from teamchat.core.turn.turn_tree import TurnSpan, telling

        self.seen[repository.top] = repository
        span = TurnSpan(number, name, repository.top, writes, time.monotonic())
        self._spans.append(span)
        ref, keep = f"{self.refs}/{name}/before", partial(self._keep, repository.top)
        taken = None
        try:
            with telling(slow), self._begins if in_line else nullcontext():
                taken = self._just_taken(repository.top) if in_line else None
                begun = taken or begin_turn(repository, self.folder, ref, limits)
                if in_line and not taken:
                    keep(begun)
            if taken:
                begin_with(repository, self.folder, taken, ref)
        except CheckpointFailed as failed:
            return NoCheckpoint(str(failed))
        tree = self._tree(repository, span, begun.checkpoint.tree, begun)
        return replace(tree, keep=keep if in_line else None, slow=slow)

    def _keep(self, top: Path, begun: Begun) -> None:
        self._newest = _Newest(top, begun, time.monotonic())

    def _just_taken(self, top: Path) -> Begun | None:
        newest = self._newest
        fits = newest and newest.top == top and time.monotonic() - newest.at < AT_ONCE_S
        return newest.begun if newest and fits else None

    def limits(self) -> CheckpointLimits:
        """Return the limits of a look at the files: it ends with the next request to stop."""
        asked = self.stopper.asked
        return CheckpointLimits(stopped=lambda: self.stopper.asked > asked)

    def interrupted(self, name: str, cwd: Path) -> FileChanges | NoCheckpoint:
        """List what changed since a turn or a check began whose end nobody saw. Blocks while git looks."""
        repository = find_repository(cwd, self.folder)
        if isinstance(repository, NoRepository):
            return NoCheckpoint(repository.reason)
        from teamchat.core.checkpoint.refs import tree_of
        from teamchat.core.turn.turn_tree import TurnSpan

        try:
            before = tree_of(repository, self.folder, f"{self.refs}/{name}/before")
        except CheckpointFailed as failed:
            return NoCheckpoint(str(failed))
        if before is None:
            return NoCheckpoint("it was killed before its files were recorded")
        span = TurnSpan(0, name, repository.top, False, 0.0)
        return self._tree(repository, span, before).changes(cwd)

    def _tree(self, repository: GitRepository, span: TurnSpan, before: str, begun: Begun | None = None) -> TurnTree:
        from teamchat.core.turn.turn_tree import TurnTree

        return TurnTree(self.folder, self.refs, self.limits, self._spans, repository, span, before, begun)

    def prune(self, keep_s: float) -> list[str]:
        """Remove old checkpoints of the turns' work trees, once a day. Return a sentence for each failure."""
        from teamchat.core.checkpoint.refs import prune_daily

        problems = []
        for repository in self.seen.values():
            try:
                prune_daily(repository, self.folder, keep_s)
            except (CheckpointFailed, OSError) as failed:
                problems.append(f"old checkpoints stay: {failed}")
        return problems
