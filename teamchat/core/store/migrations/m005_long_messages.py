from __future__ import annotations

import sqlite3


def m005_long_messages(db: sqlite3.Connection) -> None:
    """Store what follows the first million characters of a message as UTF-8 that is written and read in pieces.

    Because it is the last column, SQLite can reserve its bytes as zeros without holding them in memory.
    """
    db.execute("ALTER TABLE messages ADD COLUMN rest BLOB NOT NULL DEFAULT x''")
