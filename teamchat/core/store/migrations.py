"""The schema of the store as numbered migrations. The SQL of a released migration never changes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from teamchat.core.text.words import TOKENIZER

Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: list[Migration] = []
migration = MIGRATIONS.append


@migration
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


@migration
def m002_order_of_use(db: sqlite3.Connection) -> None:
    """Order conversations by a counter of their use, because a clock may be set back."""
    db.execute("ALTER TABLE sessions ADD COLUMN used INTEGER NOT NULL DEFAULT 0")
    db.execute(
        """UPDATE sessions SET used = (SELECT COUNT(*) FROM sessions AS other
        WHERE (other.used_at, other.id) <= (sessions.used_at, sessions.id))"""
    )


@migration
def m003_images(db: sqlite3.Connection) -> None:
    for statement in IMAGES:
        db.execute(statement)


IMAGES: tuple[str, ...] = (
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
    "CREATE INDEX images_by_body ON images (body)",
)


@migration
def m004_typed(db: sqlite3.Connection) -> None:
    """Store how much of a person's message was typed. It is unknown for older messages, so nothing in them expands."""
    db.execute("ALTER TABLE messages ADD COLUMN typed INTEGER NOT NULL DEFAULT 0")


@migration
def m005_long_messages(db: sqlite3.Connection) -> None:
    """Store what follows the first million characters of a message as UTF-8 that is written and read in pieces.

    Because it is the last column, SQLite can reserve its bytes as zeros without holding them in memory.
    """
    db.execute("ALTER TABLE messages ADD COLUMN rest BLOB NOT NULL DEFAULT x''")


@migration
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


@migration
def m007_branches(db: sqlite3.Connection) -> None:
    for statement in BRANCHES:
        db.execute(statement)


