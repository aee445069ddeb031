"""The number of a session's messages, and its greatest `msg-N`.

Counting each message when it is stored writes one more page of the file for it. So the session's row has the counts up
to one message (`counted_through`), and later ones are counted when somebody asks: a few hundred at most.
"""

from __future__ import annotations

from teamchat.core.store.database import Database

COUNTED_TOGETHER = 256  # messages
COUNT = """UPDATE sessions SET (message_count, last_number, counted_through) = (
    SELECT message_count + COUNT(*), max(last_number, COALESCE(MAX(number), 0)),
        max(counted_through, COALESCE(MAX(messages.id), 0))
    FROM messages WHERE session = sessions.id AND messages.id > counted_through)"""
NOT_COUNTED = """(SELECT COUNT(*) FROM messages
    WHERE session = sessions.id AND messages.id > sessions.counted_through)"""
"""The number of a session's messages that its `message_count` leaves out."""
LAST_NUMBER = """max(last_number, COALESCE(
    (SELECT number FROM messages WHERE session = sessions.id ORDER BY messages.id DESC LIMIT 1), 0))"""
"""The greatest number of a session's own messages. Each message that is appended has a greater one than all before."""


def count_if_due(db: Database, session: int, number: int) -> None:
    """Count the messages not counted yet if they are many, in the transaction that stores message `number`."""
    if number % COUNTED_TOGETHER == 0:
        count_messages(db, session)


def count_messages(db: Database, session: int) -> None:
    """Count the messages of the session that are not counted yet."""
    db.execute(f"{COUNT} WHERE id = ?", session)
