from __future__ import annotations

import sys
from typing import Annotated

import typer

from teamchat.cli.log import queue_lines
from teamchat.cli.output import EachMessage, Output
from teamchat.cli.output.lines import note
from teamchat.cli.output.long import write_block
from teamchat.cli.output.plain import PlainOutput
from teamchat.cli.running.showing import choose_output
from teamchat.cli.running.watching import show_as_it_happens, team_to_show
from teamchat.cli.startup.options import JsonOption, PlaceOptions, ShownOptions, StreamOption, at_least
from teamchat.cli.startup.workspace import find_root, lock_file, open_store
from teamchat.core.conversation.following import Follower
from teamchat.core.conversation.retelling import Retold
from teamchat.core.messages import name_of
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import need_session


def watch(
    last: Annotated[
        int, typer.Option("--last", callback=at_least(0), metavar="N", help="Begin with the last N messages.")
    ] = 3,
    until_done: Annotated[bool, typer.Option("--until-done", help="End with the run, and with its exit code.")] = False,
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
    stream: StreamOption = False,
) -> int:
    """Show a conversation that runs in another terminal as it happens. Ctrl-C ends the view, not the conversation."""
    show = ShownOptions(as_json, stream)
    root = find_root(place.team)
    with open_store(root) as db:
        chosen = need_session(db, place.session)
        follower = Follower(db, chosen, team_to_show(place.team, chosen, root), lock_file(root, chosen.id))
        messages = list(SqliteLog(db, chosen.id).newest(last)) if last else []
        follower.shown = messages[-1].id if messages else None

        def output_of() -> Output:
            if as_json or sys.stdout.isatty():
                return choose_output(follower.team, chosen.name, show)
            return EachMessage(lambda said: write_block(name_of(said.message), said.message.content), PlainOutput())

        before, retold = output_of(), Retold(db, chosen.id)
        for message in messages:
            before(retold.message(message))
        before.close()
        if not follower.active:
            for line in queue_lines(root, db, chosen, place.team):
                note(line)
        return show_as_it_happens(follower, output_of, until_done=until_done)
