"""Checkpoints, and the first guardian, that are begun ahead of their turns, while these are still being prepared.

The code that takes them is imported only where there is a repository.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from pathlib import Path
from threading import Lock

from msgspec import Struct, field

from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.values import Checkpoint, GitRepository, Latest, NoRepository
from teamchat.core.errors import CheckpointFailed
from teamchat.core.files.folders import workspace_dir
from teamchat.core.team.team import Team
from teamchat.core.turn.background import Background
from teamchat.runners.process.guardians import GUARDIANS

OLDEST_S = 0.5  # a checkpoint as old as this may still be the one before a turn


class _Look(Struct, frozen=True):
    """`latest` is None where there is no repository, or where a checkpoint that was there still serves."""

    repository: GitRepository | NoRepository
    latest: Latest | None
    at: float

    @property
    def old(self) -> bool:
        return time.monotonic() - self.at > OLDEST_S


class Ahead(Struct, frozen=True):
    """Takes the checkpoints of the turns in any folder. `folder` is the state folder.

    The checkpoint after a turn is also the one before the next, if that begins at once.
    """

    folder: Path
    _begun: dict[Path, Background[_Look]] = field(default_factory=dict)
    _latest: dict[Path, Latest] = field(default_factory=dict)
    _looks: dict[Path, Lock] = field(default_factory=dict)

    def begin(self, cwd: Path) -> None:
        """Begin the checkpoint before the next turn in `cwd`. The end of the program does not wait for it."""
        before = self._begun.get(cwd)
        if before and not (before.done and (before.error or before.result().old)):
            return
        with contextlib.suppress(RuntimeError):  # the system starts no more threads
            self._begun[cwd] = Background(partial(self._look, cwd), "checkpoint", daemon=True)

    def _look(self, cwd: Path) -> _Look:
        repository, latest = find_repository(cwd), None
        if isinstance(repository, GitRepository) and not self._is_recent(repository):
            from teamchat.core.checkpoint.take import take_latest

            latest = take_latest(repository, self.folder, None, waits=True)
        return _Look(repository, latest, time.monotonic())

    def _is_recent(self, repository: GitRepository) -> bool:
        latest = self._latest.get(repository.top)
        return latest is not None and time.monotonic() - latest.at < OLDEST_S

    def forget(self) -> None:
        """Have the next turn look for itself: whoever runs this conversation may change files from here on."""
        self._begun.clear()
        self._latest.clear()

    def find(self, cwd: Path) -> GitRepository | NoRepository:
        """The repository of the next turn in `cwd`. Blocks until the checkpoint that was begun there is complete."""
        begun = self._begun.pop(cwd, None)
        try:
            found = begun.result() if begun else None
        except CheckpointFailed:
            found = None
        if found is None or found.old:
            return find_repository(cwd)
        if isinstance(found.repository, GitRepository) and found.latest:
            self._remember(found.repository, found.latest)
        return found.repository

    def _remember(self, repository: GitRepository, latest: Latest) -> None:
        before = self._latest.get(repository.top)
        if before is None or before.at < latest.at:
            self._latest[repository.top] = latest

    def before(self, repository: GitRepository, ref: str) -> Checkpoint:
        """The checkpoint before a turn, which `ref` keeps. Raises `CheckpointFailed`."""
        from teamchat.core.checkpoint.take import keep_latest, take_latest

        latest = self._latest.pop(repository.top, None)
        if latest and keep_latest(repository, self.folder, ref, latest, OLDEST_S):
            return latest.checkpoint
        return take_latest(repository, self.folder, ref, waits=True).checkpoint

    def after(self, repository: GitRepository, ref: str) -> Checkpoint:
        """The checkpoint after a turn, which `ref` keeps. Raises `CheckpointFailed`."""
        from teamchat.core.checkpoint.take import keep, take_latest

        asked = time.monotonic()
        with self._looks.setdefault(repository.top, Lock()):  # turns that end meanwhile share the next look
            latest = self._latest.get(repository.top)
            if not (latest and latest.began > asked and keep(repository, self.folder, ref, latest)):
                latest = take_latest(repository, self.folder, ref, waits=True)
                self._remember(repository, latest)
        return latest.checkpoint


def begin_ahead(team: Team) -> Ahead:
    """Begin what the next turn needs: its guardian, and its checkpoint if all members work in one folder.

    The first checkpoint of a workspace, which reads all files, is left to its turn: the command may still be refused.
    """
    with contextlib.suppress(OSError):  # the turn fails with a reason
        GUARDIANS.prepare()
    ahead, folders = Ahead(workspace_dir(team.root)), {member.cwd for member in team.ai_members}
    apart = any(member.workspace == "worktree" for member in team.ai_members)
    if len(folders) == 1 and not apart and ahead.folder.joinpath("checkpoints").is_dir():
        ahead.begin(*folders)
    return ahead
