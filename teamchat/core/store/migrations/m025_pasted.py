from __future__ import annotations

import sqlite3


def m025_pasted(db: sqlite3.Connection) -> None:
    """Store which parts of a message a person pasted in several lines, as a JSON array of their ends."""
    db.execute("ALTER TABLE messages ADD COLUMN pasted TEXT NOT NULL DEFAULT '[]'")
    db.execute("ALTER TABLE unsent ADD COLUMN pasted TEXT NOT NULL DEFAULT '[]'")
