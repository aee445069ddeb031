"""What a command reads of the store does not grow with the conversation; each query that it really runs is checked."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.filled_store import MEMBERS, PERSON, fill
from teamchat.cli.startup.workspace import store_file
from teamchat.core.text.words import spaced
from tests.program import run_here
from tests.scripted_team import crew

FEW, MANY = 200, 1980  # messages; of so few no turn is undone, and a branch copies what is
COMMANDS = {
    "send --to max --turns 1 Hi": 7,
    "resume": 0,
    "run sequential --members writer Hi": 0,
    "run sequential --members writer --dry-run Hi": 0,
    "send --to writer Hi": 0,
    "send --dry-run --to carol Hi": 0,
    "log -n 20": 0,
    "log -n 20 --all --json": 0,
    "log --full msg-1": 0,
    "check true": 0,
    "show": 0,
    "show check-2": 0,
    "show 2 --prompt": 0,
    "show --diff": 0,
    "sessions": 0,
    "sessions --json": 0,
    "usage": 0,
    "usage --all": 0,
    "search w4e1f": 0,
    "diff": 0,
    "task Build": 0,
    "todo add Test": 0,
    "todo": 0,
    "stop": 0,
    "undo --yes": 0,
    "redo --yes": 0,
    "retry --yes": 0,
    "learn Test": 0,
    "watch --until-done": 0,
    "branch other": 0,
    "send --to writer --session other Hi": 0,
    "compare s1 other": 2,
}
"""With their exit codes."""
CHECKS = """INSERT INTO checks (session, number, name, command, status, started_at, after, cwd, folder, result)
    SELECT session, number, 'tests', '"make"', 'green', started_at + 0.4, number, '"/tmp"', '"/tmp"',
    '{"status": "green"}' FROM turns WHERE undone IS NULL"""
"""A check behind every turn."""
STEPS_AT_ONCE = 10
MORE = 1.1  # times the steps in the short conversation
SMALL = ("sessions", "lineage", "usage", "indexed", "lessons")  # tables that do not grow with a conversation
FEW_ROWS = ("routes_in_queue", "turns_running", "undos_begun")  # indexes of what is not over
PLANNED = ("SELECT", "INSERT", "UPDATE", "DELETE")
STEP = re.compile(r"(?P<how>SCAN|SEARCH) (?!CONSTANT ROW|message_text)(?P<what>\w+)(.* INDEX (?P<index>\w+))?")


class Watched(sqlite3.Connection):
    """A connection that counts the steps of SQLite's machine, and keeps the statements with their values."""

    steps = 0
    queries: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **keys: Any) -> None:
        super().__init__(*args, **keys)
        self.set_progress_handler(self.count, STEPS_AT_ONCE)

    @staticmethod
    def count() -> int:
        Watched.steps += STEPS_AT_ONCE
        return 0

    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        Watched.queries[sql] = values
        return super().execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Any], /) -> sqlite3.Cursor:
        rows = list(rows)
        Watched.queries |= dict.fromkeys([sql], rows[0]) if rows else {}
        return super().executemany(sql, rows)


@pytest.fixture
def _watched(monkeypatch: pytest.MonkeyPatch) -> None:
    Watched.queries.clear()
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))


def conversation(folder: Path, messages: int) -> sqlite3.Connection:
    """A team in `folder` with a conversation of that length. max has always continued one session of its CLI."""
    folder.mkdir()
    os.chdir(folder)
    crew(
        folder,
        {name: ["Hello. [NEXT: writer]" if name == "max" else "Hello."] * 9 for name in (*MEMBERS, "writer")},
        humans=[PERSON],
        like={"max": "claude", "sarah": "codex"},
        members={"max": {"memory": "resume"}, "sarah": {"memory": "resume"}},
    )
    fill(store_file(folder), messages)
    db = sqlite3.connect(store_file(folder), isolation_level=None)
    db.create_function("spaced", 1, spaced)
    db.execute("UPDATE turns SET vendor_session = 'v', agent = 'max-agent' WHERE member = 'max'")
    db.execute(CHECKS)
    return db


def steps_of(command: str) -> int:
    before = Watched.steps
    ran = run_here(*command.split())
    assert ran.code == COMMANDS[command], (command, ran)
    return Watched.steps - before


@pytest.mark.usefixtures("_watched")
def test_no_command_reads_more_in_a_long_conversation(world: Path) -> None:
    steps: list[dict[str, int]] = []
    for messages in (FEW, MANY):
        conversation(world / str(messages), messages).close()
        steps.append({command: steps_of(command) for command in COMMANDS})
    few, many = steps
    assert {name: (few[name], many[name]) for name in COMMANDS if many[name] > MORE * few[name] + STEPS_AT_ONCE} == {}


@pytest.mark.usefixtures("_watched")
def test_no_query_of_a_command_reads_a_whole_table_or_sorts_one(world: Path) -> None:
    with closing(conversation(world / "few", FEW)) as db:
        Watched.queries.clear()
        for command in COMMANDS:
            steps_of(command)
        queries = dict(Watched.queries)
        wrong = {sql: plan for sql, values in queries.items() if not is_quick(plan := plan_of(db, sql, values))}
    assert len(queries) > 100, "the store was opened without `Watched`"
    assert wrong == {}


def plan_of(db: sqlite3.Connection, sql: str, values: Any) -> list[tuple[int, str]]:
    """The steps of SQLite's plan, each with the number of the query or subquery; none of a statement without a plan."""
    return (
        [(row[1], row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)] if sql.startswith(PLANNED) else []
    )


def is_quick(plan: list[tuple[int, str]]) -> bool:
    """True if no table that grows with a conversation is read to its end, or sorted."""
    read = [(query, found) for query, step in plan if (found := STEP.match(step))]
    grows = [one for one in read if one[1]["what"] not in SMALL and one[1]["index"] not in FEW_ROWS]
    sorted_in = {query for query, step in plan if "TEMP B-TREE" in step}
    return not any(found["how"] == "SCAN" or query in sorted_in for query, found in grows)
