"""What it takes to store 1,000 messages one by one, over bare inserts into SQLite.

The floor is a table with the columns of a message, of which each insert is a transaction of its own that is as durable:
a write-ahead log that is synced at every commit. In both, as many were stored before, so that the log has its size: a
sync that makes a file longer takes several times as long. The two take turns after every few messages, because most of
the time is the disk's, and how long that takes to sync varies from one tenth of a second to the next.

All of it is repeated with new files. Of the times that the same few messages took, the median counts, and the medians
are added up. So the figure has the checkpoints and the additions to the index of words, which come at the same messages
each time, but not the moments when every sync takes five times as long: they fall on one side only.
By the medians of whole thousands the figure varied twice as much.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.timing import REPEATS
from teamchat.core.messages import NewMessage, Routing, Speaker
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import create_session

NAME = "1,000 messages one by one"
COUNT = 1000
MOST = 2.25  # times the floor, if an insert takes it 0.08 ms; 1.35 was measured where it takes 0.14 ms
IN_A_ROW = 25
TEXT = "The parser reads one line at a time and keeps what it has, number {}."
KAI = Speaker("kai", "kai", type="human")
TABLE = """CREATE TABLE messages (id INTEGER PRIMARY KEY, session, message, number, content, speaker_id, speaker_name,
    speaker_type, routing, timestamp)"""
INSERT = """INSERT INTO messages (session, message, number, content, speaker_id, speaker_name, speaker_type, routing,
    timestamp) VALUES (1, ?, ?, ?, 'kai', 'kai', 'human', '[["max"], []]', ?)"""


Store = Callable[[int], object]
"""Store a message of that number."""


def measures(_quick: bool) -> Measures:
    yield NAME, compared


def compared() -> Iterator[Figure]:
    ours, bare = (1000 * typical(rounds) for rounds in zip(*(in_turn() for _ in range(REPEATS)), strict=True))
    yield Figure(name=NAME, unit="ms", value=ours, floor=bare, floor_is="bare inserts", bound=MOST)


def typical(rounds: Sequence[Sequence[float]]) -> float:
    """The sum of the times of each few messages, each the median of the rounds."""
    medians: Iterator[float] = map(statistics.median, zip(*rounds, strict=True))
    return sum(medians)


def in_turn() -> tuple[list[float], list[float]]:
    """The seconds that a message log and bare inserts take for each few messages of the second thousand."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Database(Path(folder) / "store.db")) as store,
        closing(sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)) as db,
    ):
        ours, bare = in_a_log(store), in_a_table(db)
        took: dict[Store, list[float]] = {ours: [], bare: []}
        for way in took:
            seconds(way, 0, COUNT)
        for first in range(COUNT, 2 * COUNT, IN_A_ROW):
            for way in (ours, bare) if first % (2 * IN_A_ROW) else (bare, ours):
                took[way].append(seconds(way, first, IN_A_ROW))
    return took[ours], took[bare]


def in_a_log(db: Database) -> Store:
    log = SqliteLog(db, create_session(db, "bench", None).id)
    return lambda number: log.append(NewMessage(TEXT.format(number), KAI, Routing(("max",))))


def in_a_table(db: sqlite3.Connection) -> Store:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(TABLE)
    return lambda number: db.execute(INSERT, (f"msg-{number}", number, TEXT.format(number), 1000 * number))


def seconds(store: Store, first: int, count: int) -> float:
    began = time.perf_counter()
    for number in range(first, first + count):
        store(number)
    return time.perf_counter() - began
