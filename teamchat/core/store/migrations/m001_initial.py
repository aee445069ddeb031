from __future__ import annotations

import sqlite3

from teamchat.core.text.words import TOKENIZER


def m001_initial(db: sqlite3.Connection) -> None:
    for statement in INITIAL:
        db.execute(statement)


INITIAL: tuple[str, ...] = (
    """CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        team TEXT NOT NULL,
        task TEXT,
        fence_key TEXT NOT NULL, -- a secret of this conversation, which the codes of its prompts are made of
        created_at REAL NOT NULL,
        used_at REAL NOT NULL,
        next_route INTEGER NOT NULL DEFAULT 1,
        turns INTEGER NOT NULL DEFAULT 0, -- AI turns since the last human message
        since REAL NOT NULL DEFAULT 0,    -- when that was
        last_ai TEXT,
        tokens INTEGER NOT NULL DEFAULT 0, -- spent since a budget was granted
        cost_usd REAL NOT NULL DEFAULT 0,
        stale INTEGER NOT NULL DEFAULT 0,  -- replies in a row that said nothing new
        edits INTEGER NOT NULL DEFAULT 0   -- how often messages were hidden or shown again
    ) STRICT""",
    # append-only: undo sets `hidden` and never changes `content`
    """CREATE TABLE messages (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions,
        message TEXT NOT NULL, -- msg-1, msg-2, ...; an imported one may have another id
        number INTEGER,        -- of msg-N
        content TEXT NOT NULL,
        speaker_id TEXT NOT NULL,
        speaker_name TEXT NOT NULL,
        speaker_title TEXT,
        speaker_type TEXT NOT NULL,
        routing TEXT NOT NULL, -- JSON
        turn INTEGER REFERENCES turns,
        timestamp INTEGER NOT NULL,
        stands_for TEXT,       -- the member in whose place the speaker answered
        hidden INTEGER NOT NULL DEFAULT 0,
        UNIQUE (session, message)
    ) STRICT""",
    # the cost of a read window or an appended message does not grow with the session
    "CREATE INDEX messages_in_order ON messages (session, id)",
    "CREATE INDEX messages_by_number ON messages (session, number)",
    "CREATE INDEX messages_taken_back ON messages (session, id) WHERE hidden",
    # only the beginning of a long message is indexed: indexing more would block other writers for too long
    "CREATE VIEW message_words AS SELECT id, substr(content, 1, 1000000) AS content FROM messages",
    "CREATE VIRTUAL TABLE message_text USING fts5 (content, content = 'message_words', content_rowid = 'id')",
    """CREATE TRIGGER messages_indexed AFTER INSERT ON messages BEGIN
        INSERT INTO message_text (rowid, content) VALUES (new.id, substr(new.content, 1, 1000000));
    END""",
    """CREATE TRIGGER messages_unindexed AFTER DELETE ON messages BEGIN
        INSERT INTO message_text (message_text, rowid, content)
        VALUES ('delete', old.id, substr(old.content, 1, 1000000));
    END""",
    # a vendor session still remembers a hidden message, so its member needs a fresh one
    """CREATE TRIGGER messages_hidden AFTER UPDATE OF hidden ON messages WHEN new.hidden <> old.hidden BEGIN
        UPDATE sessions SET edits = edits + 1 WHERE id = new.session;
    END""",
    """CREATE TABLE routes (
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL,
        place INTEGER,            -- in the queue; NULL once done or dropped
        target TEXT NOT NULL,
        priority INTEGER NOT NULL,
        "group" INTEGER,
        parent TEXT NOT NULL,
        "by" TEXT NOT NULL,
        request TEXT NOT NULL,
        as_of TEXT,
        status TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        answer INTEGER REFERENCES turns, -- whose reply is kept until its group is over
        PRIMARY KEY (session, number)
    ) STRICT""",
    """CREATE TABLE turns (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL,
        route INTEGER,        -- NULL: it is aside from the conversation
        member TEXT NOT NULL,
        agent TEXT NOT NULL,  -- as the team file names it
        "like" TEXT NOT NULL, -- whose events it has
        status TEXT NOT NULL,
        started_at REAL NOT NULL,
        system_text TEXT REFERENCES texts,
        prompt TEXT NOT NULL REFERENCES texts, -- the exact bytes of stdin
        shown_through TEXT NOT NULL,           -- the newest message this prompt shows
        setup TEXT NOT NULL,                   -- JSON: argv, environment changes, access, what the budget cut, ...
        folder TEXT NOT NULL,                  -- JSON: where stdout and stderr are while it runs
        text TEXT REFERENCES texts,            -- the partial text of a turn that failed
        outcome TEXT,                          -- JSON: exit code, failure, usage, denials, files, timings, ...
        vendor_session TEXT,
        opened INTEGER NOT NULL DEFAULT 0,     -- whether a person went on with that session by hand
        UNIQUE (session, number)
    ) STRICT""",
    """CREATE TABLE turn_events (
        turn INTEGER NOT NULL REFERENCES turns,
        number INTEGER NOT NULL,
        at REAL NOT NULL, -- seconds since the turn began
        type TEXT NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (turn, number)
    ) STRICT, WITHOUT ROWID""",
    # append-only: the list is the result of all changes, except those of hidden messages
    """CREATE TABLE todo_changes (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL, -- of the item; given once in a session
        what TEXT NOT NULL,      -- added, done, cleared
        text TEXT NOT NULL,      -- the item's
        "by" TEXT NOT NULL,
        at REAL NOT NULL,
        message TEXT,            -- that it came from; NULL for a command
        FOREIGN KEY (session, message) REFERENCES messages (session, message)
    ) STRICT""",
    "CREATE INDEX todo_changes_in_order ON todo_changes (session, id)",
    # append-only: prompts get the newest summary that covers no hidden message, instead of the messages it covers
    """CREATE TABLE summaries (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions,
        turn INTEGER NOT NULL REFERENCES turns,       -- its receipt
        through INTEGER NOT NULL REFERENCES messages, -- the newest message that it covers
        without TEXT NOT NULL,                        -- JSON: those up to there that were hidden, and are not in it
        kept TEXT NOT NULL,                           -- JSON: the ids of those that are quoted all the same
        text TEXT NOT NULL REFERENCES texts
    ) STRICT""",
    "CREATE INDEX summaries_in_order ON summaries (session, through)",
    """CREATE TABLE lessons (
        id INTEGER PRIMARY KEY AUTOINCREMENT, -- people name them by it: none is given twice
        text TEXT NOT NULL,
        gist TEXT NOT NULL UNIQUE, -- what says the same is kept once
        session TEXT, -- the name of the conversation that it is from
        learned_at REAL NOT NULL
    ) STRICT""",
    f"CREATE VIRTUAL TABLE lesson_words USING fts5 (body, tokenize = '{TOKENIZER}')",
    # content-addressed: equal texts are stored once
    """CREATE TABLE texts (
        hash TEXT PRIMARY KEY,
        bytes INTEGER NOT NULL,
        compressed INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # SQLite checks every reference to a deleted row: without these indexes, deleting a long session takes minutes
    *(
        f"CREATE INDEX {table}_by_{column} ON {table} ({column})"
        for table, column in (
            ("messages", "turn"),
            ("routes", "answer"),
            ("turns", "system_text"),
            ("turns", "prompt"),
            ("turns", "text"),
            ("summaries", "turn"),
            ("summaries", "through"),
            ("summaries", "text"),
        )
    ),
)
