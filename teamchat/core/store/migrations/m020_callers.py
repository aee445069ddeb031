from __future__ import annotations

import sqlite3

from teamchat.core.store.migrations.m014_any_length import QUANTITIES


def m020_callers(db: sqlite3.Connection) -> None:
    """Store in which turn an agent began a session, and what the sessions have used that agents run in their turns."""
    db.execute("ALTER TABLE sessions ADD COLUMN caller TEXT")  # JSON: its store, session, turn and member
    db.execute(
        f"""CREATE TABLE children (
            session INTEGER NOT NULL REFERENCES sessions,
            turn INTEGER NOT NULL REFERENCES turns, -- of the session, whose agent runs the child
            store TEXT NOT NULL,                    -- the file that the child is stored in
            child TEXT NOT NULL,                    -- its name there
            turns INTEGER NOT NULL,
            {", ".join(f"{name} REAL NOT NULL" for name in QUANTITIES)}, -- of the turns of which it is known
            {", ".join(f"no_{name} INTEGER NOT NULL" for name in QUANTITIES)}, -- the turns of which it is not
            PRIMARY KEY (session, turn, store, child)
        ) STRICT, WITHOUT ROWID"""
    )
