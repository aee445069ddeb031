"""The messages of a session: its own and, for a branch, the messages shared with the sessions before it.

Messages that were undone keep their ids, and no prompt, list or summary has them.

A session has a row for itself, and a branch one for each session whose messages it shares, up to the message `through`.
Shared messages are not copied. A message hidden in one session is not hidden in another.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from teamchat.core.errors import UsageError
from teamchat.core.store.counting import count_messages
from teamchat.core.store.database import Database
from teamchat.core.text.commands import command_of

MESSAGES = """lineage CROSS JOIN messages
    ON messages.session = lineage.ancestor AND messages.id <= lineage.through"""
"""The messages of a `lineage.session`, hidden ones among them. CROSS JOIN keeps the order of the loops."""
MOST_LISTED = 10  # branches in an error
OF_ID = f"SELECT messages.id FROM {MESSAGES} WHERE lineage.session = ?1 AND messages.message = ?2"  # noqa: S608


def share_messages(db: Database, session: int, branch: int, through: int) -> None:
    """Let the empty session `branch` begin with the messages of `session` up to the one of the store's id `through`.

    The branch also gets the todo list, the summaries and the hidden messages as of that message. Part of the caller's
    transaction.
    """
    count_messages(db, session)
    for sql in SHARE:
        db.execute(sql, session, branch, through)


SHARE = (
    """INSERT INTO lineage (session, ancestor, through, todos)
    SELECT ?2, ancestor, min(through, ?3), min(todos, (SELECT COALESCE(MAX(id), 0) FROM todo_changes))
    FROM lineage AS part WHERE session = ?1 AND ?3 > COALESCE(
        (SELECT MAX(through) FROM lineage AS earlier WHERE earlier.session = ?1 AND earlier.through < part.through), 0
    )""",
    # changes by a command before the first message that is not shared
    """INSERT INTO todo_changes (session, number, what, text, "by", at, place)
    SELECT ?2, number, what, text, "by", at, place FROM lineage
    JOIN todo_changes ON todo_changes.session = ancestor AND todo_changes.id <= todos AND place <= ?3
    WHERE lineage.session = ?1 AND ancestor NOT IN (SELECT ancestor FROM lineage WHERE session = ?2 AND ancestor <> ?2)
    ORDER BY lineage.through, todo_changes.id""",
    "INSERT INTO hides (session, message) SELECT ?2, message FROM hides WHERE session = ?1 AND message <= ?3",
    # copied, so that an undo in the session takes none away from the branch
    """INSERT INTO summaries (session, turn, through, without, kept, text)
    SELECT ?2, turn, summaries.through, without, kept, summaries.text FROM summaries
    JOIN turns ON turns.id = summaries.turn AND (turns.undone IS NULL OR turns.session <> ?1)
    WHERE summaries.session = ?1 AND summaries.through <= ?3 ORDER BY summaries.through, summaries.id""",
    f"""UPDATE sessions SET shared = CASE
        WHEN EXISTS (SELECT 1 FROM {MESSAGES} WHERE lineage.session = ?1 AND messages.id > ?3)
        THEN (SELECT COALESCE(MAX(number), 0) FROM {MESSAGES} WHERE lineage.session = ?2 AND messages.id <= ?3)
        ELSE (SELECT max(last_number, shared) FROM sessions WHERE id = ?1)
    END WHERE id = ?2 AND ?1 <> ?2""",  # noqa: S608 (our own words)
    # counted from the end, where most branches begin
    f"""UPDATE sessions SET message_count = message_count + (SELECT message_count FROM sessions WHERE id = ?1)
        + (SELECT COUNT(*) FROM hides WHERE session = ?1)
        - (SELECT COUNT(*) FROM {MESSAGES} WHERE lineage.session = ?1 AND messages.id > ?3)
    WHERE id = ?2 AND ?1 <> ?2""",  # noqa: S608 (our own words)
)


def place_of(db: Database, session: int, message: str) -> int | None:
    """Return the store's id for a message of the session, hidden or not; None if there is no such message."""
    return db.scalar(int, OF_ID, session, message)


