from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.shared.options import Asking, Options, Place, RunOutput, SendLimits
from teamchat.core.errors import UsageError


class Mode(Options, frozen=True):
    """What is done about the turn that failed."""

    retry: Annotated[bool, typer.Option("--retry", help="Run the failed turn again (the default).")] = False
    skip: Annotated[
        bool, typer.Option("--skip", help="Continue without the failed turn, or without the awaited answer.")
    ] = False
    drop: Annotated[bool, typer.Option("--drop", help="Drop everything that is waiting.")] = False

    def __post_init__(self) -> None:
        if self.retry + self.skip + self.drop > 1:
            raise UsageError("--retry, --skip and --drop exclude each other")


def resume(mode: Mode, place: Place, output: RunOutput, limits: SendLimits, asking: Asking) -> int:
    """Continue a conversation that failed, was paused or was killed."""
    from teamchat.cli.shared.workspace import (
        begin_run,
        need_person,
        open_store,
        session_to_continue,
        team_or_nobody,
        team_with_session,
    )
    from teamchat.core.engine.events import ResumeMode
    from teamchat.core.store.sessions import touch_session

    if mode.drop:
        need_person("what waits is dropped")
        team = team_or_nobody(place.team, place.session)
    else:
        team = team_with_session(place.team, place.session, limits.timeout)
    begin_run(team, record=output.record, trust=limits.trust, runs=not mode.drop)
    from teamchat.cli.shared.request import run_input  # this import takes as long as git does
    from teamchat.core.conversation.inputs import Resume

    with open_store(team.root) as db:
        session = session_to_continue(db, place.session)
        touch_session(db, session.id)
        chosen = ResumeMode.SKIP if mode.skip else ResumeMode.DROP if mode.drop else ResumeMode.RETRY
        wait, bounds = not limits.no_wait, limits.bounds
        return run_input(team, db, session, Resume(chosen), output, bounds=bounds, wait=wait, ask=asking.ask)
