"""The SQLite file of a workspace: opened, migrated, and its errors turned into sentences."""

from __future__ import annotations

import contextlib
import shlex
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from teamchat.core.errors import StoreError
from teamchat.core.folders import WRITABLE
from teamchat.core.store.migrations import NewerStore, migrate

BUSY_S = 30.0  # how long a write waits for another process's transaction


class Database:
    """One connection. Many processes may have the file open at once (WAL); a write takes the lock when it begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.errors():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL would survive a killed process, but not a power cut: a finished turn must be on the disk
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        migrate(self._connection)
        self.path.chmod(0o600)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Every failure of the store in one line that names the file."""
        try:
            yield
        except NewerStore as error:
            raise StoreError(f"the store {self.path} was written by a newer teamchat", "upgrade teamchat") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"the store {self.path} can not be used: {error}", _hint(error, self.path)) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(
                f"the store {self.path} can not be used: {reason}",
                WRITABLE,
            ) from error

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        with self.errors():
            return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self.errors():
            self._connection.executemany(sql, rows)

    def row(self, sql: str, *values: Any) -> sqlite3.Row | None:
        with self.errors():
            found: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
            return found

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        with self.errors():
            return self._connection.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Inside another transaction it is part of that one."""
        if self._connection.in_transaction:
            yield
            return
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    @contextlib.contextmanager
    def taken_back(self) -> Iterator[None]:
        """A transaction of which nothing stays: to look at what would happen."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # SQLite does it itself when the disk is full
            self.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


HINTS = {
    sqlite3.SQLITE_BUSY: "wait until the other teamchat that writes to it is done",
    sqlite3.SQLITE_FULL: "make room on its disk",
    sqlite3.SQLITE_TOOBIG: "send less of it at once",
}


def _hint(error: sqlite3.DatabaseError, path: Path) -> str | None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what SQLite adds to tell cases apart
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        # the whole folder: what is left of a write-ahead log must not get into the next store
        folder = shlex.quote(str(path.parent))
        return f"mv {folder} {folder}.broken  # a new store begins then"
    return HINTS.get(code, WRITABLE if isinstance(error, sqlite3.OperationalError) else None)
