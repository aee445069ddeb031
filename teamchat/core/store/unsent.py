"""What a person typed while members worked, kept until it can be sent."""

from __future__ import annotations

import time

from msgspec import Struct

from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row


class Unsent(Struct, frozen=True):
    """`speaker` and `to` are as for `send`; `at` is the time of typing in seconds since the epoch."""

    id: int
    text: str
    speaker: str | None
    to: str | None
    at: float


def an_unsent_message(row: Row) -> Unsent:
    return Unsent(
        id=row.integer("id"),
        text=row.text("text"),
        speaker=row.text_or_none("speaker"),
        to=row.text_or_none("to"),
        at=row.moment("at"),
    )


def keep_unsent(db: Database, session: int, text: str, speaker: str | None, to: str | None) -> Unsent:
    """Store a message that is to be sent later, behind those that are kept already."""
    now = time.time()
    with db.transaction():
        added = db.execute(
            'INSERT INTO unsent (session, text, speaker, "to", at) VALUES (?, ?, ?, ?, ?)',
            session, text, speaker, to, now,
        )  # fmt: skip
        return Unsent(added.lastrowid or 0, text, speaker, to, now)


def unsent_of(db: Database, session: int) -> list[Unsent]:
    """In the order typed."""
    return db.values(an_unsent_message, "SELECT * FROM unsent WHERE session = ? ORDER BY id", session)


def remove_unsent(db: Database, number: int) -> bool:
    """Remove the message with that id, to send it or to edit it. False if somebody else has just removed it."""
    return db.execute("DELETE FROM unsent WHERE id = ?", number).rowcount == 1
