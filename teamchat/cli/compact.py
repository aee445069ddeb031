from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.running.converse import converse
from teamchat.cli.startup.complete import members
from teamchat.cli.startup.options import LimitOptions, PlaceOptions, ShownOptions
from teamchat.cli.startup.workspace import find_team, need_trust, open_store, session_to_continue
from teamchat.core.conversation.summary import summariser_of
from teamchat.core.store.sessions import touch_session


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
    *,
    place: PlaceOptions,
    shown: ShownOptions,
    limits: LimitOptions,
) -> int:
    """Summarise the conversation. Later prompts get the summary instead of the old messages.

    Nothing is lost: the log keeps every message, and prompts still quote what people said last.
    """
    team = find_team(place.team, limits.timeout)
    summariser_of(team, member)  # before anything begins
    need_trust(team, give=limits.trust)
    with open_store(team.root) as db:
        chosen = session_to_continue(db, place.session)
        touch_session(db, chosen.id)
        return converse(
            team, db, chosen, shown, lambda coordinator: coordinator.summarise(member), wait=not limits.no_wait
        )
