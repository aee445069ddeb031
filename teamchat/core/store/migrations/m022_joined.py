from __future__ import annotations

import sqlite3


def m022_joined(db: sqlite3.Connection) -> None:
    """Store which further calls a turn answers."""
    db.execute("ALTER TABLE routes ADD COLUMN also TEXT")  # JSON
