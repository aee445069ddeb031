from __future__ import annotations

import sqlite3


def m002_order_of_use(db: sqlite3.Connection) -> None:
    """Order conversations by a counter of their use, because a clock may be set back."""
    db.execute("ALTER TABLE sessions ADD COLUMN used INTEGER NOT NULL DEFAULT 0")
    db.execute(
        """UPDATE sessions SET used = (SELECT COUNT(*) FROM sessions AS other
        WHERE (other.used_at, other.id) <= (sessions.used_at, sessions.id))"""
    )
