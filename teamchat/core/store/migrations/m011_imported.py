from __future__ import annotations

import sqlite3


def m011_imported(db: sqlite3.Connection) -> None:
    """Store what an imported conversation has besides messages."""
    db.execute(
        """CREATE TABLE imported_entries (
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL, -- in the order of the file
        message TEXT,            -- that it belongs to; NULL of a turn that gave none
        after TEXT,              -- the message before a turn that gave none
        turn TEXT,               -- JSON
        images TEXT NOT NULL,    -- JSON: names
        PRIMARY KEY (session, number)
    ) STRICT, WITHOUT ROWID"""
    )
