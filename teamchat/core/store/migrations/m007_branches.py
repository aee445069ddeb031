from __future__ import annotations

import sqlite3


def m007_branches(db: sqlite3.Connection) -> None:
    for statement in BRANCHES:
        db.execute(statement)


BRANCHES: tuple[str, ...] = (
    # whose messages a session has: its own, all of them, and of a branch those of earlier sessions up to one message.
    # The ids of each part are greater than those of the next one, so that no query needs to sort.
    """CREATE TABLE lineage (
        session INTEGER NOT NULL REFERENCES sessions,
        ancestor INTEGER NOT NULL REFERENCES sessions,
        through INTEGER NOT NULL, -- the id of the last message
        todos INTEGER NOT NULL,   -- the id of the last todo change
        PRIMARY KEY (session, through)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX lineage_by_ancestor ON lineage (ancestor)",
    "INSERT INTO lineage SELECT id, id, 9223372036854775807, 9223372036854775807 FROM sessions",
    """CREATE TRIGGER session_begun AFTER INSERT ON sessions BEGIN
        INSERT OR IGNORE INTO lineage VALUES (new.id, new.id, 9223372036854775807, 9223372036854775807);
    END""",
    """CREATE TRIGGER session_gone BEFORE DELETE ON sessions BEGIN
        DELETE FROM lineage WHERE session = old.id;
    END""",
    # the greatest number of the messages that a branch shares: its own go on from there
    "ALTER TABLE sessions ADD COLUMN shared INTEGER NOT NULL DEFAULT 0",
    # the id of the newest message that the session had, shared ones included, when the change was made
    "ALTER TABLE todo_changes ADD COLUMN place INTEGER NOT NULL DEFAULT 0",
    """UPDATE todo_changes AS made SET place = COALESCE(
        (SELECT id FROM messages WHERE messages.session = made.session AND messages.message = made.message),
        (SELECT MAX(id) FROM messages WHERE messages.session = made.session AND timestamp <= at * 1000), 0)""",
)
