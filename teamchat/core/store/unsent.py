"""Messages that wait for a run which sends them: typed while members worked, or handed over by another process.

Only a chat sends messages that `chat` keeps. Messages handed over by another process are sent between two turns by the
run at work, or by any later one. While a run takes such messages its process is the session's `taker`; a message is
handed over in the same transaction that sees the taker, and a run stops to take them in one that sees none. So none is
left behind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection

from msgspec import Struct

from teamchat.core.messages import Span
from teamchat.core.store.database import Database
from teamchat.core.store.messages import spans, stored_spans
from teamchat.core.store.rows import Moment, Row
from teamchat.runners.child.guardian import named, number_here


class Unsent(Struct, frozen=True):
    """A message that waits to be sent; `speaker` and `to` are as for `send`."""

    id: int
    text: str
    speaker: str | None
    to: str | None
    at: Moment
    """The time of typing, in seconds since 1970."""
    typed: int
    """The number of characters at the beginning that a person typed."""
    handed_over: bool = False
    pasted: tuple[Span, ...] = ()
    """The parts of these characters that the person pasted in several lines."""
    editor: str | None = None
    """The process in whose prompt it was put, as the guardian's `named` names it.

    While that process lives, nobody else has the message.
    """

    @property
    def is_edited(self) -> bool:
        """Whether a person edits it in the prompt of a living process."""
        return self.editor is not None and number_here(self.editor) is not None


def an_unsent_message(row: Row) -> Unsent:
    typed = row.integer_or_none("typed")
    return row.read(Unsent, typed=len(row.text("text")) if typed is None else typed, pasted=spans(row.text("pasted")))


def keep_unsent(
    db: Database,
    session: int,
    text: str,
    speaker: str | None,
    to: str | None,
    *,
    typed: int | None = None,
    handed_over: bool = False,
    pasted: tuple[Span, ...] = (),
) -> Unsent:
    """Store a message behind the waiting ones: for a chat, or `handed_over` for any run. `typed` None: all of it."""
    now, typed = time.time(), len(text) if typed is None else typed
    with db.transaction():
        added = db.execute(
            'INSERT INTO unsent (session, text, speaker, "to", at, typed, handed_over, pasted)'
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            session, text, speaker, to, now, typed, handed_over, stored_spans(pasted),
        )  # fmt: skip
    return Unsent(added.lastrowid or 0, text, speaker, to, now, typed, handed_over, pasted)


def hand_over(
    db: Database, session: int, text: str, speaker: str | None, to: str | None, *, typed: int, taker: int
) -> Unsent | None:
    """Store a message for the run of the process `taker`; return None if that takes no messages, or none any more."""
    with db.transaction():
        if taker_of(db, session) != taker:
            return None
        return keep_unsent(db, session, text, speaker, to, typed=typed, handed_over=True)


def kept_of(db: Database, session: int) -> list[Unsent]:
    """List all unsent messages in the order typed, including messages that a person edits."""
    return db.values(an_unsent_message, "SELECT * FROM unsent WHERE session = ? AND sent IS NULL ORDER BY id", session)


def unsent_of(db: Database, session: int) -> list[Unsent]:
    """List the messages that wait to be sent, in the order typed."""
    return [unsent for unsent in kept_of(db, session) if not unsent.is_edited]


def handed_over_to(db: Database, session: int) -> list[Unsent]:
    """List the waiting messages that any run sends."""
    return [unsent for unsent in unsent_of(db, session) if unsent.handed_over]


def mark_sent(db: Database, unsent: Unsent, message: str) -> None:
    """Note which message a handed-over one has become, for its sender; remove any other one."""
    if unsent.handed_over:
        db.execute("UPDATE unsent SET sent = ?, text = '' WHERE id = ?", message, unsent.id)
    else:
        remove_unsent(db, unsent.id)


def is_unsent(db: Database, number: int) -> bool:
    """Whether the message with that id still waits: it was not sent or removed, and no person edits it."""
    message = db.value(an_unsent_message, "SELECT * FROM unsent WHERE id = ? AND sent IS NULL", number)
    return message is not None and not message.is_edited


def edit_unsent(db: Database, number: int) -> bool:
    """Let this process edit the message with that id. False if it was sent or removed, or somebody else edits it.

    The message is kept until `remove_unsent`, or until this process ends and the others have it again.
    """
    with db.transaction():
        if not is_unsent(db, number):
            return False
        db.execute("UPDATE unsent SET editor = ? WHERE id = ?", named(os.getpid()), number)
        return True


def put_back_unsent(db: Database, number: int) -> None:
    """Let the message with that id wait again unchanged."""
    db.execute("UPDATE unsent SET editor = NULL WHERE id = ?", number)


def sent_as(db: Database, number: int) -> str | None:
    """Return the id of the message that it has become, if it was sent."""
    return db.scalar(str, "SELECT sent FROM unsent WHERE id = ?", number)


def remove_unsent(db: Database, number: int) -> bool:
    """Remove the message with that id. False if it was sent, or somebody else has just removed it."""
    return db.execute("DELETE FROM unsent WHERE id = ? AND sent IS NULL", number).rowcount == 1


def taker_of(db: Database, session: int) -> int | None:
    """Return the process whose run takes handed-over messages, unless it was killed."""
    return db.scalar(int, "SELECT taker FROM sessions WHERE id = ?", session)


def begin_taking(db: Database, session: int, process: int) -> None:
    """Let other processes hand messages over to the run of this one."""
    db.execute("UPDATE sessions SET taker = ? WHERE id = ?", process, session)


def end_taking(db: Database, session: int, refused: Collection[int] | None = None) -> bool:
    """Take no more messages. With `refused`, only if no others than these wait; False if another one does."""
    with db.transaction():
        if refused is not None and any(message.id not in refused for message in handed_over_to(db, session)):
            return False
        db.execute("UPDATE sessions SET taker = NULL WHERE id = ?", session)
        return True
