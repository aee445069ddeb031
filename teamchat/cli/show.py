from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.options import JsonOption, SessionOption, TeamOption

if TYPE_CHECKING:
    pass


def show(
    turn: Annotated[
        int | None, typer.Argument(metavar="[TURN]", help="The turn's number; the last one by default.")
    ] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="The exact bytes its agent got on standard input.")] = False,
    system: Annotated[bool, typer.Option("--system", help="The exact system text its agent got by a flag.")] = False,
    team: TeamOption = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the receipt of a turn: what went in, under which permissions, and what came of it."""
    import sys

    from teamchat.cli.output.jsonl import write
    from teamchat.cli.output.receipt import receipt_fields, receipt_lines
    from teamchat.cli.place import find_root, open_store
    from teamchat.core.errors import UnknownName, UsageError
    from teamchat.core.store.sessions import need_session
    from teamchat.core.store.turns import events_of, find_turn, partial_of, prompt_of, system_of

    if prompt and system:
        raise UsageError("--prompt and --system exclude each other: each prints exact bytes")
    with open_store(find_root(team)) as db:
        chosen = need_session(db, session)
        found = find_turn(db, chosen.id, turn)
        if found is None:
            which = "turn yet" if turn is None else f"turn {turn}"
            raise UnknownName(f"session {chosen.name} has no {which}", "teamchat log  # names the turns")
        if as_json:
            write("turn", **receipt_fields(found, prompt_of(db, found), system_of(db, found), partial_of(db, found)))
        elif prompt or system:
            sys.stdout.flush()
            sys.stdout.buffer.write(prompt_of(db, found) if prompt else (system_of(db, found) or "").encode())
            sys.stdout.buffer.flush()
        else:
            for line in receipt_lines(found, events_of(db, found), partial_of(db, found)):
                print(line)
