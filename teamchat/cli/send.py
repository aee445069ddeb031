from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.startup.options import Following, MessageOptions, NewPlace, SendLimits, SendOutput

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TEXT]...",
        show_default=False,
        help='The message, such as "[NEXT:max] Hi". Without text, or with a final -, read standard input.',
    ),
]


def send(
    words: Words = None,
    *,
    message: MessageOptions,
    place: NewPlace,
    output: SendOutput,
    limits: SendLimits,
    asking: Following,
) -> int:
    """Send a message; members answer until nobody is left to speak.

    Piped text is appended to the message as a fenced block: git diff | teamchat send --to max "Find bugs"
    """
    from msgspec.structs import replace

    from teamchat.cli.startup.workspace import begin_run, find_team
    from teamchat.core.engine.state import UNBOUNDED

    team = find_team(place.team, limits.timeout)
    if not output.dry_run:
        begin_run(team, record=output.record, trust=limits.trust)
    from teamchat.cli.running.request import Request, send_message
    from teamchat.cli.startup.piped import read_message, without_calls  # these imports take as long as git

    largest = None if message.cut else team.max_bytes
    to = ",".join(message.to) if message.to else None
    said = read_message(
        words or (), largest, message.file or (), to=to, judged=bool(output.verdicts), timeout=limits.timeout
    )
    said = replace(said, speaker=message.as_)
    request = Request(
        team=team,
        message=said if message.anyway else without_calls(said, team.members),
        place=place,
        bounds=limits.bounds,
        cut=message.cut,
        expand=message.expand,
        anyway=message.anyway,
    )
    if output.dry_run:
        from teamchat.cli.running.dry_run import explain

        return explain(request)
    return send_message(
        request,
        output,
        wait=not limits.no_wait,
        ask=asking.ask,
        own_run=bool(output.record or limits.timeout or output.notify) or request.bounds != UNBOUNDED,
        follow=asking.follow or asking.ask,
    )
