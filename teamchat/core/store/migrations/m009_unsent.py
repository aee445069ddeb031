from __future__ import annotations

import sqlite3


def m009_unsent(db: sqlite3.Connection) -> None:
    """Store what a person types while members work, until it can be sent."""
    db.execute(
        """CREATE TABLE unsent (
            id INTEGER PRIMARY KEY AUTOINCREMENT, -- one that was taken back gives its id to no other
            session INTEGER NOT NULL REFERENCES sessions,
            text TEXT NOT NULL,
            speaker TEXT,   -- as for `--as`
            "to" TEXT,      -- as for `--to`
            at REAL NOT NULL
        ) STRICT"""
    )
    db.execute("CREATE INDEX unsent_in_order ON unsent (session, id)")
