from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.shared.options import JsonOption, SessionOption, TeamOption

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from teamchat.core.store.database import Database
    from teamchat.core.store.sessions import Session


def log(
    number: Annotated[
        int, typer.Option("-n", min=0, metavar="N", help="Print only the last N messages; 0 prints all.")
    ] = 0,
    full: Annotated[
        str | None,
        typer.Option("--full", metavar="MESSAGE", help="Print the whole text of one message, such as msg-7."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include messages that were undone, marked as such.")
    ] = False,
    team: TeamOption = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the conversation, and what is waiting or paused."""
    from teamchat.cli.output.jsonl import message_fields, write_line
    from teamchat.cli.output.lines import note
    from teamchat.cli.output.long import whole, write_block, write_pieces
    from teamchat.cli.shared.typed import placed_here
    from teamchat.cli.shared.workspace import find_root, open_store
    from teamchat.core.errors import UsageError
    from teamchat.core.messages import name_of
    from teamchat.core.store.messages import SqliteLog
    from teamchat.core.store.sessions import need_session
    from teamchat.core.store.turns import turn_numbers

    if full is not None and (as_json or number):
        raise UsageError("--full, --json and -n exclude each other")
    root = find_root(team)
    with open_store(root) as db:
        chosen = need_session(db, session)
        turns = turn_numbers(db, chosen.id)
        messages = SqliteLog(db, chosen.id)
        if full is not None:
            write_pieces(whole(messages.pieces(full, hidden=everything)))
            return
        hidden = messages.hidden() if everything else ()
        for message in messages.newest(number, hidden=everything):
            turn = turns.get(message.turn_id or 0)
            if as_json:
                write_line("message", **message_fields(message), turn=turn, hidden=message.id in hidden)
            else:
                to = (
                    f" -> {', '.join(message.routing.resolved_addressees)}"
                    if message.routing.resolved_addressees
                    else ""
                )
                head = f"{message.id} {name_of(message)}{to}" + (f" (turn {turn})" if turn else "")
                back, whole_text = (", undone", "--all --full") if message.id in hidden else ("", "--full")
                write_block(f"{head}{back}", message.content, placed_here(f"teamchat log {whole_text} {message.id}"))
        if not as_json:
            for line in queue_lines(root, db, chosen, team):
                note(line)


def queue_lines(root: Path, db: Database, session: Session, team: str | None) -> Iterator[str]:
    """Lines on who is running and who is waiting, with callers that have left the `team`.

    If teamchat was killed, also the command that continues the conversation.
    """
    from teamchat.cli.output.lines import called
    from teamchat.cli.shared.typed import placed_here
    from teamchat.cli.shared.workspace import abandoned
    from teamchat.core.conversation.recovery import REASON
    from teamchat.core.engine.state import Route, RouteStatus
    from teamchat.core.store.routes import open_routes

    def running() -> list[Route]:
        return [route for route in open_routes(db, session.id) if route.status is RouteStatus.RUNNING]

    left = abandoned(root, session.id, running)
    routes = list(open_routes(db, session.id))
    gone = who_left({route.by for route in routes}, session, team)
    for route in routes:
        where = f" ({route.by} is no longer in the team)" if route.by in gone else ""
        yield f"{REASON if route in left else route.status}: {called(route)}{where}"
    if left:
        yield f"try: {placed_here('teamchat resume')}"


def who_left(names: set[str], session: Session, team: str | None) -> set[str]:
    """The names that no member has. Empty if the team file cannot be read, or is another session's."""
    from teamchat.cli.shared.workspace import find_team
    from teamchat.core.errors import TeamchatError
    from teamchat.core.routing.names import fold

    try:
        found = find_team(team) if names else None
    except TeamchatError:
        return set()
    if found is None or found.name != session.team:
        return set()
    there = {fold(member.name) for member in found.members}
    return {name for name in names if fold(name) not in there}
