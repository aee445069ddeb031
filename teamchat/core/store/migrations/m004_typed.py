from __future__ import annotations

import sqlite3


def m004_typed(db: sqlite3.Connection) -> None:
    """Store how much of a person's message was typed. It is unknown for older messages, so nothing in them expands."""
    db.execute("ALTER TABLE messages ADD COLUMN typed INTEGER NOT NULL DEFAULT 0")
