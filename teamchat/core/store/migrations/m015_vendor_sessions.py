from __future__ import annotations

import sqlite3

from teamchat.core.store.migrations.m014_any_length import QUANTITIES


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
