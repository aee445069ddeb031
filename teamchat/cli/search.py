from __future__ import annotations

import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from teamchat.cli.output.lines import moment, note
from teamchat.cli.output.listing import age
from teamchat.cli.startup import complete
from teamchat.cli.startup.options import JsonOption, TeamOption, at_least, session_name
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import find_root, find_team, open_store
from teamchat.core.errors import AgentMissing, TeamFileError, UnknownName, UsageError
from teamchat.core.routing.names import fold
from teamchat.core.store import search as stored
from teamchat.core.store.database import Database
from teamchat.core.store.listing import title_of
from teamchat.core.store.search import Hit
from teamchat.core.store.sessions import Session, all_sessions, need_session
from teamchat.core.text.clean import printable, visible
from teamchat.core.text.commands import command_of
from teamchat.core.text.durations import parse_duration
from teamchat.core.text.words import MOST_PARTS, search_parts

LIMIT = 20
INDENT = "  "


Words = Annotated[
    list[str],
    typer.Argument(metavar="WORDS...", help="Words, beginnings such as deploy*, and phrases: '\"in quotes\"'."),
]
OneSessionOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="NAME",
        autocompletion=complete.sessions,
        callback=session_name,
        help="Search only this conversation (default: all of this workspace).",
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Search from a time on: 2026-03-01, 2026-03-01T14:30, today, 3d."),
]
SpeakerOption = Annotated[
    str | None,
    typer.Option(
        "--member", metavar="NAME", autocompletion=complete.anybody, help="Search what this member or person said."
    ),
]
UndoneOption = Annotated[bool, typer.Option("--all", help="Include messages that were undone, marked as such.")]
LimitOption = Annotated[
    int, typer.Option("--limit", callback=at_least(0), metavar="N", help="Print at most N hits; 0 prints all.")
]


def search(
    words: Words,
    team: TeamOption = None,
    session: OneSessionOption = None,
    since: FromOption = None,
    member: SpeakerOption = None,
    everything: UndoneOption = False,
    limit: LimitOption = LIMIT,
    as_json: JsonOption = False,
) -> None:
    """Find messages by their words in all conversations, the newest first.

    A message must have all the words. Upper case and accents make no difference: teamchat search "version option"
    """
    parts = search_parts(" ".join(words))
    if not parts:
        note("there is no letter and no digit to search for")
        return
    if len(parts) > MOST_PARTS:
        raise UsageError(
            f"a search has at most {MOST_PARTS} words and phrases, and these are {len(parts)}", "teamchat search --help"
        )
    begin = None if since is None else moment_of(since, time.time())
    with open_store(find_root(team)) as db:
        chosen = None if session is None else need_session(db, session).id
        what = stored.Search(parts, chosen, member, begin, everything)
        hits, more = stored.search(db, what, limit)
        if member is not None and not hits:
            _check_called(db, member, team)
        known = {known_session.id: known_session for known_session in all_sessions(db)}
        titles = {number: title_of(db, known[number]) for number in {hit.session for hit in hits}}
    for hit in hits:
        said_in, title = known[hit.session], titles[hit.session]
        undone = ["--all"] if hit.undone else []
        command = placed_here(command_of("teamchat", "log", *undone, "--full", hit.message, "--session", said_in.name))
        if as_json:
            from teamchat.cli.output.jsonl import write_line

            write_line("hit", **_fields(hit, said_in, title), show=command)
        else:
            _write(hit, said_in, title, command, at_terminal=sys.stdout.isatty())
    if not (hits or as_json):
        note("no message has all these words")
    if more:
        number = f"more than {stored.COUNTED:,}" if more >= stored.COUNTED else f"{more:,}"
        note(f"{number} more (--limit 0 prints all)")


def _check_called(db: Database, name: str, team: str | None) -> None:
    """Raise `UnknownName` unless somebody in the team or in a message is called so."""
    there = stored.speakers(db)
    with suppress(TeamFileError, AgentMissing):  # a broken team file must not hide what was said
        there |= {member.name for member in find_team(team).members}
    if fold(name) not in map(fold, there):
        who = f" (there are: {', '.join(sorted(there))})" if there else ""
        raise UnknownName(f"nobody is called {name!r}{who}", "teamchat team")


def moment_of(text: str, now: float) -> float:
    """Parse the time that `--from` names, in seconds since 1970.

    It is a date, a date with a time, `today`, `yesterday`, or how long ago. Raises `UsageError`.
    """
    # without a zone: Python has none of a day or more, such as TZ=XXX99
    midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)  # noqa: DTZ006
    days = {"today": 0, "yesterday": 1}
    if text in days:
        return (midnight - timedelta(days=days[text])).timestamp()
    try:
        moment = datetime.fromisoformat(text).timestamp() if "-" in text else now - parse_duration(text)
        datetime.fromtimestamp(moment, UTC)  # the calendar has it, and so does the store
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"--from {text!r}: expected a date (2026-03-01), a date with a time (2026-03-01T14:30), today, yesterday,"
            " or how long ago (90m, 3d)"
        ) from None
    return moment


def _fields(hit: Hit, session: Session, title: str) -> dict[str, object]:
    return {
        "session": session.name,
        "title": title,
        "message": hit.message,
        "from": hit.speaker,
        "at": hit.at,
        "undone": hit.undone,
        "snippet": "".join(piece.text for piece in hit.snippet),
        "found": [piece.text for piece in hit.snippet if piece.found],
    }


def _write(hit: Hit, session: Session, title: str, command: str, *, at_terminal: bool) -> None:
    """Print where it was said, by whom and when; the words around; the command that prints the whole message."""
    when = age(hit.at, time.time()) if at_terminal else moment(hit.at)
    undone = ", undone" if hit.undone else ""
    head = printable(f"{session.name}  {hit.message} {hit.speaker}{undone}  {when}  {title}")
    if not at_terminal:
        snippet = visible("".join(piece.text for piece in hit.snippet))
        print(f"{head}\n{INDENT}{snippet}\n{INDENT}{command}\n")
        return

    console = Console(highlight=False)
    console.print(Text(head, overflow="ellipsis", no_wrap=True, style="bold"))
    said = Text.assemble(*((visible(piece.text), "bold yellow" if piece.found else "") for piece in hit.snippet))
    for line in said.wrap(console, console.width - len(INDENT)):
        console.print(INDENT, line, sep="")
    console.print(Text(f"{INDENT}{command}", style="dim"), soft_wrap=True)
    console.print()
