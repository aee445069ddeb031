from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from teamchat.cli.output.lines import confirmed, note, plural
from teamchat.cli.startup.options import JsonOption, TeamOption, YesOption, session_name
from teamchat.cli.startup.piped import read_within
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import find_root, find_team, need_person, open_store
from teamchat.core.errors import TeamchatError, UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, find_session
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import saying
from teamchat.core.transcripts.reading import LARGEST, Imported, read, store
from teamchat.runners.untrusted.json import one_line


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file; - reads standard input.")],
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="NAME",
            callback=session_name,
            help="The name of the new conversation (default: its own, or s2, s3, ...).",
        ),
    ] = None,
    team: TeamOption = None,
    as_json: JsonOption = False,
    yes: YesOption = False,
) -> None:
    """Begin a conversation from an exported file: json or jsonl of `teamchat export`, or a snapshot.

    Nothing in it is run, and its markers call nobody. Its task, which every member is told, is asked for, or taken with
    --yes.
    """
    need_person("files are imported")
    name = name_of(file)
    data = content_of(file)
    try:
        imported = read(data)
    except ValueError as error:
        raise UsageError(f"{name} cannot be imported: {printable(str(error))}") from None
    if imported.transcript.task and not (yes or wants_task(imported.transcript.task, asks=not as_json)):
        left_out = f"left out: the task {one_line(imported.transcript.task, 200)!r} (--yes takes it)"
        transcript = replace(imported.transcript, task=None)
        imported = replace(imported, transcript=transcript, remarks=(*imported.remarks, left_out))
    made = stored(imported, session, team)
    if as_json:
        from teamchat.cli.output.jsonl import write_line

        write_line("session", **to_builtins(made), remarks=list(imported.remarks))
        return
    for line in session_lines(made, imported):
        note(printable(line))


def wants_task(task: str, *, asks: bool) -> bool:
    """Return whether a person at the terminal takes the task after reading it: members read it outside any fence."""
    if not (asks and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print("the file has a task, which every member is told as yours:", file=sys.stderr)
    for line in task.splitlines():
        print(f"  {printable(line)}", file=sys.stderr)
    return confirmed("Take it as the task?")


def name_of(file: Path) -> str:
    return "standard input" if str(file) == "-" else printable(str(file))


def content_of(file: Path) -> bytes:
    """Read the whole file. Raises `PromptTooLarge`, and `UsageError` if it cannot be read."""
    name, limit = name_of(file), f"and an import takes at most {LARGEST:,}"
    if str(file) == "-":
        return read_within(sys.stdin.buffer, LARGEST, limit, name)
    try:
        with file.expanduser().open("rb") as opened:
            return read_within(opened, LARGEST, limit, name)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def stored(found: Imported, name: str | None, team: str | None) -> Session:
    """Store the new session, named as in the file if that is free. Raises `UsageError` for a `name` that is taken."""
    root = find_root(team)
    transcript = found.transcript
    with open_store(root) as db, db.transaction():
        if name is not None and find_session(db, name):
            raise UsageError(f"session {name!r} already exists", "teamchat sessions")
        own = transcript.session if is_free(db, transcript.session) else None
        return store(db, replace(transcript, team=transcript.team or team_name(root, team)), name or own)


def is_free(db: Database, name: str) -> bool:
    """Whether a new session may have the name that the file says."""
    try:
        return bool(session_name(name or None)) and find_session(db, name) is None
    except typer.BadParameter:
        return False


def team_name(root: Path, option: str | None) -> str:
    """Name the team of this folder, for a conversation whose file names none."""
    try:
        return find_team(option).name
    except TeamchatError:
        return root.name


def session_lines(made: Session, found: Imported) -> list[str]:
    undone = sum(said.undone for said in found.transcript.said)
    more = f", {plural(undone, 'undone message')}" if undone else ""
    return [
        f"session {made.name} is new: {plural(made.messages, 'message')}{more}",
        *found.remarks,
        f"continue it: {placed_here(saying('--session', made.name))}",
    ]
