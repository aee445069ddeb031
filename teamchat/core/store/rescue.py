"""The rescue of a damaged store: its readable rows, copied into a new one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from teamchat.core.errors import DamagedStore
from teamchat.core.store.checking import KINDS, CheckedRows
from teamchat.core.store.database import NO_VALUE, Database
from teamchat.core.store.lessons import a_lesson
from teamchat.core.store.rows import Row
from teamchat.core.store.schema import RECOUNT
from teamchat.core.text.words import spaced

MENDING = (
    # a conversation whose own row is lost goes on under another name
    """INSERT INTO sessions (id, name, team, fence_key, created_at, used_at)
    SELECT DISTINCT session, 'rescued-' || session, '', ?1, ?2, ?2 FROM messages
    WHERE session NOT IN (SELECT id FROM sessions)""",
    "DELETE FROM lineage WHERE session NOT IN (SELECT id FROM sessions) OR ancestor NOT IN (SELECT id FROM sessions)",
    """DELETE FROM turns WHERE session NOT IN (SELECT id FROM sessions) OR prompt NOT IN (SELECT hash FROM texts)
    OR NOT EXISTS (SELECT 1 FROM lineage CROSS JOIN messages ON messages.session = lineage.ancestor
        AND message = shown_through AND messages.id <= through WHERE lineage.session = turns.session)
    OR NOT EXISTS (SELECT 1 FROM lineage CROSS JOIN messages ON messages.session = lineage.ancestor
        AND message = json_extract(setup, '$.request') AND messages.id <= through
        WHERE lineage.session = turns.session)
    OR NOT EXISTS (SELECT 1 FROM lineage CROSS JOIN messages ON messages.session = lineage.ancestor
        AND message = json_extract(setup, '$.answers') AND messages.id <= through
        WHERE lineage.session = turns.session)""",
    """UPDATE sessions SET last_said = '[]' WHERE EXISTS (SELECT 1 FROM json_each(last_said) WHERE NOT EXISTS (
        SELECT 1 FROM lineage CROSS JOIN messages ON messages.session = lineage.ancestor
        AND message = json_extract(value, '$.message') AND messages.id <= through WHERE lineage.session = sessions.id
    ))""",
    "DELETE FROM undos WHERE session NOT IN (SELECT id FROM sessions)",
    "UPDATE turns SET undone = NULL WHERE undone NOT IN (SELECT id FROM undos)",
    "DELETE FROM checks WHERE session NOT IN (SELECT id FROM sessions)",
    "UPDATE checks SET undone = NULL WHERE undone NOT IN (SELECT id FROM undos)",
    "UPDATE checks SET output = NULL WHERE output NOT IN (SELECT hash FROM texts)",
    "DELETE FROM accepted WHERE session NOT IN (SELECT id FROM sessions)",
    "DELETE FROM hides WHERE session NOT IN (SELECT id FROM sessions) OR message NOT IN (SELECT id FROM messages)",
    "UPDATE hides SET undo = NULL WHERE undo NOT IN (SELECT id FROM undos)",
    "UPDATE turns SET system_text = NULL WHERE system_text NOT IN (SELECT hash FROM texts)",
    "UPDATE turns SET text = NULL WHERE text NOT IN (SELECT hash FROM texts)",
    "DELETE FROM imported_entries WHERE session NOT IN (SELECT id FROM sessions)",
    "DELETE FROM turn_events WHERE turn NOT IN (SELECT id FROM turns)",
    "DELETE FROM children WHERE session NOT IN (SELECT id FROM sessions) OR turn NOT IN (SELECT id FROM turns)",
    "UPDATE messages SET turn = NULL WHERE turn NOT IN (SELECT id FROM turns)",
    """DELETE FROM routes WHERE session NOT IN (SELECT id FROM sessions) OR EXISTS (
        SELECT 1 FROM (SELECT parent AS named UNION ALL SELECT request UNION ALL SELECT as_of) WHERE named NOT NULL
        AND NOT EXISTS (SELECT 1 FROM lineage CROSS JOIN messages ON messages.session = lineage.ancestor
            AND message = named AND messages.id <= through WHERE lineage.session = routes.session))""",
    """UPDATE routes SET answer = NULL, status = CASE status WHEN 'answered' THEN 'held' ELSE status END
    WHERE (answer NOT NULL OR status = 'answered') AND NOT EXISTS (
        SELECT 1 FROM turns WHERE id = answer AND (place IS NULL OR text NOT NULL AND turns.status = 'answered'))""",
    """UPDATE sessions
    SET next_route = max(next_route, (SELECT COALESCE(MAX(number), 0) + 1 FROM routes WHERE session = sessions.id))""",
    "DELETE FROM todo_changes WHERE session NOT IN (SELECT id FROM sessions)",
    """UPDATE todo_changes SET message = NULL WHERE message NOT NULL AND NOT EXISTS (
        SELECT 1 FROM messages WHERE messages.session = todo_changes.session AND messages.message = todo_changes.message
    )""",
    """DELETE FROM summaries WHERE session NOT IN (SELECT id FROM sessions) OR turn NOT IN (SELECT id FROM turns)
    OR through NOT IN (SELECT id FROM messages) OR text NOT IN (SELECT hash FROM texts)""",
    """DELETE FROM clears WHERE session NOT IN (SELECT id FROM sessions)
    OR through NOT IN (SELECT id FROM messages)""",
    "UPDATE clears SET undo = NULL, undone = 1 WHERE undo NOT IN (SELECT id FROM undos)",
    "DELETE FROM unsent WHERE session NOT IN (SELECT id FROM sessions)",
    """DELETE FROM adoptions WHERE NOT EXISTS (
        SELECT 1 FROM messages WHERE messages.session = adoptions.session AND messages.message = adoptions.message)""",
    """DELETE FROM images WHERE body NOT IN (SELECT hash FROM texts) OR NOT EXISTS (
        SELECT 1 FROM messages WHERE messages.session = images.session AND messages.message = images.message)""",
    *RECOUNT,
)
"""Statements that repair rows that refer to lost ones; ?1 is a new secret, ?2 the time."""


def rescue(damaged: Database, to: Path) -> dict[str, int]:
    """Copy every readable row into a new store, except rows that need lost ones. Return the number of rows by kind.

    Raises `StoreError` if the new store cannot be written.
    """
    # with it SQLite reads a file that is shorter than its header says, except the pages that are cut off
    damaged.execute("PRAGMA writable_schema = ON")
    new = Database(to)
    try:
        new.execute("PRAGMA foreign_keys = OFF")
        with new.transaction():
            for kind in KINDS:
                _copy(damaged, new, kind)
            for sql in MENDING:
                new.execute(sql, *(os.urandom(16).hex(), time.time())[: 2 * ("?1" in sql)])
            for lesson in new.values(a_lesson, "SELECT * FROM lessons"):
                new.execute("INSERT INTO lesson_words (rowid, body) VALUES (?, ?)", lesson.number, spaced(lesson.text))
        return row_counts(new)
    finally:
        new.close()


def row_counts(db: Database) -> dict[str, int]:
    """Count the rows of each kind in a whole store."""
    return {kind.noun: db.number(_counting(kind)) for kind in KINDS}


def lost(damaged: Database, kept: dict[str, int]) -> dict[str, int | None]:
    """Count the rows of a damaged store beyond those `kept`, by kind, without intact kinds; None if unknown."""
    missing = {kind.noun: _missing(damaged, kind, kept[kind.noun]) for kind in KINDS}
    return {noun: number for noun, number in missing.items() if number != 0}


def _missing(damaged: Database, kind: CheckedRows, kept: int) -> int | None:
    for index in ("NOT INDEXED", ""):  # where rows cannot be read, an index may still have all of them
        with contextlib.suppress(DamagedStore):
            return max(0, damaged.number(_counting(kind, index)) - kept)
    return None


def _counting(kind: CheckedRows, index: str = "") -> str:
    return f"SELECT COUNT(*) FROM {kind.table} {index}"  # noqa: S608 (our own names)


def _copy(damaged: Database, new: Database, kind: CheckedRows) -> None:
    known = [row["name"] for row in new.rows(f"PRAGMA table_info({kind.table})")]
    for row in _rows(damaged, kind):
        columns = [name for name in known if row.has(name)]
        names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
        with contextlib.suppress(*NO_VALUE, DamagedStore):  # what is no value, or is there twice, stays behind
            kind.make(row)
            new.execute(
                f"INSERT INTO {kind.table} ({names}) VALUES ({marks})",  # noqa: S608 (our own names)
                *(row[name] for name in columns),
            )


def _rows(damaged: Database, kind: CheckedRows) -> Iterator[Row]:
    """Read the rows from either end up to the damage in the file."""
    for backwards in (False, True):
        with contextlib.suppress(DamagedStore):
            yield from damaged.each(lambda row: row, kind.rows(backwards=backwards))
            return
