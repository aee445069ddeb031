"""`--record` of `send` and `resume`. Without it nothing of cassettes is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from teamchat.cli.shared.conversation import Work, converse

if TYPE_CHECKING:
    from pathlib import Path

    from teamchat.cli.output import Output
    from teamchat.cli.shared.recorder import Begins
    from teamchat.core.errors import ExitCode
    from teamchat.core.store.database import Database
    from teamchat.core.store.sessions import Session
    from teamchat.core.team.team import Team


def check_record(file: Path | None) -> None:
    """Raises `UsageError` where a recording is asked for that cannot be written."""
    if file is not None:
        from teamchat.cli.shared.recorder import check_recording

        check_recording(file)


def converse_and_record(
    file: Path | None,
    team: Team,
    db: Database,
    session: Session,
    output: Output,
    work: Work,
    begins: Begins,
    *,
    wait: bool,
) -> ExitCode:
    """`converse`, with a recording in `file` where one is asked for."""
    if file is None:
        return converse(team, db, session, output, work, wait=wait)
    from teamchat.cli.shared.recorder import converse_recorded

    return converse_recorded(file, team, db, session, output, work, begins, wait=wait)
