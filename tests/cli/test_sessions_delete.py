"""`sessions delete`: what goes, what stays, and who is asked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from teamchat.cli.startup.workspace import lock_file, store_file
from teamchat.core.store.database import Database
from teamchat.core.store.message_index import index_messages
from teamchat.core.store.sessions import BEFORE_MESSAGES, need_session, remove_session
from tests.cli.helpers import notes, queue, refused, rows
from tests.lock_holder import holder
from tests.program import TIMEOUT_S, Result, argv, cli, ended, run_here, start
from tests.scripted_team import Crew, crew
from tests.terminals import Terminal


@pytest.fixture
def made(world: Path) -> Crew:
    """In session s1 all have spoken and sarah has failed; in `other` max was told the same."""
    made = crew(
        world,
        {"max": ["Plan A", "Plan A"], "sarah": ["Me", {"say": "half", "exit": 3}], "carol": ["It's me"]},
        like={"max": "claude", "sarah": "codex", "carol": "gemini"},
        members={"max": {"memory": "resume", "system_instruction": "You are Max"}},
    )
    assert run_here("send", "--to", "max,sarah,carol", "The same words").code == 0
    assert run_here("send", "--to", "sarah", "Once more").code == 1
    assert run_here("send", "--new", "--session", "other", "--to", "max", "The same words").code == 0
    return made


@pytest.fixture
def db() -> Iterator[Database]:
    db = Database(store_file(Path.cwd()))
    yield db
    db.close()


said = pytest.mark.usefixtures("made")


def found(word: str) -> int:
    """How many messages the full-text index knows with that word."""
    db = Database(store_file(Path.cwd()))
    try:
        index_messages(db)
        db.execute("INSERT INTO message_text (message_text, rank) VALUES ('integrity-check', 1)")
        assert db.rows("PRAGMA foreign_key_check") == []
        return len(db.rows("SELECT 1 FROM message_text WHERE message_text MATCH ?", word))
    finally:
        db.close()


@said
def test_all_of_it_goes_and_all_of_others_stays(made: Crew) -> None:
    for name in ("s1", "other"):
        assert run_here("send", "--session", name, "[DROP: ALL] [TODO: write it]").code == 0
    assert found("same") == 2
    before = rows()
    assert run_here("sessions", "delete", "s1", "--yes").code == 0
    after = rows()
    assert [row[1] for row in after["sessions"]] == ["other"]
    for table, column in (("messages", 1), ("turns", 1), ("routes", 0), ("summaries", 1), ("todo_changes", 1)):
        assert after[table] == [row for row in before[table] if row[column] == 2], table
    assert (len(after["messages"]), len(after["todo_changes"])) == (3, 1)
    assert {row[0] for row in after["turn_events"]} == {row[0] for row in after["turns"]}
    hashes = {row[0] for row in after["texts"]}
    assert hashes == {text for row in after["turns"] for text in row[9:11] if text}
    assert hashes < {row[0] for row in before["texts"]}
    assert (found("same"), found("half")) == (1, 0)
    assert run_here("show", "--prompt").out == made.prompts("max")[1], "a text that both had is there"
    assert run_here("log").out.count("msg-") == 3


def test_no_table_of_a_session_is_forgotten(db: Database) -> None:
    tables = [str(row["name"]) for row in db.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    parents = {name: [row["table"] for row in db.rows(f"PRAGMA foreign_key_list({name})")] for name in tables}
    assert {name for name in tables if {"sessions", "messages"} & {*parents[name]}} == {
        *BEFORE_MESSAGES,
        "messages",
        "turns",
        "undos",
        "lineage",  # goes by a trigger
    }


@said
def test_what_agents_keep_of_their_own_is_named_and_not_touched() -> None:
    assert run_here("sessions", "delete", "s1", "--yes") == Result(
        0,
        "",
        notes(
            "session s1 is deleted: 5 messages, 4 turns",
            "max-agent keeps its own session files in ~/.claude/projects: v-1",
            "carol-agent keeps its own session files in ~/.gemini/tmp: v-1",
        ),
    )


@said
def test_the_next_message_begins_another_conversation() -> None:
    for name in ("s1", "other"):
        assert run_here("sessions", "delete", name, "--yes").code == 0
    assert run_here("sessions").err == notes("there is no conversation here yet")
    begun = run_here("send", "--to", "carol", "Hi")
    assert begun.err.startswith("· session s1 begins\n")
    assert run_here("log").out.startswith("msg-1 kailai -> carol:\nHi\n")


@said
def test_a_script_has_to_say_yes() -> None:
    before = rows()
    ran = cli("sessions", "delete", "s1")
    assert (ran.code, refused(ran)) == (
        2,
        "session s1 (5 messages, 4 turns) would be deleted for good, and there is no terminal to ask on",
    )
    assert ran.err.endswith("  try: teamchat sessions delete --yes s1\n")
    assert rows() == before


@said
@pytest.mark.parametrize(("answer", "there"), [("n", True), ("", True), ("y", False)])
def test_a_person_is_asked(answer: str, there: bool) -> None:
    program, *rest = argv("sessions", "delete", "s1")
    child = Terminal(program, rest, env=dict(os.environ), timeout=TIMEOUT_S, echo=False, encoding="utf-8")
    child.expect_exact("Delete session s1 (5 messages, 4 turns) for good? [y/N] ")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert ("s1" in run_here("sessions").out) is there


@said
def test_a_conversation_that_runs_is_not_deleted() -> None:
    before = rows()
    with holder(lock_file(Path.cwd(), 1)) as other:
        ran = cli("sessions", "delete", "s1", "--yes")
        other.communicate(b"\n")
    assert ran.code == 13
    assert "is being run by process" in refused(ran)
    assert rows() == before


@said
def test_who_waited_for_it_is_told_that_it_is_gone(db: Database) -> None:
    with holder(lock_file(Path.cwd(), 1)) as other:
        waiting = start("send", "--session", "s1", "--to", "max", "Hi")
        assert waiting.stderr
        while "waiting for" not in waiting.stderr.readline().decode():
            pass
        remove_session(db, need_session(db, "s1").id)
        other.communicate(b"\n")
    done = ended(waiting)
    assert (done.code, done.out) == (4, "")
    assert "teamchat: session s1 was deleted meanwhile\n" in done.err


def test_what_a_crash_has_left_goes_too(world: Path, db: Database) -> None:
    crew(world, {"max": [{"say": "half", "hang": 600}]})
    with start("send", "Hi") as running:
        while not (began := db.rows("SELECT folder FROM turns WHERE status = 'running'")):
            assert running.poll() is None
        folder = Path(json.loads(began[0][0]))
        while not folder.is_dir():
            assert running.poll() is None
        running.kill()
    assert run_here("sessions", "delete", "s1", "--yes").code == 0
    assert not folder.exists()
    assert queue() == []


@said
@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (["delete", "x", "--yes"], 4, "there is no session 'x' (sessions: other, s1)"),
        (["delete"], 2, "missing argument 'NAME'"),
        (["--json", "delete", "s1", "--yes"], 2, "options go behind the command"),
        (["remove", "x", "--yes"], 4, "there is no session 'x' (sessions: other, s1)"),
        (["drop", "s1"], 2, "there is no command 'drop'"),
    ],
)
def test_what_can_not_be_deleted_is_one_line(args: list[str], code: int, error: str) -> None:
    before = rows()
    ran = run_here("sessions", *args)
    assert (ran.code, refused(ran)) == (code, error)
    assert rows() == before


def test_deleting_explains_itself() -> None:
    ran = run_here("sessions", "delete", "--help")
    assert ran.code == 0
    assert " Usage: teamchat sessions delete " in ran.out
