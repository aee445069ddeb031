from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from teamchat.cli.output.lines import note
from teamchat.cli.startup.options import PlaceOptions
from teamchat.cli.startup.workspace import find_team, need_person, open_store
from teamchat.core.conversation.protection import accept_files
from teamchat.core.errors import UsageError
from teamchat.core.store.routes import last_process
from teamchat.core.store.sessions import need_session
from teamchat.core.text.clean import printable


class UntilAction(StrEnum):
    ACCEPT = "accept"


def actions(incomplete: str) -> list[str]:
    return [action for action in UntilAction if action.startswith(incomplete)]


def until(
    what: Annotated[
        str, typer.Argument(metavar="accept", show_default=False, autocompletion=actions, help="What to do: accept.")
    ] = "",
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", show_default=False, help="Protected files that were changed, or a folder of them."
        ),
    ] = None,
    *,
    place: PlaceOptions,
) -> None:
    """Accept what members have changed in protected files.

    What is there now makes no check of this conversation red any more, from the next one on, also while members work.
    When somebody changes it once more, checks are red again.
    """
    if what != UntilAction.ACCEPT:
        raise UsageError(
            f"expected accept and a path, got {what!r} (teamchat run until begins the process)",
            "teamchat until accept .",
        )
    if not paths:
        raise UsageError("name what you accept, or . for all of it", "teamchat until accept .")
    need_person("protected files are accepted")
    team = find_team(place.team)
    with open_store(team.root) as db:
        chosen = need_session(db, place.session)
        for one in accept_files(db, chosen.id, team, paths, Path.cwd()):
            note(f"accepted: {printable(one.path)}, which changed during {one.by}")
        process = last_process(db, chosen.id)
        if process and process.over:
            note(f"the {process.name or process.kind} is over: begin it again, and its checks let this pass")
