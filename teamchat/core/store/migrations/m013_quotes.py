from __future__ import annotations

import sqlite3


def m013_quotes(db: sqlite3.Connection) -> None:
    """Store what prompts quote of a message, so that its markers are read once."""
    # TEXT; 0: the whole content; NULL, as of a message from before: it is made when a prompt needs it. Whoever changes
    # how markers are read sets it to NULL in a migration, or old messages are quoted as they were
    db.execute("ALTER TABLE messages ADD COLUMN quoted ANY")
