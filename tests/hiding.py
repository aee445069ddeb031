"""Messages taken back and brought back in a store, with or without a turn that is undone."""

from __future__ import annotations

from pathlib import Path

from teamchat.cli.startup.workspace import open_store
from teamchat.core.conversation.recovery import turns_dir
from teamchat.core.conversation.undo.messages import plan_undo, undo_conversation
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import need_session
from teamchat.core.team.find import load
from teamchat.core.turn.run import Run, rules_of
from teamchat.runners.child.supervisor import Stopper


def hide(db: Database, *messages: str) -> None:
    """Take back the messages of these ids, in every session that has them."""
    for message in messages:
        db.execute("INSERT INTO hides (session, message) SELECT session, id FROM messages WHERE message = ?", message)


def show(db: Database, *messages: str) -> None:
    """Bring them back."""
    for message in messages:
        db.execute("DELETE FROM hides WHERE message IN (SELECT id FROM messages WHERE message = ?)", message)


def undo(turn: int, session: str | None = None) -> None:
    """Undo the conversation of the working folder from that turn on."""
    team = load(Path("teamchat.toml").absolute())
    with open_store(team.root) as db:
        plan = plan_undo(db, need_session(db, session), rules_of(team), turn)
        run = Run(team, db, plan.session.id, folder=turns_dir(db), stopper=Stopper(), emit=lambda _: None)
        undo_conversation(run, plan)
