"""Continuing a session, for the commands that do."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from teamchat.cli.output.lines import note
from teamchat.cli.shared.answering import Answering, Asked, you_at_terminal
from teamchat.cli.shared.conversation import Work, converse
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

if TYPE_CHECKING:
    from teamchat.cli.shared.recorder import WriteInput
    from teamchat.core.cassette.writer import CassetteWriter, Cooling


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
    no_input: bool = False,
) -> ExitCode:
    """Run what is held in the session, or `only` the routes of these numbers. Returns the exit code.

    `bounds` and `ahead` are as for `converse`. A question to the person at the terminal is asked unless `no_input`.
    """
    if not show.quiet:
        note(f"session {session.name} continues")

    def work(coordinator: ConversationCoordinator) -> Awaitable[Conclusion]:
        return coordinator.resume(mode, only)

    aheads = iter((ahead,))

    def once(work: Work, write_input: WriteInput, asked: Asked) -> ExitCode:
        recording = None
        if record is not None:
            from teamchat.cli.shared.recorder import recorded

            recording = partial(recorded, record, write_input)
        first = next(aheads, None)
        return converse(
            team, db, session, show, work, wait=wait, record=recording, bounds=bounds, ahead=first, at_end=asked
        )

    def write_input(writer: CassetteWriter, cooling: Cooling) -> None:
        writer.resume(mode, cooling, bounds)

    asked = Asked(you_at_terminal(team, None, show, no_input=no_input))
    return Answering(team, db, session, asked, bounds).run(once, work, write_input)
