"""The SQLite file of a workspace: opened, migrated, and its errors turned into sentences.

Rows become values by `values`, `each`, `value` and `the`, so an error of a damaged row is a `DamagedStore`. It names
the value after the function that makes it: `a_lesson` is "a lesson".
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from teamchat.core.errors import DamagedStore, DiskFull, StoreError, StoreGone
from teamchat.core.files.folders import FULL, NO_ROOM, WRITABLE
from teamchat.core.files.whole_files import locked_beside, put_in_place, write_private
from teamchat.core.store.rows import Row
from teamchat.core.store.schema import OtherVersion, check_version, create
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of, unused
from teamchat.core.text.words import spaced

NOTHING = contextlib.nullcontext()
FAILURES = (OtherVersion, sqlite3.DatabaseError, UnicodeDecodeError, OSError)
"""The errors of a store that are told in one line."""
BUSY_S = 30.0  # Seconds that a write waits for another process's transaction.
CHECK = "teamchat doctor --store"
T = TypeVar("T")
DESCRIPTORS = 3  # file descriptors of an open store: the file, its write-ahead log and the log's index
NO_VALUE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, zlib.error)
"""The errors that reading a damaged row raises."""


def _bound(sql: str, values: tuple[Any, ...]) -> tuple[Any, ...] | dict[str, Any]:
    """Bind the values by the numbers in the statement (`?1`): Python 3.12.1 warns if those come in a tuple."""
    return {str(number): value for number, value in enumerate(values, 1)} if "?1" in sql else values


class Database:
    """One connection. Many processes may have the file open at once (WAL); a write takes the lock when it begins."""

    def __init__(self, path: Path, *, as_it_is: bool = False, typed: bool = False) -> None:
        """Open the store, making it if needed. With `as_it_is`, do not make, migrate or check it, whatever it holds.

        `typed` says that a person typed the command that uses it, rather than a script.
        """
        self.path, self.typed = path, typed
        self._transaction = Transaction(self)
        self._stored: list[Callable[[], None]] = []
        with self.errors():
            if not as_it_is:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if not path.exists():
                    self._create()
            self._connect()
            self._identity = _identity(path)
            try:
                if not as_it_is:
                    self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _create(self) -> None:
        """Create the store atomically, so that a crash never leaves one without tables."""
        if was_there(self.path):
            raise self.damaged(GONE)
        with locked_beside(self.path) as new:
            if self.path.exists():  # another process was faster
                return
            write_private(new, b"")
            with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = OFF")
                create(connection)
                # Here nobody else has the file. Of two processes that turn the log on at once, SQLite fails one.
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA journal_mode = WAL")
            put_in_place(new, self.path)

    def _connect(self) -> None:
        self._connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        self._connection.create_function("spaced", 1, spaced, deterministic=True)  # used by the index of words
        self._connection.row_factory = Row

    def _prepare(self) -> None:
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not _lacks_room(error):
                raise
            # A connection that has the store alone keeps the index of the log in memory. Nobody else has the store
            # open, or the index would be there.
            self._connection.close()
            self._connect()
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL would survive a killed process, but not a power cut: a finished turn must be on the disk
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        self.check_version()
        self.path.chmod(0o600)

    def check_version(self) -> None:
        """Raise `StoreError` if the tables are of another version, and `DamagedStore` if there are none."""
        with self.errors():
            if not (version := self.version()):
                raise self.damaged(EMPTY)
            check_version(version)

    def version(self) -> int:
        """Return the version of the tables; 0 for a file that was never a whole store."""
        return self.number("PRAGMA user_version")

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn every failure of the store into one line that names the file."""
        try:
            yield
        except FAILURES as error:
            raise self._named(error) from error

    def _named(self, error: BaseException) -> StoreError:
        match error:
            case OtherVersion(later=True):
                return StoreError(f"the store {self.path} was written by a newer teamchat; upgrade teamchat")
            case OtherVersion():
                text = f"the store {self.path} is of a development version of teamchat; move it away to start anew"
                folder = self.path.parent
                return StoreError(
                    text, command_of("mv", str(folder), str(unused(folder.with_name(f"{folder.name}.old"))))
                )
            case sqlite3.DatabaseError():
                return self.damaged(error) if _means_damage(error) else _unusable(self.path, error)
            case OSError() if error.errno in FULL:
                return _full(self.path)
            case OSError():
                reason = error.strerror or str(error)
                return StoreError(f"the store {self.path} cannot be used: {reason}; {WRITABLE}")
            case _:  # UnicodeDecodeError, raised instead of SQLite's error, whose message quotes the file
                return self.damaged("its schema is no text")

    def damaged(self, why: object) -> DamagedStore:
        """Build the error for a value that no healthy store can hold."""
        return DamagedStore(f"the store {self.path} is damaged: {printable(str(why).splitlines()[0])}", CHECK)

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        try:  # here and in what reads rows: to enter `errors` takes as long as a short statement does
            return self._connection.execute(sql, _bound(sql, values))
        except FAILURES as error:
            raise self._named(error) from error

    def executemany(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self.errors():
            self._connection.executemany(sql, (_bound(sql, row) for row in rows))

    def row(self, sql: str, *values: Any) -> Row | None:
        return self._next(self.execute(sql, *values))

    def rows(self, sql: str, *values: Any) -> list[Row]:
        try:
            return self._connection.execute(sql, _bound(sql, values)).fetchall()
        except FAILURES as error:
            raise self._named(error) from error

    def values(self, make: Callable[[Row], T], sql: str, *values: Any) -> list[T]:
        """Make a value of each row with `make`. Raises `DamagedStore`."""
        return [self._made(make, row) for row in self.rows(sql, *values)]

    def each(self, make: Callable[[Row], T], sql: str, *values: Any) -> Iterator[T]:
        """Yield the values that `make` makes of the rows, one by one. Raises `DamagedStore`.

        This takes longer than `values` and less memory.
        """
        rows = self.execute(sql, *values)
        while (row := self._next(rows)) is not None:
            yield self._made(make, row)

    def _next(self, rows: sqlite3.Cursor) -> Row | None:
        try:
            row: Row | None = rows.fetchone()
        except FAILURES as error:
            raise self._named(error) from error
        return row

    def value(self, make: Callable[[Row], T], sql: str, *values: Any) -> T | None:
        """Make a value of the first row with `make`; None without a row. Raises `DamagedStore`."""
        row = self.row(sql, *values)
        return None if row is None else self._made(make, row)

    def the(self, make: Callable[[Row], T], sql: str, *values: Any) -> T:
        """Make a value of a row that must exist with `make`. Raises `DamagedStore`."""
        row = self.row(sql, *values)
        if row is None:
            raise self.damaged("a row is missing that others refer to")
        return self._made(make, row)

    def scalar(self, kind: type[T], sql: str, *values: Any) -> T | None:
        """Return the only column of the first row; None without a row, or if it is NULL. Raises `DamagedStore`."""
        row = self.row(sql, *values)
        return None if row is None or row[0] is None else self._made(lambda row: row.only(kind), row)

    def column(self, kind: type[T], sql: str, *values: Any) -> list[T]:
        """Return the only column of each row. Raises `DamagedStore`."""
        return self.values(lambda row: row.only(kind), sql, *values)

    def number(self, sql: str, *values: Any) -> int:
        """Return the integer in the only column of a row that must exist. Raises `DamagedStore`."""
        row = self.row(sql, *values)
        if row is None or type(row[0]) is not int:
            raise self.damaged("a number is missing")
        return row[0]

    def _made(self, make: Callable[[Row], T], row: Row) -> T:
        try:
            return make(row)
        except NO_VALUE as error:
            named = make.__name__.startswith(("a_", "an_", "some_"))
            what = make.__name__.replace("_", " ") if named else "a row"
            raise self.damaged(f"{what} cannot be read: {error}") from error

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Open a transaction that is on the disk at its end. Inside another transaction it joins that one."""
        return NOTHING if self.in_transaction else self._transaction

    @contextlib.contextmanager
    def transaction_before_another(self) -> Iterator[None]:
        """Open a transaction that reaches the disk with the next one. A power cut before then undoes it."""
        if self.in_transaction:
            yield
            return
        self.execute("PRAGMA synchronous = NORMAL")
        try:
            with self.transaction():
                yield
        finally:
            self.execute("PRAGMA synchronous = FULL")

    def check_there(self) -> None:
        """Raise `StoreGone` if the path no longer leads to the open file: anything written there is lost."""
        if self._identity != _identity(self.path):
            raise StoreGone(f"the store {self.path} was removed or replaced meanwhile", "teamchat sessions")

    @contextlib.contextmanager
    def taken_back(self) -> Iterator[None]:
        """Open a transaction that is always rolled back, for dry runs."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self.roll_back()

    def when_stored(self, tell: Callable[[], None]) -> None:
        """Call `tell` once everything written so far is in the store; never if it is rolled back."""
        if self.in_transaction:
            self._stored.append(tell)
        else:
            tell()

    def told(self) -> None:
        """Call the functions that wait for the transaction that has just ended."""
        waiting, self._stored = self._stored, []
        for tell in waiting:
            tell()

    def roll_back(self) -> None:
        """Undo the writes of the transaction."""
        self._stored.clear()
        if self.in_transaction:  # SQLite does it itself when the disk is full
            self.execute("ROLLBACK")

    def back_up(self, to: Path) -> None:
        """Copy the whole store, as it is now, into a new file. Raises `StoreError`."""
        with self.errors(), contextlib.closing(sqlite3.connect(to)) as copy:
            self._connection.backup(copy)

    def close(self) -> None:
        """Close the file. Any later use of the store raises `StoreError`."""
        self._connection.close()
        self._connection = cast("sqlite3.Connection", _Closed(self.path))


class _Closed:
    """Stands for the connection of a closed store."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def close(self) -> None:
        """Do nothing: the store is closed already."""

    def __getattr__(self, _name: str) -> Any:
        raise StoreError(f"the store {self._path} is closed: what has opened it is over; open it again")


class Transaction(contextlib.AbstractContextManager[None]):
    """A transaction of a store. It is a class because a generator takes as long as a short statement does."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, _: object, error: BaseException | None, _at: object) -> None:
        try:
            if error is None:
                self._db.check_there()
                self._db.execute("COMMIT")
                self._db.told()
        finally:
            self._db.roll_back()


GONE = "the file is gone, and there were conversations in it"
EMPTY = "it is empty"
LOCKS = "session-*.lock"
"""The lock files next to the store: one for every conversation that was run."""

ADVICE = {
    sqlite3.SQLITE_BUSY: "wait until the other teamchat that writes to it is done",
    sqlite3.SQLITE_TOOBIG: "send less of it at once",
}
# The statements are ours and fit a healthy store: where SQLite finds fault with one, the store is to blame.
DAMAGE = (
    sqlite3.SQLITE_ERROR, sqlite3.SQLITE_INTERNAL, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_NOTADB,
)  # fmt: skip


def was_there(store: Path) -> bool:
    """Whether a missing store existed before: conversations were run."""
    return any(store.parent.glob(LOCKS))


def _means_damage(error: sqlite3.DatabaseError) -> bool:
    code = _code(error)
    # Python's own errors have no code: it cannot read text that is not UTF-8
    return code in DAMAGE if code else isinstance(error, sqlite3.OperationalError)


def _code(error: sqlite3.DatabaseError) -> int:
    """Return SQLite's result code without its extension, which tells cases apart."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _lacks_room(error: sqlite3.DatabaseError) -> bool:
    """Whether a full disk is the reason; SQLite reports another one when it makes the log's index."""
    return _code(error) == sqlite3.SQLITE_FULL or error.sqlite_errorcode == sqlite3.SQLITE_IOERR_SHMSIZE


def _unusable(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    if _code(error) == sqlite3.SQLITE_CANTOPEN:
        # Raises `OSError` where no more files can be opened, which SQLite tells as any other reason.
        with contextlib.ExitStack() as spare:
            for _ in range(DESCRIPTORS):
                spare.callback(os.close, os.dup(2))
    if _lacks_room(error):
        return _full(path)
    advice = ADVICE.get(_code(error), WRITABLE if isinstance(error, sqlite3.OperationalError) else None)
    what = f"the store {path} cannot be used: {error}"
    return StoreError(f"{what}; {advice}" if advice else what)


def _full(path: Path) -> DiskFull:
    return DiskFull(f"the store {path} {NO_ROOM}")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
