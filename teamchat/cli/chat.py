from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.startup.complete import people
from teamchat.cli.startup.options import NotifyOption, PlaceOptions, TimeoutOption, TitleOption, TrustOption
from teamchat.core.errors import UsageError


def chat(
    as_: Annotated[
        str | None, typer.Option("--as", metavar="NAME", autocompletion=people, help="The person you speak as.")
    ] = None,
    *,
    place: PlaceOptions,
    new: Annotated[bool, typer.Option("--new", help="Start a new conversation, named by --session if given.")] = False,
    title: TitleOption = None,
    timeout: TimeoutOption = None,
    notify: NotifyOption = None,
    trust: TrustOption = False,
) -> int:
    """Talk at a prompt that stays usable while members work. /help lists its commands and keys."""
    import os
    import sys

    from teamchat.core.text.commands import saying

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("chat needs a terminal", saying())
    if os.environ.get("TERM") == "dumb":
        raise UsageError("chat needs a terminal that can move its cursor; TERM is dumb", saying())

    from teamchat.cli.chatting.chat import begin
    from teamchat.cli.startup.typed import PROGRAM

    PROGRAM.set("teamchat")  # chat names its own commands in place of these

    return begin(
        place.team, place.session, speaker=as_, new=new, title=title, timeout=timeout, notify=notify, trust=trust
    )
