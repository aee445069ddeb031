"""Undos as rows: the undone messages, and the values that a redo restores.

An undo of files takes long, so its row is stored when it begins: a killed undo is found by it and completed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.errors import UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.rows import Count, Moment, Row, dump
from teamchat.core.store.turns import Before, a_before

Scope = Literal["both", "conversation", "files"]
Status = Literal["begun", "files", "done", "redoing", "redone"]
"""`files`: the files are restored, the conversation is not. `redoing`: a redo began to restore the files."""
Trees = Mapping[str, tuple[str | None, str | None]]
"""The checkpoints before and after the undo, by the path of the work tree; None for a missing one."""


class Undo(Struct, frozen=True):
    """An undo of all turns from one on."""

    id: int
    session: int
    number: Count
    """Counts the undos of the session."""
    scope: Scope
    status: Status
    at: Moment
    turn: Count
    """The number of the first undone turn."""
    through: Count
    """The id in the store of the newest message that stays, 0 without one."""
    before: Before
    """The state before the undo."""
    task: str | None
    """The task that the undo restored."""
    trees: Trees


def begin_undo(db: Database, session: int, scope: Scope, turn: int, target: Before, now: Before, trees: Trees) -> Undo:
    """Store an undo that begins, back to the state `target`; `now` is the state that a redo restores."""
    with db.transaction():
        number = next_undo(db, session)
        return db.the(
            an_undo,
            """INSERT INTO undos (session, number, scope, status, at, turn, through, before_state, task, trees)
            VALUES (?, ?, ?, 'begun', ?, ?, ?, ?, ?, ?) RETURNING *""",
            session, number, scope, time.time(), turn, target.through, dump(now), target.task, json.dumps(trees),
        )  # fmt: skip


def cancel_undo(db: Database, undo: Undo) -> None:
    """Remove an undo that began and changed nothing."""
    with db.transaction():
        db.execute("DELETE FROM undos WHERE id = ?", undo.id)


def next_undo(db: Database, session: int) -> int:
    """Return the number of the session's next undo."""
    return db.number("SELECT COALESCE(MAX(number), 0) + 1 FROM undos WHERE session = ?", session)


def mark_undo(db: Database, undo: Undo, status: Status, trees: Trees | None = None) -> Undo:
    """Note how far an undo is, and with `trees` its checkpoints."""
    marked = replace(undo, status=status, trees=undo.trees if trees is None else trees)
    db.execute("UPDATE undos SET status = ?, trees = ? WHERE id = ?", status, json.dumps(marked.trees), undo.id)
    return marked


def unfinished_undo(db: Database, session: int) -> Undo | None:
    """Return the undo that was killed before its end."""
    sql = "SELECT * FROM undos WHERE session = ? AND status IN ('begun', 'files') ORDER BY number DESC LIMIT 1"
    return db.value(an_undo, sql, session)


def last_undo(db: Database, session: int) -> Undo | None:
    """Return the newest undo that is done and was not completely redone."""
    sql = "SELECT * FROM undos WHERE session = ? AND status IN ('done', 'redoing') ORDER BY number DESC LIMIT 1"
    return db.value(an_undo, sql, session)


def check_no_unfinished_undo(db: Database, session: int) -> None:
    """Raise `UsageError`, with the command to complete it, if an undo or a redo was killed before its end."""
    if undo := unfinished_undo(db, session):
        raise UsageError(f"the undo of turn {undo.turn} was interrupted", f"teamchat undo {undo.turn}")
    check_no_unfinished_redo(db, session)


def check_no_unfinished_redo(db: Database, session: int) -> None:
    """Raise `UsageError`, with the command to complete it, if a redo was killed before its end."""
    last = last_undo(db, session)
    if last and last.status == "redoing":
        raise UsageError(f"the redo of turn {last.turn} was interrupted", "teamchat redo")


def an_undo(row: Row) -> Undo:
    before = a_before(row)
    if before is None:
        raise ValueError("before_state is null")
    trees = {str(path): (_tree(old), _tree(new)) for path, (old, new) in row.json("trees").items()}
    return row.read(Undo, before=before, trees=trees)


def _tree(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError("trees are no names of trees")
