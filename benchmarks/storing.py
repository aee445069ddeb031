"""What it takes to store 1,000 messages one by one, over bare inserts into SQLite.

The floor is a table with the columns of a message, of which each insert is a transaction of its own that is as durable:
a write-ahead log that is synced at every commit. In both, as many were stored before, so that the log has its size: a
sync that makes a file longer takes several times as long.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.figure import Measures
from benchmarks.timing import Took, compared
from teamchat.core.messages import NewMessage, Routing, Speaker
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import create_session

COUNT = 1000
TEXT = "The parser reads one line at a time and keeps what it has, number {}."
KAI = Speaker("kai", "kai", type="human")
TABLE = """CREATE TABLE messages (id INTEGER PRIMARY KEY, session, message, number, content, speaker_id, speaker_name,
    speaker_type, routing, timestamp)"""
INSERT = """INSERT INTO messages (session, message, number, content, speaker_id, speaker_name, speaker_type, routing,
    timestamp) VALUES (1, ?, ?, ?, 'kai', 'kai', 'human', '[["max"], []]', ?)"""


def measures(_quick: bool) -> Measures:
    name = "1,000 messages one by one"
    yield name, partial(compared, name, partial(in_a_file, ours), partial(in_a_file, bare), "bare inserts", 1.5)


def in_a_file(store: Callable[[Path], float]) -> Took:
    with tempfile.TemporaryDirectory() as folder:
        return Took(1000 * store(Path(folder) / "store.db"), 0)


def ours(file: Path) -> float:
    with closing(Database(file)) as db:
        log = SqliteLog(db, create_session(db, "bench", None).id)
        return seconds(lambda number: log.append(NewMessage(TEXT.format(number), KAI, Routing(("max",)))))


def bare(file: Path) -> float:
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(TABLE)
        return seconds(lambda number: db.execute(INSERT, (f"msg-{number}", number, TEXT.format(number), 1000 * number)))


def seconds(store: Callable[[int], object]) -> float:
    """Those of the second thousand."""
    for number in range(COUNT):
        store(number)
    began = time.perf_counter()
    for number in range(COUNT, 2 * COUNT):
        store(number)
    return time.perf_counter() - began
