"""Whatever has become of the files in the state folder: one line, an exit code of the table, and never a traceback."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.errors import ExitCode
from tests.cli.helpers import select
from tests.cli.test_any_arguments import assert_complaint
from tests.program import run_here
from tests.scripted_team import Reply, crew
from tests.trials import some

DAMAGES = int(os.environ.get("DAMAGES", "3"))  # of each kind; `make fuzz` tries more
LOOKING = [
    ["log"], ["log", "--json"], ["show"], ["show", "1", "--json"], ["show", "2", "--prompt"], ["show", "1", "--diff"],
    ["show", "--system"], ["sessions"], ["sessions", "--json"], ["usage"], ["usage", "--all", "--json"], ["task"],
    ["todo"], ["todo", "--history"], ["learn"], ["team"], ["stop"], ["open", "max"], ["export"],
    ["export", "--format", "json", "--all"],
    ["send", "--dry-run", "[NEXT: max] and now?"],
]  # fmt: skip
CHANGING = [
    ["task", "another"], ["todo", "add", "more"], ["todo", "done", "1"], ["learn", "a lesson"],
    ["learn", "--delete", "1"], ["send", "--to", "max", "Go on"], ["resume"], ["resume", "--skip"],
    ["resume", "--drop"], ["compact"], ["send", "--new", "Hi"], ["sessions", "delete", "s1", "--yes"],
]  # fmt: skip
Damage = Callable[[Path, random.Random], None]


@pytest.fixture
def state(world: Path) -> Path:
    """The folder of a workspace with a real conversation, in which something of every kind is stored."""
    said: dict[str, list[Reply]] = {
        "max": ["Plan it. [TODO: think] [NEXT: sarah + dora]", "Wait [NEXT: kailai, sarah]"],
        "sarah": ["Fine. [DONE: 1]", "More."],
        "dora": [{"say": "half", "exit": 3}],
    }
    crew(world, said, humans=("kailai", "bob"), like={"sarah": "claude"}, team={"compactor": "sarah", "fence": True},
         members={"sarah": {"memory": "resume", "system_instruction": "Be Sarah. " * 100}})  # fmt: skip
    run_here("send", "--as", "kailai", "--to", "max", "[TEAM_TASK: build it] Begin " + "x" * 3000)
    run_here("compact")
    run_here("learn", "Run the tests first.")
    run_here("send", "--as", "kailai", "--new", "--session", "other", "--to", "max", "Begin again")
    run_here("send", "--as", "kailai", "--session", "s1", "--to", "sarah", "[DROP: dora] Go on")
    run_here("send", "--as", "kailai", "--new", "--session", "cleared", "--to", "bob", "Hi")
    run_here("resume", "--session", "cleared", "--drop")
    run_here("clear", "--session", "cleared")
    folder = store_file(Path.cwd()).parent
    with contextlib.closing(sqlite3.connect(store_file(Path.cwd()))) as db:  # a process that was killed over its turn
        db.execute(
            """INSERT INTO turns (session, number, route, member, agent, "like", status, started_at, system_text,
            prompt, shown_through, setup, folder) SELECT session, 99, route, member, agent, "like", 'running',
            started_at, system_text, prompt, shown_through, setup, ? FROM turns WHERE number = 1 AND session = 1""",
            (f'"{folder}/turns/0123456789abcdef"',),
        )
        db.commit()
    return folder


@pytest.fixture
def restored(state: Path, world: Path) -> Callable[[], Path]:
    """Makes the state folder what it was before the damage, and names the store."""
    copy = world / "copy"
    shutil.copytree(world / "state", copy)

    def restore() -> Path:
        shutil.rmtree(world / "state")
        shutil.copytree(copy, world / "state")
        return state / "teamchat.db"

    return restore


def assert_one_line(seed: object, *commands: list[str]) -> None:
    for args in commands:
        ran = run_here(*args)
        assert ran.code in set(ExitCode), (seed, args, ran)
        assert "Traceback" not in ran.err, (seed, args, ran.err)
        assert_complaint(ran)
        if ran.code == ExitCode.STORE:
            assert ran.err.count("\nteamchat: ") + ran.err.startswith("teamchat: ") <= 1, (seed, args, ran.err)


def flips(path: Path, chance: random.Random) -> None:
    """Some bytes are others than were written."""
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 3, 30))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def noise(path: Path, chance: random.Random) -> None:
    """A stretch of the file is noise, in the texts and numbers of rows as well."""
    content = bytearray(path.read_bytes())
    begin, size = chance.randrange(len(content)), chance.choice((1, 8, 100))
    content[begin : begin + size] = chance.randbytes(size)
    path.write_bytes(content[: path.stat().st_size])


def cuts(path: Path, chance: random.Random) -> None:
    """The end is missing."""
    size = path.stat().st_size
    os.truncate(path, chance.choice((0, 1, 100, 512, 4095, 4096, size - 1, size - 4096, chance.randrange(size))))


def zeroes(path: Path, chance: random.Random) -> None:
    """A page is empty, or what another one is."""
    pages = path.stat().st_size // 4096
    with path.open("r+b") as file:
        other = bytes(4096)
        if chance.random() < 0.5:
            file.seek(4096 * chance.randrange(pages))
            other = file.read(4096)
        file.seek(4096 * chance.randrange(pages))
        file.write(other)


VALUES = [
    None, "", "x", "[]", "{}", "null", "[[]]", "[[1], 2]", '{"argv": 1}', '"/etc"', '"../../x"', "msg-99", "running",
    "answered", "asked", "held", 0, -1, 1, 7, 2**62, 1e300, -1.5, b"", b"\xff\xfe", "\ud7ff", "[" * 10_000,
    "x" * 100_000,
]  # fmt: skip


def edits(path: Path, chance: random.Random) -> None:
    """Rows hold what the program never wrote there, or are gone; what a column takes and refers to is not looked at."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET sql = replace(replace(sql, 'STRICT, ', ''), 'STRICT', '') WHERE type = 'table'"
        )
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table'")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for _ in range(chance.choice((1, 1, 2, 5))):
            table = chance.choice(TABLES)
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            where = ""  # every row, of tables whose rows have no number
            if table not in ("texts", "turn_events"):
                numbers = [row[0] for row in db.execute(f"SELECT rowid FROM {table}")]  # noqa: S608 (our own names)
                where = f"WHERE rowid = {chance.choice(numbers or [0])}"
            with contextlib.suppress(sqlite3.IntegrityError):
                if chance.random() < 0.15:
                    db.execute(f"DELETE FROM {table} {where}")  # noqa: S608 (likewise)
                else:
                    sql = f'UPDATE {table} SET "{chance.choice(columns)}" = ? {where}'  # noqa: S608 (likewise)
                    db.execute(sql, (chance.choice(VALUES),))


