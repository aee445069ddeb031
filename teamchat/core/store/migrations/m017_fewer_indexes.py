from __future__ import annotations

import sqlite3


def m017_fewer_indexes(db: sqlite3.Connection) -> None:
    """Write to fewer indexes for a message."""
    for statement in FEWER_INDEXES:
        db.execute(statement)


FEWER_INDEXES: tuple[str, ...] = (
    "DROP INDEX messages_by_turn",
    "CREATE INDEX messages_by_turn ON messages (turn) WHERE turn NOT NULL",
    # of messages that were added to the index of words together: the first id, and the greatest time of them
    """CREATE TABLE message_times (
        first INTEGER PRIMARY KEY,
        latest INTEGER NOT NULL
    ) STRICT""",
    """INSERT INTO message_times SELECT MIN(id), MAX(timestamp) FROM messages WHERE id <= (SELECT through FROM indexed)
        GROUP BY id / 256""",
    "DROP INDEX messages_by_time",
)
