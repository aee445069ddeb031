"""`teamchat doctor --store`: what is wrong with the store, a copy of it, and what of a damaged one can be had."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.messages import NewMessage, Speaker
from teamchat.core.store.checking import problems
from teamchat.core.store.database import GONE, Database
from teamchat.core.store.messages import SqliteLog
from tests.cli.helpers import objects, refused, said
from tests.program import Result, run_here
from tests.scripted_team import crew

STAMP = re.compile(r"-\d{8}-\d{6}\.(backup|damaged)")


@pytest.fixture
def store(world: Path) -> Path:
    crew(world, {"max": ["Plan it. [NEXT: sarah]", "More."], "sarah": ["Fine.", {"exit": 3}]})
    run_here("send", "--to", "max", "Begin")
    run_here("learn", "Run the tests first.")
    run_here("send", "--new", "--to", "max,sarah", "Again")
    return store_file(Path.cwd())


def looked() -> Result:
    ran = run_here("doctor", "--store")
    return Result(ran.code, STAMP.sub(r"-WHEN.\1", ran.out), ran.err)


def damage(store: Path, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as db:
        db.execute(sql)


def test_a_healthy_store_is_checked_and_copied(store: Path) -> None:
    assert looked() == Result(
        0, f"✓  store   {store}, every page, reference and row\n✓  backup  {store.parent}/teamchat-WHEN.backup\n", ""
    )
    (backup,) = store.parent.glob("*.backup")
    assert backup.stat().st_mode & 0o777 == 0o600
    with contextlib.closing(Database(backup)) as db:
        assert list(problems(db)) == []
        assert db.rows("SELECT COUNT(*) FROM messages")[0][0] == 5


def test_where_there_is_none_nothing_is_made(world: Path) -> None:
    ran = looked()
    assert (ran.code, ran.out.startswith("✓  store   ")) == (0, True)
    assert ran.out.endswith("/teamchat.db, made by the first message\n")
    assert not (world / "state" / "workspaces").exists()


def test_of_a_damaged_one_the_rest_is_rescued_and_goes_on_by_what_is_to_be_typed(store: Path) -> None:
    damage(store, "UPDATE turns SET setup = '{}' WHERE id = 1")
    assert refused(run_here("show", "1", "--session", "s1")).startswith(
        f"the store {store} is damaged: a turn cannot be read: "
    )
    ran = looked()
    lines = ran.out.splitlines()
    assert ran.code == 13
    assert lines[0].startswith(f"✗  store   the store {store} is damaged: turn 1 is about a message that is missing")
    folder = store.parent
    typed = f"mv {folder} {folder}.damaged && mv {folder}.rescued {folder}"
    assert lines[-2:] == [
        f"!  rescued 2 sessions, 5 messages, 3 turns, in {folder}.rescued; lost: 1 turn",
        f"  try: {typed}",
    ]
    subprocess.run(["sh", "-c", typed], check=True)
    assert looked().code == 0
    assert said() == [("kailai", "Again"), ("max", "More.")]
    assert run_here("log", "--session", "s1").out.startswith("msg-1 kailai -> max:\nBegin\n")
    assert run_here("learn").out.endswith("Run the tests first.\n")


def test_what_needs_a_lost_row_is_lost_or_goes_on_without_it(store: Path) -> None:
    damage(store, "DELETE FROM texts")
    damage(store, "DELETE FROM sessions WHERE id = 1")
    lines = looked().out.splitlines()
    assert lines[-2] == (f"!  rescued 2 sessions, 5 messages, 0 turns, in {store.parent}.rescued; lost: 4 turns")
    with contextlib.closing(Database(Path(f"{store.parent}.rescued") / store.name)) as db:
        assert list(problems(db)) == []
        assert [row["name"] for row in db.rows("SELECT name FROM sessions ORDER BY id")] == ["rescued-1", "s2"]


def test_both_ends_of_a_table_with_a_damaged_page_are_rescued(store: Path) -> None:
    assert_both_ends_are_rescued(store)


def assert_both_ends_are_rescued(store: Path) -> None:
    """A page in the middle of 400 messages is damaged; at least 300 of them are found."""
    grown(store)
    content = store.read_bytes()
    middle = content.index(b"msg-200")
    store.write_bytes(content[: middle // 4096 * 4096] + bytes(4096) + content[middle // 4096 * 4096 + 4096 :])
    found = re.search(r"2 sessions, (\d+) messages, 4 turns", looked().out)
    assert found
    assert 300 < int(found[1]) < 395


def test_a_long_message_is_rescued_whole(store: Path) -> None:
    long = "é" * 2_000_000
    with contextlib.closing(Database(store)) as db:
        SqliteLog(db, 2).append(NewMessage(long, Speaker("kailai", "kailai", type="human")))
    damage(store, "UPDATE turns SET setup = '{}' WHERE id = 1")
    assert "rescued 2 sessions, 6 messages, 3 turns" in looked().out
    with contextlib.closing(Database(Path(f"{store.parent}.rescued") / store.name)) as db:
        assert SqliteLog(db, 2).all()[-1].content == long


def test_of_a_store_of_which_nothing_can_be_read_a_copy_is_kept_and_how_to_begin_anew_is_told(store: Path) -> None:
    store.write_bytes(b"nothing of a store" * 1000)
    ran = looked()
    assert ran.code == 13
    assert ran.out.splitlines()[1:] == [
        f"·  copy    {store.parent}/teamchat-WHEN.damaged, a copy of the damaged file",
        "✗  rescued nothing can be read, and there is no backup: this command makes one of each healthy store",
        f"  try: mv {store.parent} {store.parent}.damaged",
    ]
    assert [copy.read_bytes() for copy in store.parent.glob("*.damaged")] == [store.read_bytes()]
    assert not list(store.parent.glob("*.backup"))


def grown(store: Path) -> None:
    """400 messages more, all of them in the file."""
    damage(
        store,
        """WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO messages (session, message, number, content, speaker_id, speaker_name, speaker_type, routing,
        timestamp) SELECT 1, 'msg-' || i, i, 'x' || hex(zeroblob(100)), 'a', 'a', 'ai', '[[], []]', 1 FROM n""",
    )
    damage(store, "PRAGMA wal_checkpoint(TRUNCATE)")


def cut(store: Path, pages: int = 1) -> bytes:
    """What is left of a store without its last pages."""
    os.truncate(store, store.stat().st_size - 4096 * pages)
    return store.read_bytes()


@pytest.mark.parametrize("pages", [1, 6])
def test_of_one_without_its_last_pages_the_rest_is_rescued_and_its_file_stays_as_it_is(store: Path, pages: int) -> None:
    grown(store)
    left = cut(store, pages)
    ran = looked()
    rescued = re.compile(r"^(.)  rescued 2 sessions, (\d+) messages, 4 turns, in [^\s;]+(; lost: .*)?$", re.MULTILINE)
    found = rescued.search(ran.out)
    assert found, ran.out
    if pages == 1:  # it is one of an index
        assert found.groups() == ("✓", "396", None)
    else:
        assert 100 < int(found[2]) < 396
        assert (found[1], found[3]) == ("!", "; lost: an unknown number of messages"), "no index has all of them"
    assert "teamchat doctor --store" not in ran.out
    assert (ran.code, store.read_bytes()) == (13, left)


def test_where_neither_table_nor_index_can_be_counted_the_number_is_unknown(store: Path) -> None:
    grown(store)
    with contextlib.closing(sqlite3.connect(store)) as db:
        roots = db.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = 'messages' AND rootpage > 0").fetchall()
    with store.open("r+b") as file:
        for (page,) in roots:
            file.seek(4096 * (page - 1))
            file.write(bytes(4096))
    (rescued,) = [line for line in looked().out.splitlines() if " rescued " in line]
    assert rescued.startswith("!  rescued 2 sessions, 0 messages, 0 turns, in ")
    assert "; lost: 4 turns, an unknown number of messages" in rescued


@pytest.mark.parametrize("harm", [cut, Path.unlink, lambda store: store.write_bytes(b"nothing of a store" * 1000)])
def test_the_newest_whole_backup_is_named_and_put_back_by_what_is_to_be_typed(
    store: Path, harm: Callable[[Path], object]
) -> None:
    grown(store)
    assert looked().code == 0
    (store.parent / "teamchat-99990101-000000.backup").write_bytes(b"no store")  # newer, and not whole
    harm(store)
    ran = looked()
    folder = store.parent
    put_back = f"mv {folder} {folder}.damaged && mkdir -m 700 {folder} && cp {folder}.damaged/"
    *_, named, last = ran.out.splitlines()
    backup = f"{folder}/teamchat-WHEN.backup"
    assert named.split() == f"· backup {backup}, the newest whole one: 2 sessions, 396 messages, 4 turns".split()
    assert last == f"  try: {put_back}teamchat-WHEN.backup {store}"
    assert ran.out.count("try:") == 1
    typed = run_here("doctor", "--store").out.splitlines()[-1].removeprefix("  try: ")
    subprocess.run(["sh", "-c", typed], check=True)
    assert looked().code == 0
    assert said() == [("kailai", "Again"), ("max", "More.")]


def test_what_a_backup_does_not_have_is_not_given_up_for_it(store: Path) -> None:
    assert looked().code == 0
    grown(store)
    damage(store, "UPDATE turns SET setup = '{}' WHERE id = 1")
    lines = looked().out.splitlines()
    folder = store.parent
    typed = f"mv {folder} {folder}.damaged && mv {folder}.rescued {folder}"
    rescued = f"!  rescued 2 sessions, 396 messages, 3 turns, in {folder}.rescued; lost: 1 turn"
    assert lines[-4].startswith(rescued)
    assert lines[-3] == f"  try: {typed}"  # it has more messages, and the backup more turns
    backup = f"{folder}/teamchat-WHEN.backup"
    assert lines[-2] == f"·  backup  {backup}, the newest whole one: 2 sessions, 5 messages, 4 turns"
    assert lines[-1].startswith(f"  try: mv {folder} ")


def test_a_store_that_is_gone_is_told_with_how_to_begin_anew(store: Path) -> None:
    store.unlink()
    for suffix in ("-wal", "-shm"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    gone = f"the store {store} is damaged: {GONE}"
    assert f"✗       store   {gone}\n  try: teamchat doctor --store\n" in run_here("doctor").out
    typed = f"mv {store.parent} {store.parent}.damaged"
    assert looked() == Result(13, f"✗  store   the store {store} is damaged: {GONE}\n  try: {typed}\n", "")
    shutil.move(store.parent, f"{store.parent}.damaged")
    assert run_here("sessions") == Result(0, "", "· there is no conversation here yet\n")


def test_as_json_each_finding_is_an_object(store: Path) -> None:
    damage(store, "UPDATE sessions SET created_at = 1e300")
    *found, result = objects(run_here("doctor", "--store", "--json"))
    assert [(line["what"], line["state"]) for line in found] == [
        ("store", "failed"), ("store", "failed"), ("copy", "note"), ("rescued", "ok"),
    ]  # fmt: skip
    assert result["code"] == 13


def test_it_does_not_go_with_what_looks_at_clis() -> None:
    ran = run_here("doctor", "--store", "--live")
    assert (ran.code, refused(ran)) == (2, "--store checks only the store; it excludes --live")


def test_a_store_of_a_newer_version_is_backed_up_and_not_touched(store: Path) -> None:
    damage(store, "PRAGMA user_version = 99")
    ran = looked()
    newer = f"✗  store   the store {store} was written by a newer teamchat; upgrade teamchat\n"
    assert (ran.code, ran.out) == (13, f"{newer}✓  backup  {store.parent}/teamchat-WHEN.backup\n")


def test_a_session_that_goes_on_from_a_lost_message_is_rescued_and_answers_what_called(world: Path) -> None:
    made = crew(world, {"max": [{"exit": 1}, "Hi"]})
    assert run_here("send", "Go").code == 1
    damage(store_file(Path.cwd()), "UPDATE sessions SET last_said = replace(last_said, 'msg-1', 'msg-7')")
    damage(store_file(Path.cwd()), "UPDATE routes SET as_of = NULL")
    lines = looked().out.splitlines()
    assert "session s1 goes on from a message that is missing" in lines[0]
    folder = store_file(Path.cwd()).parent
    folder.rename(f"{folder}.damaged")
    Path(f"{folder}.rescued").rename(folder)
    assert run_here("resume").code == 0
    assert "You are answering msg-1, from kailai" in made.prompts("max")[1]
