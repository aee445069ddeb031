from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.complete import sessions
from teamchat.cli.options import TeamOption, session_name

if TYPE_CHECKING:
    from teamchat.core.store.sessions import Session


def delete(
    name: Annotated[
        str, typer.Argument(metavar="NAME", autocompletion=sessions, callback=session_name, help="The conversation.")
    ],
    team: TeamOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a conversation for good: its messages, turns and receipts. What agents keep of their own stays."""
    from teamchat.cli.conversation import held
    from teamchat.cli.output.words import note
    from teamchat.cli.place import find_root, open_store
    from teamchat.core.deleting import delete_session
    from teamchat.core.printable import printable
    from teamchat.core.recovery import clean_turns, turns_dir
    from teamchat.core.store.sessions import need_session

    root = find_root(team)
    with open_store(root) as db:
        chosen = need_session(db, name)
        with held(root, db, chosen, wait=False):
            if not (yes or confirmed(chosen)):
                note(f"session {chosen.name} stays")
                return
            kept = delete_session(db, chosen)
            problems = clean_turns(db, chosen.id, turns_dir(db))
        note(f"session {chosen.name} is deleted: {size(chosen)}")
        for problem in problems:
            note(printable(problem))
        for left in kept:
            names = ", ".join(left.sessions)
            note(printable(f"what {left.agent} itself keeps stays in {left.folder}: {names}"))


def confirmed(session: Session) -> bool:
    """Whether the person at the terminal says so. Raises `UsageError` where there is none."""
    import shlex
    import sys

    from teamchat.core.errors import UsageError

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"session {session.name} ({size(session)}) would be deleted for good, and there is nobody to ask",
            shlex.join(["teamchat", "sessions", "delete", "--yes", session.name]),
        )
    print(f"Delete session {session.name} ({size(session)}) for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def size(session: Session) -> str:
    from teamchat.cli.output.words import plural

    return f"{plural(session.messages, 'message')}, {plural(session.turns, 'turn')}"
