"""Continuing a session, for the commands that do."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING

from teamchat.cli.output.lines import note
from teamchat.cli.shared.answering import Answering
from teamchat.cli.shared.showing import OutputOptions
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.state import UNBOUNDED, Bounds
from teamchat.core.errors import ExitCode
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session
from teamchat.core.team.team import Team
from teamchat.core.turn.events import Conclusion

if TYPE_CHECKING:
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
    ask: bool = False,
    verdict: tuple[str, ...] = (),
) -> ExitCode:
    """Run what is held in the session, or `only` the routes of these numbers. Returns the exit code.

    `bounds` and `verdict` are as for `converse`. With `ask` the person at the terminal answers questions
    there.
    """
    if not show.quiet:
        note(f"session {session.name} continues")

    def work(coordinator: ConversationCoordinator) -> Awaitable[Conclusion]:
        return coordinator.resume(mode, only)

    def write_input(writer: CassetteWriter, cooling: Cooling) -> None:
        writer.resume(mode, cooling, bounds)

    answering = Answering(
        team=team,
        db=db,
        session=session,
        show=show,
        bounds=bounds,
        wait=wait,
        record=record,
        ask=ask,
        verdict=verdict,
    )
    return answering.run(work, write_input)
