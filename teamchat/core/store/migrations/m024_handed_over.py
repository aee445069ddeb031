from __future__ import annotations

import sqlite3


def m024_handed_over(db: sqlite3.Connection) -> None:
    """Store messages that one process hands over to the run of another one, and who takes them."""
    db.execute("ALTER TABLE unsent ADD COLUMN handed_over INTEGER NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE unsent ADD COLUMN typed INTEGER")  # characters that a person typed; NULL is all of them
    db.execute("ALTER TABLE unsent ADD COLUMN sent TEXT")  # the message that one has become: its sender may wait for it
    db.execute("ALTER TABLE sessions ADD COLUMN taker INTEGER")  # the process whose run takes such messages now