BRANCHES: tuple[str, ...] = (
    # whose messages a session has: its own, all of them, and of a branch those of earlier sessions up to one message.
    # The ids of each part are greater than those of the next one, so that no query needs to sort.
    """CREATE TABLE lineage (
        session INTEGER NOT NULL REFERENCES sessions,
        ancestor INTEGER NOT NULL REFERENCES sessions,
        through INTEGER NOT NULL, -- the id of the last message
        todos INTEGER NOT NULL,   -- the id of the last todo change
        PRIMARY KEY (session, through)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX lineage_by_ancestor ON lineage (ancestor)",
    "INSERT INTO lineage SELECT id, id, 9223372036854775807, 9223372036854775807 FROM sessions",
    """CREATE TRIGGER session_begun AFTER INSERT ON sessions BEGIN
        INSERT OR IGNORE INTO lineage VALUES (new.id, new.id, 9223372036854775807, 9223372036854775807);
    END""",
    """CREATE TRIGGER session_gone BEFORE DELETE ON sessions BEGIN
        DELETE FROM lineage WHERE session = old.id;
    END""",
    # the greatest number of the messages that a branch shares: its own go on from there
    "ALTER TABLE sessions ADD COLUMN shared INTEGER NOT NULL DEFAULT 0",
    # the id of the newest message that the session had, shared ones included, when the change was made
    "ALTER TABLE todo_changes ADD COLUMN place INTEGER NOT NULL DEFAULT 0",
    """UPDATE todo_changes AS made SET place = COALESCE(
        (SELECT id FROM messages WHERE messages.session = made.session AND messages.message = made.message),
        (SELECT MAX(id) FROM messages WHERE messages.session = made.session AND timestamp <= at * 1000), 0)""",
)


@migration
def m008_redo(db: sqlite3.Connection) -> None:
    for statement in REDO:
        db.execute(statement)


REDO: tuple[str, ...] = (
    "DROP TRIGGER message_brought_back",
    # nothing is said between an undo and its redo, so after it agents' own sessions know what there is
    """CREATE TRIGGER message_brought_back AFTER DELETE ON hides BEGIN
        UPDATE sessions SET edits = edits - 1 WHERE id = old.session;
    END""",
)


@migration
def m009_unsent(db: sqlite3.Connection) -> None:
    """Store what a person types while members work, until it can be sent."""
    db.execute(
        """CREATE TABLE unsent (
            id INTEGER PRIMARY KEY AUTOINCREMENT, -- one that was taken back gives its id to no other
            session INTEGER NOT NULL REFERENCES sessions,
            text TEXT NOT NULL,
            speaker TEXT,   -- as for `--as`
            "to" TEXT,      -- as for `--to`
            at REAL NOT NULL
        ) STRICT"""
    )
    db.execute("CREATE INDEX unsent_in_order ON unsent (session, id)")


@migration
def m010_finding(db: sqlite3.Connection) -> None:
    for statement in FINDING:
        db.execute(statement)


RECOUNT = """UPDATE sessions SET
    message_count = (SELECT COUNT(*) FROM lineage CROSS JOIN messages
        ON messages.session = lineage.ancestor AND messages.id <= lineage.through WHERE lineage.session = sessions.id)
        - (SELECT COUNT(*) FROM hides WHERE session = sessions.id),
    (turn_count, spent_usd, turns_with_cost) = (
        SELECT COUNT(*), COALESCE(SUM(json_extract(outcome, '$.usage.cost_usd')), 0),
            COUNT(json_extract(outcome, '$.usage.cost_usd'))
        FROM turns WHERE session = sessions.id)"""
"""What the triggers of `FINDING` keep, counted anew."""
FINDING: tuple[str, ...] = (
    "ALTER TABLE sessions ADD COLUMN title TEXT",  # NULL: its first words are its title
    # the value of `used` when a command that a person typed, or one that a script ran, last used the session; 0: never
    "ALTER TABLE sessions ADD COLUMN used_typed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN used_by_scripts INTEGER NOT NULL DEFAULT 0",
    "UPDATE sessions SET used_typed = used",
    # kept by triggers, because every command reads them and counting a million messages takes long
    "ALTER TABLE sessions ADD COLUMN message_count INTEGER NOT NULL DEFAULT 0",  # hidden ones are not counted
    "ALTER TABLE sessions ADD COLUMN turn_count INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN spent_usd REAL NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN turns_with_cost INTEGER NOT NULL DEFAULT 0",
    RECOUNT,
    """CREATE TRIGGER message_counted AFTER INSERT ON messages BEGIN
        UPDATE sessions SET message_count = message_count + 1 WHERE id = new.session;
    END""",
    """CREATE TRIGGER message_uncounted AFTER DELETE ON messages BEGIN
        UPDATE sessions SET message_count = message_count - 1 WHERE id = old.session;
    END""",
    """CREATE TRIGGER hidden_uncounted AFTER INSERT ON hides BEGIN
        UPDATE sessions SET message_count = message_count - 1 WHERE id = new.session;
    END""",
    """CREATE TRIGGER shown_counted AFTER DELETE ON hides BEGIN
        UPDATE sessions SET message_count = message_count + 1 WHERE id = old.session;
    END""",
    """CREATE TRIGGER turn_counted AFTER INSERT ON turns BEGIN
        UPDATE sessions SET turn_count = turn_count + 1 WHERE id = new.session;
    END""",
    """CREATE TRIGGER turn_uncounted AFTER DELETE ON turns BEGIN
        UPDATE sessions SET turn_count = turn_count - 1 WHERE id = old.session;
    END""",
    """CREATE TRIGGER cost_counted AFTER UPDATE OF outcome ON turns BEGIN
        UPDATE sessions SET
            spent_usd = spent_usd + COALESCE(json_extract(new.outcome, '$.usage.cost_usd'), 0)
                - COALESCE(json_extract(old.outcome, '$.usage.cost_usd'), 0),
            turns_with_cost = turns_with_cost + (json_extract(new.outcome, '$.usage.cost_usd') NOT NULL)
                - (json_extract(old.outcome, '$.usage.cost_usd') NOT NULL)
        WHERE id = new.session;
    END""",
    "CREATE INDEX routes_in_queue ON routes (session, place) WHERE place IS NOT NULL",
    "CREATE INDEX turns_running ON turns (session, number) WHERE status = 'running'",
    "CREATE INDEX messages_by_time ON messages (timestamp)",
)


@migration
def m011_imported(db: sqlite3.Connection) -> None:
    """Store what an imported conversation has besides messages."""
    db.execute(
        """CREATE TABLE imported_entries (
        session INTEGER NOT NULL REFERENCES sessions,
        number INTEGER NOT NULL, -- in the order of the file
        message TEXT,            -- that it belongs to; NULL of a turn that gave none
        after TEXT,              -- the message before a turn that gave none
        turn TEXT,               -- JSON
        images TEXT NOT NULL,    -- JSON: names
        PRIMARY KEY (session, number)
    ) STRICT, WITHOUT ROWID"""
    )


@migration
def m012_adoptions(db: sqlite3.Connection) -> None:
    """Store the sessions of agent CLIs that members are to continue."""
    db.execute(
        """CREATE TABLE adoptions (
        session INTEGER NOT NULL REFERENCES sessions,
        member TEXT NOT NULL,
        agent TEXT NOT NULL,
        vendor_session TEXT NOT NULL,
        message TEXT NOT NULL,   -- the id of the one that tells of it
        after INTEGER NOT NULL,  -- the number of the last turn before it; 0 is none
        PRIMARY KEY (session, member)
    ) STRICT, WITHOUT ROWID"""
    )


@migration
def m013_quotes(db: sqlite3.Connection) -> None:
    """Store what prompts quote of a message, so that its markers are read once."""
    # TEXT; 0: the whole content; NULL, as of a message from before: it is made when a prompt needs it. Whoever changes
    # how markers are read sets it to NULL in a migration, or old messages are quoted as they were
    db.execute("ALTER TABLE messages ADD COLUMN quoted ANY")


@migration
def m014_any_length(db: sqlite3.Connection) -> None:
    """Keep what commands would otherwise count or search in all messages and turns of a conversation."""
    for statement in ANY_LENGTH:
        db.execute(statement)


QUANTITIES = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
_SENT = "json_extract(setup, '$.stdin_bytes') + json_extract(setup, '$.system_bytes')"
TURN_USED = f"""session, member,
    COALESCE(json_extract(outcome, '$.model'), json_extract(setup, '$.model'), '') AS model,
    COALESCE(json_extract(setup, '$.memory'), 'fresh') AS memory, id AS first, 1 AS turns,
    {", ".join(f"COALESCE(json_extract(outcome, '$.usage.{name}'), 0) AS {name}" for name in QUANTITIES)},
    {", ".join(f"json_extract(outcome, '$.usage.{name}') IS NULL AS no_{name}" for name in QUANTITIES)},
    COALESCE({_SENT}, 0) AS sent, COALESCE(CASE WHEN json_extract(setup, '$.resumes') IS NULL THEN {_SENT}
        ELSE json_extract(setup, '$.fresh_bytes') END, 0) AS fresh"""
"""The columns of `usage` for one turn."""
ADDED = ("turns", *QUANTITIES, *(f"no_{name}" for name in QUANTITIES), "sent", "fresh")
ADD_USED = f"""INSERT INTO usage SELECT {TURN_USED} FROM turns WHERE {{}} ORDER BY id
    ON CONFLICT DO UPDATE SET first = min(first, excluded.first),
    {", ".join(f"{name} = {name} + excluded.{name}" for name in ADDED)}"""  # noqa: S608 (our own names)
RECOUNT_USAGE = (
    "DELETE FROM usage",
    ADD_USED.format("outcome NOT NULL"),
    """UPDATE sessions SET last_number = (
        SELECT COALESCE(MAX(number), 0) FROM messages WHERE messages.session = sessions.id)""",
)
"""What the triggers of `ANY_LENGTH` keep, counted anew."""
ANY_LENGTH: tuple[str, ...] = (
    # FTS5 takes as long for one message as for many: they are indexed some hundreds at a time, and before a search
    """CREATE TABLE indexed (
        through INTEGER NOT NULL -- the id of the last message whose words are in the index
    ) STRICT""",
    "INSERT INTO indexed SELECT COALESCE(MAX(id), 0) FROM messages",
    "DROP VIEW message_words",
    """CREATE VIEW message_words AS
        SELECT id, substr(content, 1, 1000000) AS content FROM messages WHERE id <= (SELECT through FROM indexed)""",
    "DROP TRIGGER messages_indexed",
    "DROP TRIGGER messages_unindexed",
    # a later message gets the id of the last one if that is deleted
    """CREATE TRIGGER messages_unindexed AFTER DELETE ON messages BEGIN
        INSERT INTO message_text (message_text, rowid, content) SELECT 'delete', old.id, substr(old.content, 1, 1000000)
            WHERE old.id <= (SELECT through FROM indexed);
        UPDATE indexed SET through = (SELECT COALESCE(MAX(id), 0) FROM messages)
            WHERE through > (SELECT COALESCE(MAX(id), 0) FROM messages);
    END""",
    # the sums of the turns that have ended
    f"""CREATE TABLE usage (
        session INTEGER NOT NULL REFERENCES sessions,
        member TEXT NOT NULL,
        model TEXT NOT NULL, -- '' if it is unknown
        memory TEXT NOT NULL,
        first INTEGER NOT NULL, -- the id of the first of the turns
        turns INTEGER NOT NULL,
        {", ".join(f"{name} REAL NOT NULL" for name in QUANTITIES)}, -- of the turns of which it is known
        {", ".join(f"no_{name} INTEGER NOT NULL" for name in QUANTITIES)}, -- the turns of which it is not
        sent INTEGER NOT NULL,
        fresh INTEGER NOT NULL,
        PRIMARY KEY (session, member, model, memory)
    ) STRICT, WITHOUT ROWID""",
    f"""CREATE TRIGGER usage_counted AFTER UPDATE OF outcome ON turns
        WHEN old.outcome IS NULL AND new.outcome NOT NULL BEGIN {ADD_USED.format("id = new.id")}; END""",
    # the greatest number of the session's own messages
    "ALTER TABLE sessions ADD COLUMN last_number INTEGER NOT NULL DEFAULT 0",
    "DROP TRIGGER message_counted",
    """CREATE TRIGGER message_counted AFTER INSERT ON messages BEGIN
        UPDATE sessions SET message_count = message_count + 1, last_number = max(last_number, COALESCE(new.number, 0))
        WHERE id = new.session;
    END""",
    *RECOUNT_USAGE,
    "DROP INDEX messages_by_number",
    "CREATE INDEX turns_of_member ON turns (session, member, number)",
    "CREATE INDEX turns_aside ON turns (session, number) WHERE route IS NULL",
    "CREATE INDEX turns_without_reply ON turns (session, number) WHERE status <> 'done' OR route IS NULL",
    "CREATE INDEX turns_with_files ON turns (session, number) WHERE json_array_length(outcome, '$.files') > 0",
    "CREATE INDEX turns_by_folder ON turns (substr(folder, -17))",  # the last part of the path, and a quotation mark
    "CREATE INDEX undos_begun ON undos (session, number) WHERE status IN ('begun', 'files')",
)


@migration
def m015_vendor_sessions(db: sqlite3.Connection) -> None:
    """Keep what the turns in each session of an agent CLI have used, and find those in which a person spoke."""
    for statement in VENDOR_SESSIONS:
        db.execute(statement)


ADD_VENDOR_USED = f"""INSERT INTO vendor_usage SELECT session, member, vendor_session,
    {", ".join(f"COALESCE(json_extract(outcome, '$.usage.{name}'), 0) AS {name}" for name in QUANTITIES)}
    FROM turns WHERE {{}} AND vendor_session NOT NULL AND COALESCE(json_extract(setup, '$.memory'), 'fresh') <> 'fresh'
    ON CONFLICT DO UPDATE SET
    {", ".join(f"{name} = {name} + excluded.{name}" for name in QUANTITIES)}"""  # noqa: S608 (our own names)
RECOUNT_VENDOR_USAGE = ("DELETE FROM vendor_usage", ADD_VENDOR_USED.format("outcome NOT NULL"))
"""What the trigger of `VENDOR_SESSIONS` keeps, counted anew."""
VENDOR_SESSIONS: tuple[str, ...] = (
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
    f"""CREATE TRIGGER vendor_usage_counted AFTER UPDATE OF outcome ON turns
        WHEN old.outcome IS NULL AND new.outcome NOT NULL BEGIN {ADD_VENDOR_USED.format("id = new.id")}; END""",
    *RECOUNT_VENDOR_USAGE,
    """CREATE INDEX turns_by_hand ON turns (session, member, vendor_session)
        WHERE opened OR json_extract(setup, '$.adopted') NOT NULL""",
)


@migration
def m016_batches(_db: sqlite3.Connection) -> None:
    """From here on a row of `turn_events` may have many events or a part of one, which earlier versions cannot read."""


@migration
def m017_fewer_indexes(db: sqlite3.Connection) -> None:
    """Write to fewer indexes for a message."""
    for statement in FEWER_INDEXES:
        db.execute(statement)


FEWER_INDEXES: tuple[str, ...] = (
    "DROP INDEX messages_by_turn",
    "CREATE INDEX messages_by_turn ON messages (turn) WHERE turn NOT NULL",
    # of messages that were added to the index of words together: the first id, and the greatest time of them
    """CREATE TABLE message_times (
        first INTEGER PRIMARY KEY,
        latest INTEGER NOT NULL
    ) STRICT""",
    """INSERT INTO message_times SELECT MIN(id), MAX(timestamp) FROM messages WHERE id <= (SELECT through FROM indexed)
        GROUP BY id / 256""",
    "DROP INDEX messages_by_time",
)


@migration
def m018_counted_together(db: sqlite3.Connection) -> None:
    """Count messages together, so that storing one does not write to its session."""
    for statement in COUNTED_TOGETHER:
        db.execute(statement)


ALL_COUNTED = """UPDATE sessions
    SET counted_through = (SELECT COALESCE(MAX(id), 0) FROM messages WHERE session = sessions.id)"""
COUNTED_TOGETHER: tuple[str, ...] = (
    # the id of the last of its own messages that is in `message_count` and `last_number`; see `counting.py`
    "ALTER TABLE sessions ADD COLUMN counted_through INTEGER NOT NULL DEFAULT 0",
    ALL_COUNTED,
    "DROP TRIGGER message_counted",
    "DROP TRIGGER message_uncounted",
    # a session's messages are deleted from its end, and its later ones may get the ids of deleted ones
    """CREATE TRIGGER message_uncounted AFTER DELETE ON messages BEGIN
        UPDATE sessions SET message_count = message_count - (old.id <= counted_through),
            last_number = max(last_number, COALESCE(old.number, 0)), counted_through = min(counted_through, old.id - 1)
        WHERE id = old.session;
    END""",
)


def migrate(db: sqlite3.Connection) -> None:
    """Bring the store to the schema of this version, one transaction for each migration. Raises `NewerStore`."""
    done = db.execute("PRAGMA user_version").fetchone()[0]
    if done > len(MIGRATIONS):
        raise NewerStore(done)
    for number, step in enumerate(MIGRATIONS[done:], done + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            if db.execute("PRAGMA user_version").fetchone()[0] < number:  # else another process has run it
                step(db)
                db.execute(
                    "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at REAL NOT NULL) STRICT"
                )
                db.execute("INSERT INTO migrations VALUES (?, ?)", (step.__name__, time.time()))
                db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


class NewerStore(Exception):
    """The store was written by a later teamchat."""
