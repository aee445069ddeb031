from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import note
from teamchat.cli.output.patch import stat_lines, write_patch
from teamchat.cli.startup.options import JsonOption, PlaceOptions
from teamchat.cli.startup.turn_called import check_name, turn_called
from teamchat.cli.startup.workspace import find_root, open_store
from teamchat.core.conversation.differences import TreeDifference, differences, why_unknown
from teamchat.core.errors import CheckpointFailed, UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, need_session
from teamchat.core.store.turns import Turn, last_turn_with_files, turns_between
from teamchat.core.text.clean import printable


def diff(
    turns: Annotated[
        str | None,
        typer.Argument(metavar="TURN|TURN..TURN", help="A turn, or several (default: the last that changed files)."),
    ] = None,
    stat: Annotated[bool, typer.Option("--stat", help="List the files with the number of changed lines.")] = False,
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Show what turns changed (piped: a patch for git apply)."""
    if stat and as_json:
        raise UsageError("--stat and --json exclude each other")
    with open_store(find_root(place.team)) as db:
        chosen = need_session(db, place.session)
        named = turns_called(db, chosen, turns)
        if not named:
            note(f"no turn of session {chosen.name} changed files")
            return
        unknown = list(filter(None, map(why_unknown, named)))
        tree_differences = differences(db.path.parent, named)
        if not tree_differences:
            raise CheckpointFailed(printable("; ".join(unknown)))
        if turns is None and sys.stdout.isatty():
            note(printable(f"turn {named[0].number}, {named[0].member}: the last that changed files"))
        for line in unknown:
            note(printable(line))
        write(tree_differences, stat=stat, as_json=as_json)


def turns_called(db: Database, session: Session, name: str | None) -> Sequence[Turn]:
    """Find the turns that a person means by `name`, side turns left out; none if no turn changed files."""
    if name is None:
        newest = last_turn_with_files(db, session.id)
        return [newest] if newest else []
    ends = name.split("..", 1)
    for end in ends:
        check_name(end)
    first, last = turn_called(db, session, ends[0]), turn_called(db, session, ends[-1])
    if first.number > last.number:
        raise UsageError(f"turn {last.number} is before turn {first.number}", f"teamchat diff {ends[-1]}..{ends[0]}")
    if first == last:
        return [first]
    return [turn for turn in turns_between(db, session.id, first.number, last.number) if turn.outcome]


def write(found: Sequence[TreeDifference], *, stat: bool, as_json: bool) -> None:
    for difference in found:
        if len(found) > 1 and not as_json:
            note(printable(f"in {difference.repository.top}:"))
        if unrecorded := difference.unrecorded():
            named = ", ".join(f"{path} ({what})" for path, what in unrecorded.items())
            note(printable(f"not in checkpoints: {named}"))
        if as_json:
            for file in difference.files():
                counts = {"added": file.added, "removed": file.removed}
                where = {"top": str(difference.repository.top), "turns": [difference.first, difference.last]}
                write_line("file", path=file.path, what=file.what, **counts, **where)
        elif stat:
            for line in stat_lines(difference.files()):
                print(line)
        else:
            write_patch(difference.patch())
    sys.stdout.flush()
