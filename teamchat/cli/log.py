from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.options import JsonOption, SessionOption, TeamOption


def log(
    number: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Only the last N messages; 0 is all.")] = 0,
    team: TeamOption = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what was said, who is asked and what is held."""
    from teamchat.cli.output.jsonl import message_fields, write
    from teamchat.cli.output.words import block, called, note
    from teamchat.cli.place import find_root, open_store
    from teamchat.core.history import name_of
    from teamchat.core.store.messages import SqliteLog
    from teamchat.core.store.routes import open_routes
    from teamchat.core.store.sessions import need_session
    from teamchat.core.store.turns import turn_numbers

    with open_store(find_root(team)) as db:
        chosen = need_session(db, session)
        turns = turn_numbers(db, chosen.id)
        for message in SqliteLog(db, chosen.id).all()[-number:]:
            turn = turns.get(message.turn_id or 0)
            if as_json:
                write("message", **message_fields(message), turn=turn)
            else:
                to = (
                    f" -> {', '.join(message.routing.resolved_addressees)}"
                    if message.routing.resolved_addressees
                    else ""
                )
                print(
                    block(
                        f"{message.id} {name_of(message)}{to}" + (f" (turn {turn})" if turn else ""),
                        message.content,
                    )
                )
        if not as_json:
            for route in open_routes(db, chosen.id):
                note(f"{route.status}: {called(route)}")
