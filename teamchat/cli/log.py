from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.options import JsonOption, SessionOption, TeamOption

if TYPE_CHECKING:
    from teamchat.core.store.messages import SqliteLog


def log(
    number: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Only the last N messages; 0 is all.")] = 0,
    full: Annotated[
        str | None, typer.Option("--full", metavar="MESSAGE", help="All of the text of one message, such as msg-7.")
    ] = None,
    team: TeamOption = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the conversation, and what is waiting or paused."""
    from teamchat.cli.output.jsonl import message_fields, write
    from teamchat.cli.output.long import pieces_of, whole, write_block
    from teamchat.cli.output.long import write as write_pieces
    from teamchat.cli.output.words import called, note
    from teamchat.cli.place import find_root, open_store
    from teamchat.cli.typed import placed_here
    from teamchat.core.errors import UsageError
    from teamchat.core.history import name_of
    from teamchat.core.store.messages import SqliteLog
    from teamchat.core.store.routes import open_routes
    from teamchat.core.store.sessions import need_session
    from teamchat.core.store.turns import turn_numbers

    if full is not None and (as_json or number):
        raise UsageError("--full, --json and -n exclude each other")
    with open_store(find_root(team)) as db:
        chosen = need_session(db, session)
        turns = turn_numbers(db, chosen.id)
        messages = SqliteLog(db, chosen.id)
        if full is not None:
            write_pieces(whole(pieces_of(message_of(messages, full))))
            return
        for message in messages.newest(number):
            turn = turns.get(message.turn_id or 0)
            if as_json:
                write("message", **message_fields(message), turn=turn)
            else:
                to = (
                    f" -> {', '.join(message.routing.resolved_addressees)}"
                    if message.routing.resolved_addressees
                    else ""
                )
                head = f"{message.id} {name_of(message)}{to}" + (f" (turn {turn})" if turn else "")
                write_block(head, message.content, placed_here(f"teamchat log --full {message.id}"))
        if not as_json:
            for route in open_routes(db, chosen.id):
                note(f"{route.status}: {called(route)}")


def message_of(messages: SqliteLog, name: str) -> str:
    """The text of the message of that name. Raises `UnknownName`."""
    from teamchat.core.errors import UnknownName

    try:
        return messages.get(name).content
    except KeyError:
        raise UnknownName(f"there is no message {name!r} here", "teamchat log") from None
