from __future__ import annotations

import sqlite3


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
