from __future__ import annotations

import sqlite3


def m021_admissions(db: sqlite3.Connection) -> None:
    """Store with a running turn what it may do, for a teamchat that its agent runs."""
    db.execute("ALTER TABLE turns ADD COLUMN admission TEXT")  # JSON, gone when the turn ends
