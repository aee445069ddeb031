"""Messages taken back and brought back in a store, without a turn that is undone."""

from __future__ import annotations

from teamchat.core.store.database import Database


def hide(db: Database, *messages: str) -> None:
    """Take back the messages of these ids, in every session that has them."""
    for message in messages:
        db.execute("INSERT INTO hides (session, message) SELECT session, id FROM messages WHERE message = ?", message)


def show(db: Database, *messages: str) -> None:
    """Bring them back."""
    for message in messages:
        db.execute("DELETE FROM hides WHERE message IN (SELECT id FROM messages WHERE message = ?)", message)
