"""Options that several commands share, each defined once."""

from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.complete import sessions, teams


def session_name(name: str | None) -> str | None:
    if name is not None and not (name.strip() and name.isprintable()):
        raise typer.BadParameter(f"expected a name of printable characters, got {name!r}.")
    return name


TeamOption = Annotated[
    str | None,
    typer.Option(
        "--team",
        metavar="FILE|NAME",
        autocompletion=teams,
        help="The team: a file, or a name in your teams folder.",
    ),
]
SessionOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="NAME",
        envvar="TEAMCHAT_SESSION",
        autocompletion=sessions,
        callback=session_name,
        help="The conversation (default: the last one).",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line; see docs/json.md.")]
StreamOption = Annotated[bool, typer.Option("--stream", help="With --json: text as it comes, too.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print the last reply only, its markers removed.")]
TimeoutOption = Annotated[
    str | None, typer.Option("--timeout", metavar="TIME", help="The most a turn may take, such as 90s or 5m.")
]
TrustOption = Annotated[bool, typer.Option("--trust", help="Trust the team file as it is now.")]
NoWaitOption = Annotated[
    bool, typer.Option("--no-wait", help="Refuse, instead of waiting, when another process runs the conversation.")
]
