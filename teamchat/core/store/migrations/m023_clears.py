from __future__ import annotations

import sqlite3


def m023_clears(db: sqlite3.Connection) -> None:
    """Store from where on prompts begin, after a conversation was cleared."""
    db.execute(
        """CREATE TABLE clears (
            id INTEGER PRIMARY KEY,
            session INTEGER NOT NULL REFERENCES sessions,
            through INTEGER NOT NULL REFERENCES messages, -- the last message that prompts leave out
            turn INTEGER NOT NULL,                        -- the number of the session's last turn by then
            task TEXT,                                    -- that was removed
            at REAL NOT NULL,
            undone INTEGER NOT NULL DEFAULT 0,
            undo INTEGER REFERENCES undos                 -- that has undone it with turns since; a redo brings it back
        ) STRICT"""
    )
    db.execute("CREATE INDEX clears_by_session ON clears (session, through)")
