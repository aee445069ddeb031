from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from teamchat.cli.output.jsonl import session_fields, write_line
from teamchat.cli.output.lines import note, plural
from teamchat.cli.startup.options import JsonOption, PlaceOptions, session_name
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import find_root, need_person, open_store
from teamchat.core.conversation.sessions.branch import Later, turns_after
from teamchat.core.conversation.sessions.branch import branch as begin
from teamchat.core.errors import UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.listing import title_of
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import open_routes
from teamchat.core.store.sessions import Session, check_there, need_session
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote, saying


def branch(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            callback=session_name,
            help="The name of the new conversation (default: s2, s3, ...).",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="MESSAGE", help="The last message to keep, such as msg-4 (default: the newest)."),
    ] = None,
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Copy the conversation so far into a new one. Each goes on by itself."""
    need_person("branches are begun")
    with open_store(find_root(place.team)) as db:
        with db.transaction():
            chosen = need_session(db, place.session)
            check_there(db, chosen)
            if name is not None and SqliteLog(db, chosen.id).has(name):
                raise UsageError(f"{name} is a message, not a name for a session", f"teamchat branch --at {name}")
            made = begin(db, chosen, at, name)
        newest = SqliteLog(db, made.id).latest()
        assert newest is not None, made
        last, back = newest.id, placed_here(saying("--session", chosen.name))
        later = [
            following
            for following in turns_after(db, chosen, last)
            if following.turn.outcome and following.turn.outcome.files
        ]
        if as_json:
            since = [{"session": following.session, "turn": following.turn.number} for following in later]
            fields = {"branch_of": {"session": chosen.name, "at": last}, "changed_files": since, "back": back}
            write_line("session", **session_fields(made, title_of(db, made)), **fields)
            return
        for line in (*begun_lines(db, made, chosen, last, back), *file_lines(later, last)):
            note(printable(line))


def begun_lines(db: Database, made: Session, parent: Session, last: str, back: str) -> Iterator[str]:
    yield f"session {made.name} begins as {parent.name} was at {last}: {plural(made.messages, 'message')}"
    if (os.environ.get("TEAMCHAT_SESSION") or made.name) != made.name:
        go_on = placed_here(saying("--session", made.name))
        yield f"TEAMCHAT_SESSION names another one; continue this one: {go_on}"
    else:
        yield f"it is the current one now; back to {parent.name}: {back}"
    if left := list(open_routes(db, parent.id)):
        names = ", ".join(dict.fromkeys(route.target for route in left))
        yield f"what waits or runs in {parent.name} stays there: {names}"


def file_lines(later: Sequence[Later], last: str) -> Iterator[str]:
    """Say that the files are unchanged, and list commands for changes of turns after the message `last`."""
    yield "the files stay as they are"
    for name in dict.fromkeys(following.session for following in later):
        first, *others = [str(following.turn.number) for following in later if following.session == name]
        span = f"{first}..{others[-1]}" if others else first
        here = f"--session {quote(name)}"
        diff = placed_here(f"teamchat diff {span} {here}")
        undo = placed_here(f"teamchat undo {first} --files {here}")
        turns = f"turns {', '.join([first, *others[:-1]])} and {others[-1]}" if others else f"turn {first}"
        yield f"{turns} of {name} changed files after {last}: {diff}"
        yield f"undo these changes: {undo}"
