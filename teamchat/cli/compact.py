from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.shared.complete import members
from teamchat.cli.shared.options import (
    JsonOption,
    NoWaitOption,
    QuietOption,
    SessionOption,
    StreamOption,
    TeamOption,
    TimeoutOption,
    TrustOption,
)


def compact(
    member: Annotated[
        str | None,
        typer.Option(
            "--member",
            metavar="NAME",
            autocompletion=members,
            help="Who writes the summary (default: the team's compactor).",
        ),
    ] = None,
    team: TeamOption = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
    stream: StreamOption = False,
    quiet: QuietOption = False,
    timeout: TimeoutOption = None,
    trust: TrustOption = False,
    no_wait: NoWaitOption = False,
) -> int:
    """Summarise the conversation. Later prompts get the summary instead of the old messages.

    Nothing is lost: the log keeps every message, and prompts still quote what people said last.
    """
    from teamchat.cli.shared.conversation import converse
    from teamchat.cli.shared.showing import OutputOptions
    from teamchat.cli.shared.workspace import find_team, need_trust, open_store, session_to_continue
    from teamchat.core.conversation.summary import summariser_of
    from teamchat.core.store.sessions import touch_session

    show = OutputOptions(as_json, stream, quiet)
    found = find_team(team, timeout)
    summariser_of(found, member)  # before anything begins
    need_trust(found, give=trust)
    with open_store(found.root) as db:
        chosen = session_to_continue(db, session)
        touch_session(db, chosen.id)
        return converse(found, db, chosen, show, lambda coordinator: coordinator.summarise(member), wait=not no_wait)