TABLES = ["sessions", "messages", "routes", "turns", "turn_events", "todo_changes", "summaries", "lessons", "texts"]


@pytest.mark.parametrize("damage", [flips, noise, cuts, zeroes, edits])
def test_every_command_says_in_one_line_what_is_wrong(damage: Damage, restored: Callable[[], Path]) -> None:
    for number in range(DAMAGES):
        seed = f"{damage.__name__} {number}"
        chance = random.Random(seed)  # noqa: S311 (no secret)
        damage(restored(), chance)
        assert_one_line(seed, *LOOKING)
        assert_one_line(seed, *chance.sample(CHANGING, 3))


READING = [
    ["log", "--all"], ["log", "--json"], ["show"], ["show", "1", "--json"], ["sessions"], ["usage", "--all"],
    ["todo", "--history"],
    ["learn"], ["export", "--format", "json", "--all"], ["search", "Begin"], ["status"],
    ["undo", "--dry-run"], ["redo", "--dry-run"],
    ["worktrees"], ["doctor", "--store"],
]  # fmt: skip
WRONG = [None, -1, 2**63 - 1, 1e308, b"\xff", "null", "[]", "{}", "7", "x" * 100_000]
PART = int(os.environ.get("DAMAGED_COLUMNS", "150"))  # every such value; `DAMAGED_COLUMNS=1` tries all


def loosened(db: sqlite3.Connection) -> None:
    """Let every column hold anything."""
    db.execute("PRAGMA writable_schema = ON")
    for wrong, loose in (("STRICT, ", ""), ("STRICT", ""), ("NOT NULL", ""), ("CHECK (", "CHECK (1 OR ")):
        db.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table'", (wrong, loose))
    db.commit()


def test_a_wrong_value_in_any_column_of_any_table_is_one_line_or_no_matter(
    state: Path, restored: Callable[[], Path]
) -> None:
    assert run_here("undo", "--yes", "--session", "other").code == 0
    with contextlib.closing(sqlite3.connect(state / "teamchat.db")) as db:
        db.execute("UPDATE undos SET trees = 'null'")
        db.commit()
    assert_one_line("undos.trees", *READING, ["redo", "--yes", "--session", "other"])
    with contextlib.closing(sqlite3.connect(restored())) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = [
            (table, row[1])
            for table in tables
            if not table.startswith(("message_text", "lesson_words", "sqlite_"))
            for row in db.execute(f"PRAGMA table_info({table})")
        ]
    for number, (table, column) in enumerate(columns):
        for at, value in enumerate(WRONG):
            if (number + at * 7) % PART:
                continue
            with contextlib.closing(sqlite3.connect(restored())) as db:
                loosened(db)
            with contextlib.closing(sqlite3.connect(state / "teamchat.db")) as db:
                # the index of a part of some JSON refuses what is none
                with contextlib.suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
                    db.execute(f'UPDATE OR IGNORE {table} SET "{column}" = ?', (value,))  # noqa: S608 (our own names)
                db.commit()
            seed = f"{table}.{column} = {str(value)[:20]}"
            few = READING if PART == 1 else READING[number % 3 :: 3]
            assert_one_line(seed, *few)


