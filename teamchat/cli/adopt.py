from __future__ import annotations

import os
from typing import Annotated

import typer

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import moment, note
from teamchat.cli.running.converse import held_run
from teamchat.cli.startup.complete import members
from teamchat.cli.startup.options import JsonOption, PlaceOptions
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import choose_session, find_team, need_person, open_store
from teamchat.core.conversation.sessions.adopt import Candidates, candidates, carry_out, chosen
from teamchat.core.conversation.sessions.adopt import cancel as cancel_it
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.routing.titles import first_words
from teamchat.core.store.sessions import begun, need_session
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of

NO_WORDS = "(its first words cannot be read)"


def adopt(
    member: Annotated[str, typer.Argument(metavar="MEMBER", autocompletion=members, help="The member that continues.")],
    which: Annotated[
        str | None, typer.Argument(metavar="[ID]", show_default=False, help="The session, or how its name begins.")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="The newest session.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Adopt nothing, unless a turn has done so already.")] = False,
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> int:
    """Let a member continue a session that you began in its CLI. Without ID and --last the sessions are listed.

    The member's next turn continues a copy. Your own session stays as it is.
    """
    if last + cancel + (which is not None) > 1:
        raise UsageError("ID, --last and --cancel exclude each other")
    if last or cancel or which is not None:
        need_person("sessions are adopted")
    team = find_team(place.team)
    adopter = team.member(member)
    with open_store(team.root) as db:
        if cancel:
            with held_run(team, db, need_session(db, place.session)) as run:
                cancel_it(run, adopter)
            note(f"{adopter.name} adopts no session")
            return ExitCode.DONE
        there = candidates(db, team, adopter, os.environ)
        if which is None and not last:
            print_candidates(there, as_json=as_json)
            return ExitCode.DONE
        adopted = chosen(there, which)
        conversation, begins = choose_session(db, team, place.session, new=False)
        if begins:
            with begun(db, conversation), held_run(team, db, conversation) as run:
                text = carry_out(run, there, adopted)
        else:
            with held_run(team, db, conversation) as run:
                text = carry_out(run, there, adopted)
        if as_json:
            write_line("adopted", member=adopter.name, agent=there.agent, id=adopted.id, session=conversation.name)
        else:
            note(printable(text))
        return ExitCode.DONE


def print_candidates(there: Candidates, *, as_json: bool) -> None:
    """Print each session with its name, when it was last used, and its first words."""
    if as_json:
        for session in there.kept:
            write_line("kept_session", id=session.id, at=session.at, first=session.first)
        return
    for session in there.kept:
        words = first_words(session.first) if session.first else NO_WORDS
        print(printable(f"{session.id}  {moment(session.at)}  {words}"))
    if there.kept:
        note(f"continue one: {placed_here(command_of('teamchat', 'adopt', there.member.name, there.kept[0].id))}")
    else:
        note(printable(f"there is no session of {there.agent} in {there.member.cwd}"))
