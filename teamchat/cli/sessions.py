from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from teamchat.cli.output.lines import confirmed, note, plural
from teamchat.cli.output.listing import plain_line, state_of, table
from teamchat.cli.startup import complete
from teamchat.cli.startup.options import JsonOption, TeamOption, YesOption, session_name, session_title
from teamchat.cli.startup.workspace import find_root, is_held, need_person, note_moved, open_store
from teamchat.core.errors import UsageError
from teamchat.core.store import listing
from teamchat.core.store.checks import running_checks
from teamchat.core.store.lineage import refuse_branches
from teamchat.core.store.listing import title_of
from teamchat.core.store.sessions import Session, current_session, need_session, rename_session
from teamchat.core.store.turns import turns_in_places
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of, quote


def delete(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", autocompletion=complete.sessions, callback=session_name, help="The conversation."
        ),
    ],
    team: TeamOption = None,
    yes: YesOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also with worktrees not merged; what only they have moves.")
    ] = False,
) -> None:
    """Delete a conversation for good: its messages, turns and receipts. The agents' own session files stay."""
    from teamchat.cli.running.converse import held
    from teamchat.cli.worktrees import removed_lines
    from teamchat.core.conversation.recovery import clean_turns, refuse_on_hosts, turns_dir
    from teamchat.core.conversation.sessions.delete import delete_session
    from teamchat.core.turn.run_file import remove_run_file
    from teamchat.core.worktrees.records import all_of
    from teamchat.core.worktrees.remove import need_merged, remove, told

    need_person("conversations are deleted")
    root = find_root(team)
    with open_store(root) as db:
        chosen = need_session(db, name)
        refuse_branches(db, chosen.id)
        with held(root, db, chosen, wait=False):
            refuse_on_hosts(db, chosen.id)
            state = db.path.parent
            own = all_of(state, chosen.id)
            if not force:
                try:
                    need_merged(state, own, turns_in_places(db, chosen.id))
                except UsageError as error:  # with commands for that session, which need not be the one that is used
                    commands = (f"{line} --session {quote(chosen.name)}" for line in (error.hint or "").splitlines())
                    raise UsageError(str(error), "\n".join(commands)) from None
            if not (yes or confirm_deletion(chosen)):
                note(f"session {chosen.name} was not deleted")
                return
            gone = [remove(state, tree) for tree in own]
            left = [line for removed in gone for line in removed_lines(removed)]
            vendors, problems = delete_session(db, chosen)
            problems += clean_turns(db, chosen.id, turns_dir(db))
            remove_run_file(state, chosen.id)
        note(f"session {chosen.name} is deleted: {session_size(chosen)}")
        for line in (*left, *map(printable, problems)):
            note(line)
        for removed in gone:
            told(removed)
        for vendor in vendors:
            names = ", ".join(vendor.sessions)
            note(printable(f"{vendor.agent} keeps its own session files in {vendor.folder}: {names}"))


def confirm_deletion(session: Session) -> bool:
    """Return whether the person at the terminal confirms it. Raises `UsageError` if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"session {session.name} ({session_size(session)}) would be deleted for good,"
            " and there is no terminal to ask on",
            command_of("teamchat", "sessions", "delete", "--yes", session.name),
        )
    return confirmed(f"Delete session {session.name} ({session_size(session)}) for good?")


def session_size(session: Session) -> str:
    return f"{plural(session.messages, 'message')}, {plural(session.turns, 'turn')}"


def rename(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", autocompletion=complete.sessions, callback=session_name, help="The conversation."
        ),
    ],
    title: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TITLE]...", show_default=False, help="Its new title; without one it is its first words again."
        ),
    ] = None,
    team: TeamOption = None,
) -> None:
    """Give a conversation another title. Its name, which --session takes, stays."""
    need_person("conversations are renamed")
    line = session_title(" ".join(title)) if title else None
    with open_store(find_root(team)) as db:
        rename_session(db, need_session(db, name).id, line)
        renamed = need_session(db, name)
        note(f"session {renamed.name} is titled: {title_of(db, renamed)}")


def move(
    old: Annotated[
        str, typer.Argument(metavar="OLD-FOLDER", autocompletion=complete.moved, help="Where this folder was before.")
    ],
    team: TeamOption = None,
    yes: YesOption = False,
) -> None:
    """Take over the conversations of a folder that has been renamed or moved to where you are."""
    from teamchat.core.conversation.sessions import move as moving

    need_person("conversations are moved")
    plan = moving.plan_move(Path(old), find_root(team))
    what = printable(f"{plural(len(plan.sessions), 'conversation')} of {plan.old}")
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(
                f"{what} would be taken over, and there is no terminal to ask on",
                command_of("teamchat", "sessions", "move", "--yes", old),
            )
        if not confirmed(f"Take over {what}, for {printable(str(plan.new))}?"):
            note("nothing was moved")
            return
    moving.move(plan)
    note(f"{what}: taken over; what the team file may do is asked anew")


sessions = typer.Typer(invoke_without_command=True)
sessions.command()(delete)
sessions.command()(rename)
sessions.command()(move)


@sessions.callback()
def list_sessions(ctx: typer.Context, team: TeamOption = None, as_json: JsonOption = False) -> None:
    """List, rename, delete or move conversations. The one that was used last is first.

    ▸ marks the conversation that a command continues here without --session.
    """
    if ctx.invoked_subcommand:
        if team or as_json:
            raise UsageError("options go behind the command", f"teamchat sessions {ctx.invoked_subcommand} --help")
        return
    root, now = find_root(team), time.time()
    with open_store(root) as db:
        known = listing.list_sessions(db)
        checked = {listed.session.id: running_checks(db, listed.session.id) for listed in known}
        current = current_session(db, os.environ.get("TEAMCHAT_SESSION"))
    ids = [listed.session.id for listed in known if listed.queue or listed.running or checked[listed.session.id]]
    busy = {number for number in ids if is_held(root, number)}
    rows = [
        (listed, state_of(listed, checked[listed.session.id], held=listed.session.id in busy, now=now))
        for listed in known
    ]
    here = [current.id] if current else []
    if as_json:
        from teamchat.cli.output.jsonl import listed_fields, write_line

        for listed, state in rows:
            write_line("session", **listed_fields(listed, state, current=listed.session.id in here))
    elif not rows:
        note("there is no conversation here yet")
        note_moved(root)
    elif sys.stdout.isatty():
        for line in table(rows, here, shutil.get_terminal_size().columns, now):
            print(line)
    else:
        for listed, state in rows:
            print(plain_line(listed, state))
