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

REMOVED = "*" * 6  # In a recording, this many asterisks or more stand for a secret.
CheckRowStatus = Literal["running", "green", "red", "not_run"]


class CheckRecord(Struct, frozen=True):
    """A run of a check, as it is stored."""

    id: int
    session: int
    number: Count
    """Counts within the session."""
    route: int | None
    """None if a person ran it by hand."""
    name: str
    command: str | tuple[str, ...]
    status: CheckRowStatus
    started_at: Moment
    after: Count
    """The number of the last turn before it, 0 without one."""
    cwd: Path
    """The folder where it ran."""
    folder: Path
    """The folder of its output while it runs."""
    result: CheckResult | None = None
    """None while it runs."""
    changes: FileChanges | NoCheckpoint | None = None
    """The changes to files during the run."""
    output_key: str | None = None
    undone: int | None = None
    """The id of the undo that took it back."""

    @property
    def label(self) -> str:
        """The name that a user calls the run by: `check-N`."""
        return f"check-{self.number}"

    @property
    def shown_command(self) -> str:
        """The command as a line."""
        return self.command if isinstance(self.command, str) else " ".join(map(_as_typed, self.command))


def _as_typed(word: str) -> str:
    """Quote the word if needed. A word with a removed secret is quoted as if the secret were still in it."""
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
    """Find a run of a check by its number, or the session's last."""
    if number is None:
        return db.value(a_check, "SELECT * FROM checks WHERE session = ? ORDER BY number DESC LIMIT 1", session)
    return db.value(a_check, "SELECT * FROM checks WHERE session = ? AND number = ?", session, number)


def checks_of(db: Database, session: int, after: int = 0) -> list[CheckRecord]:
    """List the runs of checks after the run with the number `after`, including undone ones, in order."""
    return db.values(a_check, "SELECT * FROM checks WHERE session = ? AND number > ? ORDER BY number", session, after)


def every_check(db: Database, session: int, *, newest_first: bool = False) -> Iterator[CheckRecord]:
    """Read the runs of checks one by one, including undone ones."""
    order = "DESC" if newest_first else "ASC"
    return db.each(a_check, f"SELECT * FROM checks WHERE session = ? ORDER BY number {order}", session)  # noqa: S608


def ran_before(check: CheckRecord, turn: int | None, said_at: int) -> bool:
    """Whether the check ran before a message, whose turn has that number; a person's has the time in milliseconds."""
    return check.after < turn if turn else check.started_at * 1000 < said_at


def checks_behind(db: Database, session: int, turn: int) -> list[CheckRecord]:
    """List the runs since the turn of that number began that are not undone, in order."""
    sql = "SELECT * FROM checks WHERE session = ? AND after >= ? AND undone IS NULL ORDER BY after, number"
    return db.values(a_check, sql, session, turn)


def running_checks(db: Database, session: int) -> list[CheckRecord]:
    return db.values(a_check, "SELECT * FROM checks WHERE session = ? AND status = 'running' ORDER BY number", session)


def running_check_folders(db: Database) -> set[str]:
    """Name the folders of all running checks in any session, including those whose process was killed."""
    sql = "SELECT folder FROM checks WHERE status = 'running'"
    return {path.name for path in db.values(lambda row: row.path("folder"), sql)}


def output_of(db: Database, record: CheckRecord) -> bytes:
    """Return the part of the check's output that is kept."""
    return get_text(db, record.output_key) if record.output_key else b""


def mark_checks_undone(db: Database, checks: Iterable[CheckRecord], undo: int) -> None:
    db.executemany("UPDATE checks SET undone = ? WHERE id = ?", ((undo, check.id) for check in checks))


def mark_checks_redone(db: Database, undo: int) -> None:
    """Restore the runs of checks that this undo took back, as part of a redo."""
    db.execute("UPDATE checks SET undone = NULL WHERE undone = ?", undo)
