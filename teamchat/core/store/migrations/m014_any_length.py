from __future__ import annotations

import sqlite3


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
