"""Runs of checks as rows: written when they begin, completed when they end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from teamchat.core.check import Check, CheckResult
from teamchat.core.store.database import Database
from teamchat.core.store.rows import Count, Moment, Row, dump, load_changes
from teamchat.core.store.texts import Packed, get_text, put_text
from teamchat.core.text.commands import quote
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint

REMOVED = "*" * 6  # or more stand for a secret in a recording
CheckRowStatus = Literal["running", "green", "red", "not_run"]


class CheckRecord(Struct, frozen=True):
    """A run of a check; `number` counts within the session, and `check-N` is what a user calls it by.

    `route` is None for one that a person has run by hand. `after` is the number of the last turn before it, 0 without
    one. `cwd` is where it ran, `folder` where its output is while it runs. `result` is None while it runs. `changes` is
    what changed in the files meanwhile. `undone` is the id of the undo that took it back.
    """

    id: int
    session: int
    number: Count
    route: int | None
    name: str
    command: str | tuple[str, ...]
    status: CheckRowStatus
    started_at: Moment
    after: Count
    cwd: Path
    folder: Path
    result: CheckResult | None = None
    changes: FileChanges | NoCheckpoint | None = None
    output_key: str | None = None
    undone: int | None = None

    @property
    def label(self) -> str:
        """What a user calls it by."""
        return f"check-{self.number}"

    @property
    def shown_command(self) -> str:
        """The command as a line."""
        return self.command if isinstance(self.command, str) else " ".join(map(_as_typed, self.command))


def _as_typed(word: str) -> str:
    """The word in quotes if it needs any. One with a removed secret looks as it did with the secret in it."""
    as_before = word.replace("*", "x") if REMOVED in word else word
    return word if quote(as_before) == as_before else quote(word)


def begin_check(db: Database, session: int, route: int | None, check: Check, cwd: Path, folder: Path) -> CheckRecord:
    """Store a run of a check that starts now."""
    with db.transaction():
        return db.the(
            a_check,
            """INSERT INTO checks (session, number, route, name, command, status, started_at, after, cwd, folder)
            VALUES (?1, (SELECT COALESCE(MAX(number), 0) + 1 FROM checks WHERE session = ?1), ?2, ?3, ?4, 'running',
                ?5, (SELECT COALESCE(MAX(number), 0) FROM turns WHERE session = ?1), ?6, ?7) RETURNING *""",
            session, route, check.name, json.dumps(check.command), time.time(), json.dumps(str(cwd)),
            json.dumps(str(folder)),
        )  # fmt: skip


def end_check(
    db: Database,
    record: CheckRecord,
    result: CheckResult,
    changes: FileChanges | NoCheckpoint | None,
    output: Packed | None,
) -> CheckRecord:
    """Complete a run of a check; part of the caller's transaction, with the queue."""
    with db.transaction():
        return db.the(
            a_check,
            "UPDATE checks SET status = ?, result = ?, changes = ?, output = ? WHERE id = ? RETURNING *",
            result.status, dump(result), dump(changes) if changes else None, put_text(db, output) if output else None,
            record.id,
        )  # fmt: skip


def a_check(row: Row) -> CheckRecord:
    status = row.one_of(CheckRowStatus, "status")
    result = row.json_or_none("result")
    if (result is None) != (status == "running"):
        raise ValueError(f"result is {result!r:.40} of a check that is {status}")
    changes = load_changes(row.json_or_none("changes"))
    return row.read(CheckRecord, changes=changes, output_key=row.text_or_none("output"))


def find_check(db: Database, session: int, number: int | None = None) -> CheckRecord | None:
    """A run of a check by its number, or the session's last."""
    if number is None:
        return db.value(a_check, "SELECT * FROM checks WHERE session = ? ORDER BY number DESC LIMIT 1", session)
    return db.value(a_check, "SELECT * FROM checks WHERE session = ? AND number = ?", session, number)


def checks_of(db: Database, session: int, after: int = 0) -> list[CheckRecord]:
    """The runs of checks with a higher number, undone ones among them, in order."""
    return db.values(a_check, "SELECT * FROM checks WHERE session = ? AND number > ? ORDER BY number", session, after)


def every_check(db: Database, session: int, *, newest_first: bool = False) -> Iterator[CheckRecord]:
    """The runs of checks, undone ones among them, each read when it is asked for."""
    order = "DESC" if newest_first else "ASC"
    return db.each(a_check, f"SELECT * FROM checks WHERE session = ? ORDER BY number {order}", session)  # noqa: S608


def ran_before(check: CheckRecord, turn: int | None, said_at: int) -> bool:
    """Whether the check ran before a message, whose turn has that number; a person's has the time in milliseconds."""
    return check.after < turn if turn else check.started_at * 1000 < said_at


def checks_behind(db: Database, session: int, turn: int) -> list[CheckRecord]:
    """The runs of checks behind the beginning of the turn of that number that are not undone, in order."""
    sql = "SELECT * FROM checks WHERE session = ? AND after >= ? AND undone IS NULL ORDER BY after, number"
    return db.values(a_check, sql, session, turn)


def running_checks(db: Database, session: int) -> list[CheckRecord]:
    return db.values(a_check, "SELECT * FROM checks WHERE session = ? AND status = 'running' ORDER BY number", session)


def running_check_folders(db: Database) -> set[str]:
    """The names of the folders of all checks that run, or whose process was killed, in any session."""
    sql = "SELECT folder FROM checks WHERE status = 'running'"
    return {path.name for path in db.values(lambda row: row.path("folder"), sql)}


def output_of(db: Database, record: CheckRecord) -> bytes:
    """What the check wrote, as far as it is kept."""
    return get_text(db, record.output_key) if record.output_key else b""


def mark_checks_undone(db: Database, checks: Iterable[CheckRecord], undo: int) -> None:
    db.executemany("UPDATE checks SET undone = ? WHERE id = ?", ((undo, check.id) for check in checks))


def mark_checks_redone(db: Database, undo: int) -> None:
    """A redo restores the runs of checks that this undo has undone."""
    db.execute("UPDATE checks SET undone = NULL WHERE undone = ?", undo)
