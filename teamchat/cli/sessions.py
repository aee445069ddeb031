from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.shared import complete
from teamchat.cli.shared.options import JsonOption, TeamOption, session_name

if TYPE_CHECKING:
    from teamchat.core.store.sessions import Session


def delete(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", autocompletion=complete.sessions, callback=session_name, help="The conversation."
        ),
    ],
    team: TeamOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Lose members' changes that are not merged.")] = False,
) -> None:
    """Delete a conversation for good: its messages, turns and receipts. The agents' own session files stay."""
    from teamchat.cli.output.lines import note
    from teamchat.cli.shared.conversation import held
    from teamchat.cli.shared.workspace import find_root, open_store
    from teamchat.core.conversation.deleting import delete_session
    from teamchat.core.conversation.recovery import clean_turns, turns_dir
    from teamchat.core.store.lineage import refuse_branches
    from teamchat.core.store.sessions import need_session
    from teamchat.core.text.clean import printable
    from teamchat.core.worktrees.records import all_of
    from teamchat.core.worktrees.remove import need_merged, remove

    root = find_root(team)
    with open_store(root) as db:
        chosen = need_session(db, name)
        refuse_branches(db, chosen.id)
        with held(root, db, chosen, wait=False):
            state = db.path.parent
            own = all_of(state, chosen.id)
            if not force:
                need_merged(state, own)
            if not (yes or confirm_deletion(chosen)):
                note(f"session {chosen.name} was not deleted")
                return
            for tree in own:
                remove(state, tree)
            kept, problems = delete_session(db, chosen)
            problems += clean_turns(db, chosen.id, turns_dir(db))
        note(f"session {chosen.name} is deleted: {session_size(chosen)}")
        for problem in problems:
            note(printable(problem))
        for left in kept:
            names = ", ".join(left.sessions)
            note(printable(f"{left.agent} keeps its own session files in {left.folder}: {names}"))


def confirm_deletion(session: Session) -> bool:
    """True if the person at the terminal confirms it. Raises `UsageError` if there is no terminal."""
    import shlex
    import sys

    from teamchat.cli.output.lines import confirmed
    from teamchat.core.errors import UsageError

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"session {session.name} ({session_size(session)}) would be deleted for good,"
            " and there is no terminal to ask on",
            shlex.join(["teamchat", "sessions", "delete", "--yes", session.name]),
        )
    return confirmed(f"Delete session {session.name} ({session_size(session)}) for good?")


def session_size(session: Session) -> str:
    from teamchat.cli.output.lines import plural

    return f"{plural(session.messages, 'message')}, {plural(session.turns, 'turn')}"


LONGEST_TASK = 60  # characters shown in a list

sessions = typer.Typer(invoke_without_command=True)
sessions.command()(delete)


@sessions.callback()
def list_sessions(ctx: typer.Context, team: TeamOption = None, as_json: JsonOption = False) -> None:
    """List this workspace's conversations, the current one first, or delete one."""
    import dataclasses

    from teamchat.cli.output.jsonl import write_line
    from teamchat.cli.output.lines import moment, note
    from teamchat.cli.shared.workspace import find_root, open_store
    from teamchat.core.errors import UsageError
    from teamchat.core.store.lineage import parent_of
    from teamchat.core.store.sessions import all_sessions
    from teamchat.core.text.clean import printable
    from teamchat.runners.untrusted_json import one_line

    if ctx.invoked_subcommand:
        if team or as_json:
            raise UsageError("options go behind the command", f"teamchat sessions {ctx.invoked_subcommand} --help")
        return
    with open_store(find_root(team)) as db:
        known = all_sessions(db)
        if not (known or as_json):
            note("there is no conversation here yet")
        for found in known:
            parent = parent_of(db, found.id)
            if as_json:
                of = parent and {"session": parent[0], "at": parent[1]}
                write_line("session", **dataclasses.asdict(found), branch_of=of)
            else:
                counts = session_size(found)
                print(
                    f"{found.name}  {moment(found.used_at)}  {counts}  {printable(found.team)}"
                    + (f"  branch of {parent[0]} at {parent[1]}" if parent else "")
                    + (f"  {one_line(found.task, LONGEST_TASK)}" if found.task else "")
                )
