"""The tables of a store, their indexes and triggers, and the version of it all."""

from __future__ import annotations

import sqlite3

from teamchat.core.receipt import QUANTITIES
from teamchat.core.text.words import TOKENIZER, spaced

VERSION = 33
_USED = [f"COALESCE(json_extract(outcome, '$.usage.{name}'), 0) AS {name}" for name in QUANTITIES]
_UNKNOWN = [f"json_extract(outcome, '$.usage.{name}') IS NULL AS no_{name}" for name in QUANTITIES]
_SENT = "json_extract(setup, '$.stdin_bytes') + json_extract(setup, '$.system_bytes')"
TURN_USED = f"""session, member,
    COALESCE(json_extract(outcome, '$.model'), json_extract(setup, '$.model'), '') AS model,
    COALESCE(json_extract(setup, '$.memory'), 'fresh') AS memory, id AS first, 1 AS turns,
    {", ".join(_USED)}, {", ".join(_UNKNOWN)},
    COALESCE({_SENT}, 0) AS sent, COALESCE(CASE WHEN json_extract(setup, '$.resumes') IS NULL THEN {_SENT}
        ELSE json_extract(setup, '$.fresh_bytes') END, 0) AS fresh"""
"""The columns of `usage` for one turn."""
_ADDED = ("turns", *QUANTITIES, *(f"no_{name}" for name in QUANTITIES), "sent", "fresh")
_ADD_USED = f"""INSERT INTO usage SELECT {TURN_USED} FROM turns WHERE {{}} ORDER BY id
    ON CONFLICT DO UPDATE SET first = min(first, excluded.first),
    {", ".join(f"{name} = {name} + excluded.{name}" for name in _ADDED)}"""  # noqa: S608 (our own names)
_ADD_VENDOR_USED = f"""INSERT INTO vendor_usage SELECT session, member, vendor_session, {", ".join(_USED)}
    FROM turns WHERE {{}} AND vendor_session NOT NULL AND COALESCE(json_extract(setup, '$.memory'), 'fresh') <> 'fresh'
    ON CONFLICT DO UPDATE SET
    {", ".join(f"{name} = {name} + excluded.{name}" for name in QUANTITIES)}"""  # noqa: S608 (our own names)
_SUMS = f"""{", ".join(f"{name} REAL NOT NULL" for name in QUANTITIES)}, -- of the turns of which it is known
        {", ".join(f"no_{name} INTEGER NOT NULL" for name in QUANTITIES)}, -- the turns of which it is not"""
