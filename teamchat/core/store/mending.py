"""A copy of a damaged store whose first page is as SQLite wrote it, as far as its format says what that is."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from struct import pack

from teamchat.core.store.migrations.in_order import MIGRATIONS

PAGE = 4096  # bytes: every store has pages of that size
FIXED = {
    0: b"SQLite format 3\0",
    16: pack(">H", PAGE),
    20: bytes((0, 64, 32, 32)),  # no reserved bytes, and the fractions of payload
    44: pack(">I", 4),  # the schema's format
    52: bytes(4),  # no automatic vacuum
    56: pack(">I", 1),  # UTF-8
    64: bytes(4),  # no incremental vacuum
    68: bytes(24),  # no application's number, and what is reserved
}
"""The bytes at these places are the same in every store."""
TREE = range(100, 124)  # where the first page has the root of the schema's tree
CELLS = range(PAGE - 40, PAGE)
VERSIONS = tuple(step.__name__ for step in MIGRATIONS)
NEEDED = ("sessions", "messages", "turns", "turn_events", "texts", "routes", "todo_changes", "summaries", "lessons")
"""Tables of every version."""
KNOWN = f"SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name IN {NEEDED}"  # noqa: S608 (our own names)
WHOLE = "SELECT COUNT(*) = 0 FROM pragma_integrity_check(1) WHERE integrity_check <> 'ok'"


def mended(damaged: Path, to: Path) -> Path:
    """Copy the store with its write-ahead log to `to` and mend the copy's first page. Raises `OSError`."""
    shutil.copyfile(damaged, to)
    log = damaged.with_name(f"{damaged.name}-wal")
    if logged := log.exists() and log.stat().st_size > 0:
        shutil.copyfile(log, to.with_name(f"{to.name}-wal"))
    with to.open("r+b") as file:
        _write_header(file.fileno(), logged=logged)
        if _asked(to, KNOWN) < len(NEEDED):
            _mend_tree(to, file.fileno())
    if version := known_version(to):
        with closing(sqlite3.connect(to, isolation_level=None)) as db, suppress(sqlite3.Error):
            db.execute(f"PRAGMA user_version = {version}")
    return to


def known_version(store: Path) -> int | None:
    """The version that a store's record of its migrations says; None where that cannot be read, or is a later one's."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(store)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM migrations")]
        if names and all(name in VERSIONS for name in names):
            return max(map(VERSIONS.index, names)) + 1
    return None


def _write_header(file: int, *, logged: bool) -> None:
    for place, content in FIXED.items():
        os.pwrite(file, content, place)
    os.pwrite(file, bytes((1 + logged,) * 2), 18)  # whether there is a write-ahead log
    os.pwrite(file, pack(">I", os.fstat(file).st_size // PAGE), 28)
    os.pwrite(file, os.pread(file, 4, 24), 92)  # the number of pages is of the last change


def _mend_tree(store: Path, file: int) -> None:
    """Try every value of each byte of the schema's root, until the whole store is found by it."""
    for place, value, before in _one_byte_each(file):
        os.pwrite(file, bytes([value]), place)
        if _asked(store, KNOWN, "?immutable=1") == len(NEEDED) and _asked(store, WHOLE):
            return
        os.pwrite(file, before, place)


def _one_byte_each(file: int) -> Iterator[tuple[int, int, bytes]]:
    for place in (*TREE, *CELLS):
        before = os.pread(file, 1, place)
        yield from ((place, value, before) for value in range(256) if bytes([value]) != before)


def _asked(store: Path, sql: str, how: str = "") -> int:
    """The number that the store answers; 0 where it cannot."""
    with (
        suppress(sqlite3.Error, UnicodeDecodeError),
        closing(sqlite3.connect(f"{store.as_uri()}{how}", uri=True)) as db,
    ):
        number: int = db.execute(sql).fetchone()[0]
        return number
    return 0
