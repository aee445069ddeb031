"""Continuing a session, for the commands that do."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from pathlib import Path

from teamchat.cli.output.lines import note
from teamchat.cli.shared.conversation import converse
from teamchat.cli.shared.showing import OutputOptions
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.state import UNBOUNDED, Bounds
from teamchat.core.errors import ExitCode
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session
from teamchat.core.team.team import Team
from teamchat.core.turn.ahead import Ahead
from teamchat.core.turn.events import Conclusion


def resume_session(
    team: Team,
    db: Database,
    session: Session,
    mode: ResumeMode,
    show: OutputOptions,
    *,
    wait: bool,
    record: Path | None = None,
    only: tuple[int, ...] | None = None,
    bounds: Bounds = UNBOUNDED,
    ahead: Ahead | None = None,
) -> ExitCode:
    """Run what is held in the session, or `only` the routes of these numbers. Returns the exit code.

    `bounds` and `ahead` are as for `converse`.
    """
    if not show.quiet:
        note(f"session {session.name} continues")

    def work(coordinator: ConversationCoordinator) -> Awaitable[Conclusion]:
        return coordinator.resume(mode, only)

    recording = None
    if record is not None:
        from teamchat.cli.shared.recorder import recorded

        recording = partial(recorded, record, lambda to, cooling: to.resume(mode, cooling, bounds))
    return converse(team, db, session, show, work, wait=wait, record=recording, bounds=bounds, ahead=ahead)