RECOUNT = (
    """UPDATE sessions SET
        message_count = (SELECT COUNT(*) FROM lineage CROSS JOIN messages
            ON messages.session = lineage.ancestor AND messages.id <= lineage.through
            WHERE lineage.session = sessions.id) - (SELECT COUNT(*) FROM hides WHERE session = sessions.id),
        (turn_count, spent_usd, turns_with_cost) = (
            SELECT COUNT(*), COALESCE(SUM(json_extract(outcome, '$.usage.cost_usd')), 0),
                COUNT(json_extract(outcome, '$.usage.cost_usd'))
            FROM turns WHERE session = sessions.id),
        last_number = (SELECT COALESCE(MAX(number), 0) FROM messages WHERE messages.session = sessions.id),
        counted_through = (SELECT COALESCE(MAX(id), 0) FROM messages WHERE session = sessions.id)""",
    "DELETE FROM usage",
    _ADD_USED.format("outcome NOT NULL"),
    "DELETE FROM vendor_usage",
    _ADD_VENDOR_USED.format("outcome NOT NULL"),
)
"""Statements that count anew the sums that the triggers keep."""
_WORDS = "substr(content, 1, 1000000)"
_TABLES = (
    """CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        title TEXT,              -- NULL: its first words are its title
        team TEXT NOT NULL,
        task TEXT,
        fence_key TEXT NOT NULL, -- a secret of this conversation, which the codes of its prompts are made of
        created_at REAL NOT NULL,
        used_at REAL NOT NULL,
        used INTEGER NOT NULL DEFAULT 0, -- the greatest is the session that was used last, whatever the clock said
        -- its value when a command that a person typed, or one that a script ran, last used the session; 0: never
        used_typed INTEGER NOT NULL DEFAULT 0,
        used_by_scripts INTEGER NOT NULL DEFAULT 0,
        next_route INTEGER NOT NULL DEFAULT 1,
        turns INTEGER NOT NULL DEFAULT 0,  -- AI turns since the last human message
        since REAL NOT NULL DEFAULT 0,     -- when that was
        last_ai TEXT,
        tokens INTEGER NOT NULL DEFAULT 0, -- spent since a budget was granted
        cost_usd REAL NOT NULL DEFAULT 0,
        stale INTEGER NOT NULL DEFAULT 0,  -- replies in a row that said nothing new
        process TEXT,                      -- JSON
        last_process TEXT,                 -- JSON: the one before, when another message has followed
        last_said TEXT NOT NULL DEFAULT '[]', -- JSON: what was said last for each request in the queue
        edits INTEGER NOT NULL DEFAULT 0,  -- messages that are hidden
        shared INTEGER NOT NULL DEFAULT 0, -- the greatest number of the messages that a branch shares
        caller TEXT,                       -- JSON: the turn in which an agent began it: store, session, turn and member
        taker INTEGER,                     -- the process that takes messages which others hand over
        -- kept by triggers, because every command reads them and counting a million messages takes long
        message_count INTEGER NOT NULL DEFAULT 0, -- hidden ones are not counted
        last_number INTEGER NOT NULL DEFAULT 0,
        counted_through INTEGER NOT NULL DEFAULT 0, -- the id of its last message that is in both; see `counting.py`
        turn_count INTEGER NOT NULL DEFAULT 0,
        spent_usd REAL NOT NULL DEFAULT 0,
        turns_with_cost INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
    # whose messages a session has: its own, all of them, and of a branch those of earlier sessions up to one message.
    # The ids of each part are greater than those of the next one, so that no query needs to sort.
    """CREATE TABLE lineage (
        session INTEGER NOT NULL REFERENCES sessions,
        ancestor INTEGER NOT NULL REFERENCES sessions,
        through INTEGER NOT NULL, -- the id of the last message
        todos INTEGER NOT NULL,   -- the id of the last todo change
        PRIMARY KEY (session, through)
    ) STRICT, WITHOUT ROWID""",
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
        typed INTEGER NOT NULL DEFAULT 0, -- characters that a person typed
        -- which parts a person pasted in several lines, or an agent repeats from its prompt; JSON: their ends
        pasted TEXT NOT NULL DEFAULT '[]',
        imported INTEGER NOT NULL DEFAULT 0, -- 1: it was read from a file
        UNIQUE (session, message)
    ) STRICT""",
    # messages added to the index of words together: the first id, and the greatest time
    """CREATE TABLE message_times (
        first INTEGER PRIMARY KEY,
        latest INTEGER NOT NULL
    ) STRICT""",
    # FTS5 takes as long for one message as for many: they are indexed some hundreds at a time, and before a search
    """CREATE TABLE indexed (
        through INTEGER NOT NULL -- the id of the last message whose words are in the index
    ) STRICT""",
    "INSERT INTO indexed VALUES (0)",
    # only the beginning of a long message is indexed: indexing more would block other writers for too long
    f"""CREATE VIEW message_words AS
        SELECT id, spaced({_WORDS}) AS content FROM messages WHERE id <= (SELECT through FROM indexed)""",  # noqa: S608
    "CREATE VIRTUAL TABLE message_text USING fts5 (content, content = 'message_words', content_rowid = 'id')",
    """CREATE TABLE images (
        session INTEGER NOT NULL,
        message TEXT NOT NULL,
        number INTEGER NOT NULL, -- of those of its message, in order
        name TEXT NOT NULL,      -- what the person called it
        kind TEXT NOT NULL,      -- png, jpg, gif, webp
        body TEXT NOT NULL REFERENCES texts,
        PRIMARY KEY (session, message, number),
        FOREIGN KEY (session, message) REFERENCES messages (session, message)
    ) STRICT""",
    """CREATE TABLE routes (
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL,
        place INTEGER,  -- in the queue; NULL once done or dropped
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
        instead_of TEXT,
        part TEXT,      -- JSON: what it does in a process
        also TEXT,      -- JSON: further calls that its turn answers
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
        before_state TEXT,                     -- JSON: queue, counters and task when it began; NULL of side turns
        undone INTEGER REFERENCES undos,
        admission TEXT,                        -- JSON: what a running turn may do, for a teamchat that its agent runs
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
    """CREATE TABLE checks (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL,
        route INTEGER,         -- NULL: a person has run it by hand
        name TEXT NOT NULL,
        command TEXT NOT NULL, -- JSON: a text for the shell, or a list
        status TEXT NOT NULL,
        started_at REAL NOT NULL,
        after INTEGER NOT NULL,          -- the number of the session's last turn by then
        cwd TEXT NOT NULL,               -- JSON
        folder TEXT NOT NULL,            -- JSON: where its output is while it runs
        result TEXT,                     -- JSON
        changes TEXT,                    -- JSON: what changed in the files meanwhile
        output TEXT REFERENCES texts,
        undone INTEGER REFERENCES undos,
        UNIQUE (session, number)
    ) STRICT""",
    """CREATE TABLE accepted (
        session INTEGER NOT NULL REFERENCES sessions,
        path TEXT NOT NULL,  -- JSON: of a protected file
        state TEXT NOT NULL, -- what a person has accepted there
        PRIMARY KEY (session, path, state)
    ) STRICT, WITHOUT ROWID""",
    # the sums of the turns that have ended
    f"""CREATE TABLE usage (
        session INTEGER NOT NULL REFERENCES sessions,
        member TEXT NOT NULL,
        model TEXT NOT NULL, -- '' if it is unknown
        memory TEXT NOT NULL,
        first INTEGER NOT NULL, -- the id of the first of the turns
        turns INTEGER NOT NULL,
        {_SUMS}
        sent INTEGER NOT NULL,
        fresh INTEGER NOT NULL,
        PRIMARY KEY (session, member, model, memory)
    ) STRICT, WITHOUT ROWID""",
    # a session of a member whose memory is fresh has one turn, and nobody asks for its sum
    """CREATE TABLE vendor_usage (
        session INTEGER NOT NULL REFERENCES sessions,
        member TEXT NOT NULL,
        vendor_session TEXT NOT NULL,
        input_tokens INTEGER NOT NULL, -- as of the others, of the turns of which it is known
        cached_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cost_usd REAL NOT NULL,
        PRIMARY KEY (session, member, vendor_session)
    ) STRICT, WITHOUT ROWID""",
    # the usage of sessions that agents run in their turns
    f"""CREATE TABLE children (
        session INTEGER NOT NULL REFERENCES sessions,
        turn INTEGER NOT NULL REFERENCES turns, -- of the session, whose agent runs the child
        store TEXT NOT NULL,                    -- the file that the child is stored in
        child TEXT NOT NULL,                    -- its name there
        turns INTEGER NOT NULL,
        {_SUMS}
        PRIMARY KEY (session, turn, store, child)
    ) STRICT, WITHOUT ROWID""",
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
    # the messages that were taken back in a session; undo NULL: they stay so
    """CREATE TABLE hides (
        session INTEGER NOT NULL REFERENCES sessions,
        message INTEGER NOT NULL REFERENCES messages,
        undo INTEGER REFERENCES undos,
        PRIMARY KEY (session, message)
    ) STRICT, WITHOUT ROWID""",
    # the place where prompts begin after a conversation was cleared
    """CREATE TABLE clears (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions,
        through INTEGER NOT NULL REFERENCES messages, -- the last message that prompts leave out
        turn INTEGER NOT NULL,                        -- the number of the session's last turn by then
        task TEXT,                                    -- that was removed
        at REAL NOT NULL,
        undone INTEGER NOT NULL DEFAULT 0,
        undo INTEGER REFERENCES undos                 -- that has undone it with turns since; a redo brings it back
    ) STRICT""",
    """CREATE TABLE todo_changes (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL, -- of the item; given once in a session
        what TEXT NOT NULL,      -- added, done, cleared
        text TEXT NOT NULL,      -- the item's
        "by" TEXT NOT NULL,
        at REAL NOT NULL,
        message TEXT,            -- that it came from; NULL for a command
        place INTEGER NOT NULL DEFAULT 0, -- the id of the newest message that the session had, shared ones included
        FOREIGN KEY (session, message) REFERENCES messages (session, message)
    ) STRICT""",
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
    # messages that a person types while members work, until they can be sent, and messages handed over to another
    # process
    """CREATE TABLE unsent (
        id INTEGER PRIMARY KEY AUTOINCREMENT, -- one that was taken back gives its id to no other
        session INTEGER NOT NULL REFERENCES sessions,
        text TEXT NOT NULL,
        speaker TEXT,   -- as for `--as`
        "to" TEXT,      -- as for `--to`
        at REAL NOT NULL,
        handed_over INTEGER NOT NULL DEFAULT 0,
        typed INTEGER,  -- characters that a person typed; NULL is all of them
        sent TEXT,      -- the message that one has become: its sender may wait for it
        editor TEXT,    -- the process in whose prompt it is being edited
        pasted TEXT NOT NULL DEFAULT '[]'
    ) STRICT""",
    # the sessions of agent CLIs that members are to continue
    """CREATE TABLE adoptions (
        session INTEGER NOT NULL REFERENCES sessions,
        member TEXT NOT NULL,
        agent TEXT NOT NULL,
        vendor_session TEXT NOT NULL,
        message TEXT NOT NULL,   -- the id of the one that tells of it
        after INTEGER NOT NULL,  -- the number of the last turn before it; 0 is none
        PRIMARY KEY (session, member)
    ) STRICT, WITHOUT ROWID""",
    # the parts of an imported conversation besides messages
    """CREATE TABLE imported_entries (
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL, -- in the order of the file
        message TEXT,            -- that it belongs to; NULL of a turn that gave none
        after TEXT,              -- the message before a turn that gave none
        turn TEXT,               -- JSON
        images TEXT NOT NULL,    -- JSON: names
        PRIMARY KEY (session, number)
    ) STRICT, WITHOUT ROWID""",
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
)
_INDEXES = (
    "lineage_by_ancestor ON lineage (ancestor)",
    # the cost of a read window or an appended message does not grow with the session
    "messages_in_order ON messages (session, id)",
    "todo_changes_in_order ON todo_changes (session, id)",
    "summaries_in_order ON summaries (session, through)",
    "clears_by_session ON clears (session, through)",
    "unsent_in_order ON unsent (session, id)",
    "routes_in_queue ON routes (session, place) WHERE place IS NOT NULL",
    "turns_running ON turns (session, number) WHERE status = 'running'",
    "turns_of_member ON turns (session, member, number)",
    "turns_aside ON turns (session, number) WHERE route IS NULL",
    "turns_without_reply ON turns (session, number) WHERE status <> 'done' OR route IS NULL",
    "turns_with_files ON turns (session, number) WHERE json_array_length(outcome, '$.files') > 0",
    "turns_by_folder ON turns (substr(folder, -17))",  # the last part of the path, and a quotation mark
    """turns_by_hand ON turns (session, member, vendor_session)
        WHERE opened OR json_extract(setup, '$.adopted') NOT NULL""",
    "undos_begun ON undos (session, number) WHERE status IN ('begun', 'files')",
    # SQLite checks every reference to a deleted row: without these, deleting a long session takes minutes
    "messages_by_turn ON messages (turn) WHERE turn NOT NULL",
    "routes_by_answer ON routes (answer)",
    "turns_by_system_text ON turns (system_text)",
    "turns_by_prompt ON turns (prompt)",
    "turns_by_text ON turns (text)",
    "turns_by_undo ON turns (undone)",
    "checks_behind ON checks (session, after, number)",
    "checks_running ON checks (session, number) WHERE status = 'running'",
    "checks_by_output ON checks (output)",
    "checks_by_undo ON checks (undone)",
    "summaries_by_turn ON summaries (turn)",
    "summaries_by_through ON summaries (through)",
    "summaries_by_text ON summaries (text)",
    "images_by_body ON images (body)",
    "hides_by_message ON hides (message)",
    "hides_by_undo ON hides (undo)",
)
_TRIGGERS = (
    """session_begun AFTER INSERT ON sessions BEGIN
        INSERT OR IGNORE INTO lineage VALUES (new.id, new.id, 9223372036854775807, 9223372036854775807);
    END""",
    "session_gone BEFORE DELETE ON sessions BEGIN DELETE FROM lineage WHERE session = old.id; END",
    # a session's messages are deleted from its end, and later ones may get the ids of deleted ones
    f"""message_gone AFTER DELETE ON messages BEGIN
        UPDATE sessions SET message_count = message_count - (old.id <= counted_through),
            last_number = max(last_number, COALESCE(old.number, 0)), counted_through = min(counted_through, old.id - 1)
        WHERE id = old.session;
        INSERT INTO message_text (message_text, rowid, content)
            SELECT 'delete', old.id, spaced({_WORDS.replace("content", "old.content")})
            WHERE old.id <= (SELECT through FROM indexed);
        UPDATE indexed SET through = (SELECT COALESCE(MAX(id), 0) FROM messages)
            WHERE through > (SELECT COALESCE(MAX(id), 0) FROM messages);
    END""",  # noqa: S608 (our own words)
    # agents' own sessions remember what was said before it was taken back
    """message_hidden AFTER INSERT ON hides BEGIN
        UPDATE sessions SET edits = edits + 1, message_count = message_count - 1 WHERE id = new.session;
    END""",
    """message_shown AFTER DELETE ON hides BEGIN
        UPDATE sessions SET edits = edits - 1, message_count = message_count + 1 WHERE id = old.session;
    END""",
    """turn_counted AFTER INSERT ON turns BEGIN
        UPDATE sessions SET turn_count = turn_count + 1 WHERE id = new.session;
    END""",
    """turn_uncounted AFTER DELETE ON turns BEGIN
        UPDATE sessions SET turn_count = turn_count - 1 WHERE id = old.session;
    END""",
    """cost_counted AFTER UPDATE OF outcome ON turns BEGIN
        UPDATE sessions SET
            spent_usd = spent_usd + COALESCE(json_extract(new.outcome, '$.usage.cost_usd'), 0)
                - COALESCE(json_extract(old.outcome, '$.usage.cost_usd'), 0),
            turns_with_cost = turns_with_cost + (json_extract(new.outcome, '$.usage.cost_usd') NOT NULL)
                - (json_extract(old.outcome, '$.usage.cost_usd') NOT NULL)
        WHERE id = new.session;
    END""",
    f"""usage_counted AFTER UPDATE OF outcome ON turns WHEN old.outcome IS NULL AND new.outcome NOT NULL BEGIN
        {_ADD_USED.format("id = new.id")}; {_ADD_VENDOR_USED.format("id = new.id")};
    END""",
)


class OtherVersion(Exception):
    """The store has another version of the tables; `later` says that a later teamchat wrote it."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.later = version > VERSION


def create(db: sqlite3.Connection) -> None:
    """Make all tables in an empty database, in one transaction."""
    db.create_function("spaced", 1, spaced, deterministic=True)
    db.execute("BEGIN IMMEDIATE")
    for statement in _TABLES:
        db.execute(statement)
    for index in _INDEXES:
        db.execute(f"CREATE INDEX {index}")
    for trigger in _TRIGGERS:
        db.execute(f"CREATE TRIGGER {trigger}")
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


def check_version(version: int) -> None:
    """Raise `OtherVersion` unless the version is the one that `create` makes."""
    if version != VERSION:
        raise OtherVersion(version)
