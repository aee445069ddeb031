from __future__ import annotations

import sqlite3


def m018_counted_together(db: sqlite3.Connection) -> None:
    """Count messages together, so that storing one does not write to its session."""
    for statement in COUNTED_TOGETHER:
        db.execute(statement)


ALL_COUNTED = """UPDATE sessions
    SET counted_through = (SELECT COALESCE(MAX(id), 0) FROM messages WHERE session = sessions.id)"""
COUNTED_TOGETHER: tuple[str, ...] = (
    # the id of the last of its own messages that is in `message_count` and `last_number`; see `counting.py`
    "ALTER TABLE sessions ADD COLUMN counted_through INTEGER NOT NULL DEFAULT 0",
    ALL_COUNTED,
    "DROP TRIGGER message_counted",
    "DROP TRIGGER message_uncounted",
    # a session's messages are deleted from its end, and its later ones may get the ids of deleted ones
    """CREATE TRIGGER message_uncounted AFTER DELETE ON messages BEGIN
        UPDATE sessions SET message_count = message_count - (old.id <= counted_through),
            last_number = max(last_number, COALESCE(old.number, 0)), counted_through = min(counted_through, old.id - 1)
        WHERE id = old.session;
    END""",
)