def last_shared(db: Database, session: int, other: int) -> str | None:
    """Find the last message that both sessions show, and return its id; None if they share none."""
    return db.scalar(
        str,
        """SELECT message FROM messages WHERE id = (
            SELECT MAX((
                SELECT id FROM messages WHERE session = one.ancestor AND id <= min(one.through, other.through)
                AND NOT EXISTS (SELECT 1 FROM hides WHERE session IN (?1, ?2) AND hides.message = messages.id)
                ORDER BY id DESC LIMIT 1
            )) FROM lineage AS one JOIN lineage AS other ON other.session = ?2 AND other.ancestor = one.ancestor
            WHERE one.session = ?1
        )""",
        session, other,
    )  # fmt: skip


def owner_of(db: Database, place: int) -> int:
    """Return the session where the message with that store id was said."""
    return db.number("SELECT session FROM messages WHERE id = ?", place)


class LineagePart(Struct, frozen=True):
    """The messages that a session has from one session: those up to the id `through` in the store."""

    session: int
    name: str
    through: int


def parts_from(db: Database, session: int, place: int) -> list[LineagePart]:
    """List the parts of a session's messages from the message with the store id `place` on, in order."""
    return db.values(
        lambda row: LineagePart(row.integer("ancestor"), row.text("name"), row.integer("through")),
        """SELECT ancestor, name, through FROM lineage JOIN sessions ON sessions.id = ancestor
        WHERE session = ? AND through >= ? ORDER BY through""",
        session, place,
    )  # fmt: skip


def parent_of(db: Database, session: int) -> tuple[str, str] | None:
    """Name the session that a branch shares messages with, and the last of them; None if it is not a branch."""
    return db.value(
        lambda row: (row.text("name"), row.text("message")),
        """SELECT sessions.name, messages.message FROM lineage
        JOIN sessions ON sessions.id = lineage.ancestor
        JOIN messages ON messages.id = lineage.through
        WHERE lineage.session = ?1 AND ancestor <> ?1 ORDER BY lineage.through DESC LIMIT 1""",
        session,
    )


def refuse_branches(db: Database, session: int) -> None:
    """Raise `UsageError` if other sessions share messages of the session: they would lose them."""
    names = db.column(
        str,
        """SELECT name FROM lineage JOIN sessions ON sessions.id = lineage.session
        WHERE ancestor = ?1 AND session <> ?1 ORDER BY sessions.id DESC""",  # a branch before what it is a branch of
        session,
    )
    if names:
        listed = ", ".join(names[:MOST_LISTED]) + (f" and {len(names) - MOST_LISTED} more" * (len(names) > MOST_LISTED))
        shares, them = ("shares", "a branch); delete that") if len(names) == 1 else ("share", "branches); delete them")
        deleting = (command_of("teamchat", "sessions", "delete", name) for name in names[:MOST_LISTED])
        raise UsageError(f"{listed} {shares} its messages ({them} first", "\n".join(deleting))


def hide_messages(db: Database, session: int, messages: Iterable[str], undo: int | None = None) -> None:
    """Hide the messages with these ids. `show_messages` brings back those hidden by an `undo`."""
    db.executemany(
        """INSERT INTO hides (session, message, undo)
        SELECT ?1, id, ?3 FROM messages WHERE session = ?1 AND message = ?2""",
        ((session, message, undo) for message in messages),
    )


def show_messages(db: Database, undo: int) -> None:
    """Bring back the messages that an undo hid."""
    db.execute("DELETE FROM hides WHERE undo = ?", undo)


def hidden_reply(db: Database, undo: int, turn: int) -> str | None:
    """Return the id of a turn's reply that an undo hid."""
    return db.scalar(
        str,
        """SELECT messages.message FROM hides JOIN messages ON messages.id = hides.message
        WHERE hides.undo = ? AND messages.turn = ?""",
        undo, turn,
    )  # fmt: skip
