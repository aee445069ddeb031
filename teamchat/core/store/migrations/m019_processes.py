from __future__ import annotations

import sqlite3


def m019_processes(db: sqlite3.Connection) -> None:
    """Store the process of a session, and what a route does in it."""
    db.execute("ALTER TABLE sessions ADD COLUMN process TEXT")
    db.execute("ALTER TABLE routes ADD COLUMN part TEXT")
