from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.options import JsonOption, SessionOption, TeamOption


def show(
    turn: Annotated[
        int | None, typer.Argument(metavar="TURN", help="The turn's number; the last one by default.")
    ] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="The exact bytes its agent got on standard input.")] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="What it was given that differs from its member's previous turn.")
    ] = False,
    system: Annotated[bool, typer.Option("--system", help="The exact system text its agent got by a flag.")] = False,
    team: TeamOption = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the receipt of a turn: what went in, under which permissions, and what came of it."""
    import sys

    from teamchat.cli.output.jsonl import write
    from teamchat.cli.output.prompt_diff import prompt_diff
    from teamchat.cli.output.receipt import block_lines, receipt_fields, receipt_lines
    from teamchat.cli.output.words import exact, note
    from teamchat.cli.place import find_root, open_store
    from teamchat.core.errors import UnknownName, UsageError
    from teamchat.core.store.sessions import need_session
    from teamchat.core.store.summaries import summary_of
    from teamchat.core.store.turns import events_of, find_turn, partial_of, prompt_of, system_of

    if prompt + system + diff + as_json > 1:
        raise UsageError("--prompt, --system, --diff and --json exclude each other")
    with open_store(find_root(team)) as db:
        chosen = need_session(db, session)
        found = find_turn(db, chosen.id, turn)
        if found is None:
            which = "turn yet" if turn is None else f"turn {turn}"
            raise UnknownName(f"session {chosen.name} has no {which}", "teamchat log  # names the turns")
        if as_json:
            given = prompt_of(db, found), system_of(db, found)
            write("turn", **receipt_fields(found, *given, partial_of(db, found), summary_of(db, found)))
        elif diff:
            for line in prompt_diff(db, found):
                print(line)
        elif prompt or system:
            sys.stdout.flush()
            sys.stdout.buffer.write(exact(prompt_of(db, found) if prompt else (system_of(db, found) or "").encode()))
            if sys.stdout.isatty():  # no prompt ends its own line
                sys.stdout.buffer.write(b"\n")
            sys.stdout.buffer.flush()
            for line in block_lines(found.setup) if prompt else ():
                note(line)
        else:
            for line in receipt_lines(found, events_of(db, found), partial_of(db, found), summary_of(db, found)):
                print(line)
