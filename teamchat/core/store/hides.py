"""The messages that were undone in a session: they keep their ids, and no prompt, list or summary has them."""

from __future__ import annotations

from collections.abc import Iterable

from teamchat.core.store.database import Database


def hide_messages(db: Database, session: int, messages: Iterable[str], undo: int | None = None) -> None:
    """Hide the messages of these ids. Those of an `undo` come back with `show_messages`."""
    db.executemany(
        """INSERT INTO hides (session, message, undo)
        SELECT ?1, id, ?3 FROM messages WHERE session = ?1 AND message = ?2""",
        ((session, message, undo) for message in messages),
    )


def show_messages(db: Database, undo: int) -> None:
    """Bring back what an undo has hidden."""
    db.execute("DELETE FROM hides WHERE undo = ?", undo)


def hidden_reply(db: Database, undo: int, turn: int) -> str | None:
    """The id of the reply of a turn that an undo has hidden."""
    return db.value(
        lambda row: row.text("message"),
        """SELECT messages.message FROM hides JOIN messages ON messages.id = hides.message
        WHERE hides.undo = ? AND messages.turn = ?""",
        undo, turn,
    )  # fmt: skip
