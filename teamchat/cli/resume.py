from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.shared.options import (
    AskOption,
    JsonOption,
    NoInputOption,
    NotifyOption,
    NoWaitOption,
    OnlyOption,
    QuietOption,
    RecordOption,
    SessionOption,
    StreamOption,
    TeamOption,
    TimeoutOption,
    TrustOption,
    TurnsOption,
    VerdictOption,
    WindowOption,
    asks,
    words_of,
)


def resume(
    retry: Annotated[bool, typer.Option("--retry", help="Run the failed turn again (the default).")] = False,
    skip: Annotated[
        bool, typer.Option("--skip", help="Continue without the failed turn, or without the awaited answer.")
    ] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Drop everything that is waiting.")] = False,
    team: TeamOption = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
    stream: StreamOption = False,
    quiet: QuietOption = False,
    only: OnlyOption = False,
    turns: TurnsOption = None,
    window: WindowOption = None,
    timeout: TimeoutOption = None,
    trust: TrustOption = False,
    no_wait: NoWaitOption = False,
    notify: NotifyOption = None,
    ask: AskOption = False,
    no_input: NoInputOption = False,
    record: RecordOption = None,
    verdict: VerdictOption = None,
) -> int:
    """Continue a conversation that failed, was paused, interrupted or killed."""
    from teamchat.cli.shared.showing import OutputOptions
    from teamchat.cli.shared.workspace import (
        begin_run,
        need_person,
        open_store,
        session_to_continue,
        team_or_nobody,
        team_with_session,
    )
    from teamchat.core.engine.events import ResumeMode
    from teamchat.core.engine.state import Bounds
    from teamchat.core.errors import UsageError
    from teamchat.core.store.sessions import touch_session

    if retry + skip + drop > 1:
        raise UsageError("--retry, --skip and --drop exclude each other")
    mode = ResumeMode.SKIP if skip else ResumeMode.DROP if drop else ResumeMode.RETRY
    if drop:
        need_person("what waits is dropped")
    show = OutputOptions(as_json, stream, quiet, notify)
    verdicts, ask = words_of(verdict), asks(ask, no_input)
    found = team_or_nobody(team, session) if drop else team_with_session(team, session, timeout)
    begin_run(found, record=record, trust=trust, runs=mode is not ResumeMode.DROP)
    from teamchat.cli.shared.request import resume_session  # this import takes as long as git does

    with open_store(found.root) as db:
        chosen = session_to_continue(db, session)
        touch_session(db, chosen.id)
        bounds = Bounds(turns, only, window=window)
        return resume_session(
            found,
            db,
            chosen,
            mode,
            show,
            wait=not no_wait,
            record=record,
            bounds=bounds,
            ask=ask,
            verdict=verdicts,
        )