# --- the other files of the state folder


def a_folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").touch()


def deep(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


def huge(path: Path) -> None:
    path.write_bytes(b"process 99999999999999999999 (x)" + b"9" * 4_000_000)


def noise_of_json(path: Path) -> None:
    path.write_bytes(b'{"a": [1, {}], "claude": 1e999, "max-agent": [], "/x": null, "\xff": 1}')


def oneself(path: Path) -> None:
    """A lock that names a process nobody may signal."""
    path.write_bytes(b"process 0 (\x1b[2J\nTraceback)\n")


def a_link(path: Path) -> None:
    path.symlink_to(path.name)


PLACES = ["trust.json", "trust.json.lock", "cooldowns.json", "cooldowns.json.lock", "claude.start"]
OF_THE_WORKSPACE = [
    "session-1.lock",
    "teamchat.db.lock",
    "teamchat.db-wal",
    "turns",
    "turns/0123456789abcdef",
    "knowledge.db",
]


@pytest.mark.parametrize(
    "junk", some([a_folder, os.mkfifo, deep, huge, noise_of_json, oneself, a_link], os.mkfifo, noise_of_json, a_link)
)
def test_junk_in_the_place_of_any_file_is_one_line_or_no_matter(
    junk: Callable[[Path], None], restored: Callable[[], Path], world: Path
) -> None:
    for name in (*PLACES, *OF_THE_WORKSPACE):
        store = restored()
        place = (world / "state" if name in PLACES else store.parent) / name
        place.parent.mkdir(exist_ok=True)
        remove(place)
        junk(place)
        seed = f"{junk.__name__} {name}"
        assert_one_line(
            seed, ["team"], ["log"], ["stop"], ["send", "--session", "s1", "--to", "max", "Go on"], ["trust"]
        )
        assert_one_line(seed, ["resume", "--drop", "--session", "s1"], ["sessions", "delete", "s1", "--yes"])


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def changed(process: str, **values: object) -> str:
    return json.dumps({**json.loads(process), **values})


def without_plan(process: str) -> str:
    return changed(process, done=json.loads(process)["done"][1:])


PROCESSES: dict[str, Callable[[str], str]] = {
    "no JSON": lambda _: "x",
    "no object": lambda _: "7",
    "deep": lambda _: "[" * 10_000,
    "no kind": lambda _: "{}",
    "a kind of another version": lambda process: changed(process, kind="quorum"),
    "jobs below one": lambda process: changed(process, jobs=-3),
    "a result before the work": without_plan,
}


@pytest.mark.parametrize("damage", PROCESSES)
@pytest.mark.parametrize("where", ["now", "before a turn", "before an undo"])
def test_a_process_that_nobody_can_continue_is_one_line(world: Path, damage: str, where: str) -> None:
    crew(world, {"max": ["Begin. [NEXT: sarah]"], "sarah": ["Half.", {"exit": 3}]}, team={"lead": "max"})
    assert run_here("run", "hierarchical", "--turns", "2", "Build it").code == 7
    [(now,)] = select("SELECT process FROM sessions")
    broken = PROCESSES[damage](str(now))
    if where == "before an undo":
        assert run_here("undo", "2", "--yes").code == 0
    with contextlib.closing(sqlite3.connect(store_file(Path.cwd()))) as db:
        if where == "now":
            db.execute("UPDATE sessions SET process = ?", (broken,))
        else:
            table = "turns" if where == "before a turn" else "undos"
            db.execute(f"UPDATE {table} SET before_state = json_set(before_state, '$.process', ?)", (broken,))  # noqa: S608
        db.commit()
    ended = []
    first = {"now": ["status"], "before a turn": ["undo", "--yes"], "before an undo": ["redo", "--yes"]}[where]
    for args in (first, ["resume"]):
        ran = run_here(*args)
        assert "Traceback" not in ran.err, (args, ran)
        assert_complaint(ran)
        ended.append(ran.code)
    assert ExitCode.STORE in ended
