from __future__ import annotations

import sqlite3


def m006_undo(db: sqlite3.Connection) -> None:
    for statement in UNDO:
        db.execute(statement)


UNDO: tuple[str, ...] = (
    "ALTER TABLE routes ADD COLUMN instead_of TEXT",  # the member that was called, if a person gave the call to another
    """CREATE TABLE undos (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL,    -- within the session
        scope TEXT NOT NULL,        -- both, conversation, files
        status TEXT NOT NULL,       -- begun, files, done, redoing, redone
        at REAL NOT NULL,
        turn INTEGER NOT NULL,      -- the number of the first turn that is undone
        through INTEGER NOT NULL,   -- the id of the newest message before it; 0 is none
        before_state TEXT NOT NULL, -- JSON: queue, counters and task before the undo
        task TEXT,                  -- that the undo put back
        trees TEXT NOT NULL,        -- JSON: of each work tree, by its path, the tree before and after the undo
        UNIQUE (session, number)
    ) STRICT""",
    # JSON: queue, counters and task when the turn was about to begin; NULL of side turns and of an older teamchat's
    "ALTER TABLE turns ADD COLUMN before_state TEXT",
    "ALTER TABLE turns ADD COLUMN undone INTEGER REFERENCES undos",
    "CREATE INDEX turns_by_undo ON turns (undone)",
    # the messages that were taken back in a session; undo NULL: they stay so
    """CREATE TABLE hides (
        session INTEGER NOT NULL REFERENCES sessions,
        message INTEGER NOT NULL REFERENCES messages,
        undo INTEGER REFERENCES undos,
        PRIMARY KEY (session, message)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX hides_by_message ON hides (message)",
    "CREATE INDEX hides_by_undo ON hides (undo)",
    "INSERT INTO hides (session, message) SELECT session, id FROM messages WHERE hidden",
    "DROP TRIGGER messages_hidden",
    "DROP INDEX messages_taken_back",
    "ALTER TABLE messages DROP COLUMN hidden",
    # agents' own sessions remember what was said before it was taken back
    """CREATE TRIGGER message_taken_back AFTER INSERT ON hides BEGIN
        UPDATE sessions SET edits = edits + 1 WHERE id = new.session;
    END""",
    """CREATE TRIGGER message_brought_back AFTER DELETE ON hides BEGIN
        UPDATE sessions SET edits = edits + 1 WHERE id = old.session;
    END""",
)
