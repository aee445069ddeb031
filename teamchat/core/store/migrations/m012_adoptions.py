from __future__ import annotations

import sqlite3


def m012_adoptions(db: sqlite3.Connection) -> None:
    """Store the sessions of agent CLIs that members are to continue."""
    db.execute(
        """CREATE TABLE adoptions (
        session INTEGER NOT NULL REFERENCES sessions,
        member TEXT NOT NULL,
        agent TEXT NOT NULL,
        vendor_session TEXT NOT NULL,
        message TEXT NOT NULL,   -- the id of the one that tells of it
        after INTEGER NOT NULL,  -- the number of the last turn before it; 0 is none
        PRIMARY KEY (session, member)
    ) STRICT, WITHOUT ROWID"""
    )
