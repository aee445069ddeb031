from __future__ import annotations

import sqlite3


def m025_pasted(db: sqlite3.Connection) -> None:
    """Store which parts of a message a person pasted in several lines, as a JSON array of their ends.

    A table of its own, because nothing may follow the long rest of a message in its row.
    """
    db.execute(
        """CREATE TABLE pastes (
            message INTEGER PRIMARY KEY REFERENCES messages,
            session INTEGER NOT NULL REFERENCES sessions,
            parts TEXT NOT NULL
        ) STRICT"""
    )
    db.execute("CREATE INDEX pastes_by_session ON pastes (session)")
    db.execute("ALTER TABLE unsent ADD COLUMN pasted TEXT NOT NULL DEFAULT '[]'")
