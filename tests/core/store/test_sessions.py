from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode, UnknownName
from teamchat.core.receipt import Outcome
from teamchat.core.routing.todos import Add
from teamchat.core.store import sessions
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import (
    all_sessions,
    create_session,
    find_session,
    last_session,
    need_session,
    remove_session,
    session_names,
    touch_session,
)
from teamchat.core.store.todos import note_todos
from teamchat.core.store.turn_events import TimedEvent
from teamchat.core.store.turns import end_turn, trace
from teamchat.runners.agent_events import Text
from tests.core.store.message_log_contract import draft
from tests.core.store.test_turns import some_turn
from tests.hiding import hide


def names(db: Database) -> list[str]:
    return [session.name for session in all_sessions(db)]


def test_sessions_are_numbered_around_the_names_that_are_taken(db: Database) -> None:
    for name in (None, "s2", None, "login", None):
        create_session(db, "team", None, name)
    assert sorted(names(db)) == ["login", "s1", "s2", "s3", "s5"]


def test_a_session_copies_the_teams_task(db: Database) -> None:
    assert create_session(db, "team", "Design it").task == "Design it"
    assert SqliteLog(db, 1).team_task == "Design it"


def test_the_last_session_is_the_one_that_was_used_last(db: Database) -> None:
    assert last_session(db) is None
    one = create_session(db, "team", None)
    other = create_session(db, "team", None)
    assert last_session(db) == other
    touch_session(db, one.id)
    assert [one.name, other.name] == names(db)


def test_a_clock_that_was_set_back_does_not_change_which_session_goes_on(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((2e9, 2e9, 1e9, 1e9, 5e8))
    monkeypatch.setattr(time, "time", lambda: next(clock))
    one, other = create_session(db, "team", None), create_session(db, "team", None)
    assert one.used_at > other.used_at
    assert names(db) == ["s2", "s1"] == session_names(db.path)
    touch_session(db, one.id)
    assert names(db) == ["s1", "s2"] == session_names(db.path)
    assert last_session(db) == find_session(db, "s1")


def test_a_session_counts_its_messages_and_turns(db: Database) -> None:
    one = create_session(db, "team", None, "one")
    create_session(db, "team", None, "other")
    log = SqliteLog(db, one.id)
    log.append(draft("Hi"))
    log.append(draft("undone"))
    hide(db, "msg-2")
    some_turn(db, one.id)
    found = find_session(db, "one")
    assert found is not None
    assert (found.messages, found.turns) == (1, 1)


def test_a_name_that_is_not_there_is_refused_with_those_that_are(db: Database) -> None:
    with pytest.raises(UnknownName, match=r"^there is no session 'x' \(sessions: none yet\)$") as unknown:
        need_session(db, "x")
    assert unknown.value.hint == "teamchat send --new --session x 'Your message'"
    create_session(db, "team", None, "login")
    with pytest.raises(UnknownName, match=r"^there is no session 'x' \(sessions: login\)$") as caught:
        need_session(db, "x")
    assert caught.value.code == ExitCode.UNKNOWN_NAME


def test_of_many_sessions_the_newest_are_told(db: Database) -> None:
    for number in range(1, 13):
        create_session(db, "team", None, f"n{number}")
    with pytest.raises(UnknownName, match=r"\(sessions: n12, n11, .*, n3 and 2 more\)$") as caught:
        need_session(db, "x")
    assert caught.value.hint == "teamchat sessions"


def test_where_nothing_was_said_there_is_no_session_to_look_at(db: Database) -> None:
    with pytest.raises(UnknownName, match=r"^there is no conversation here yet$") as caught:
        need_session(db, None)
    assert caught.value.hint == "teamchat send 'Your message'"


def test_a_large_session_goes_in_pieces_between_which_others_write(
    db: Database, path: Path, session: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_turn(db, session)
    log = SqliteLog(db, session)
    for number in range(4):
        log.append(draft(f"message {number}"))
    left: list[list[str]] = []

    def another_writes(_seconds: float) -> None:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            left.append([content for (content,) in other.execute("SELECT content FROM messages ORDER BY id")])
            other.execute("ROLLBACK")
        if len(left) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(sessions, "AT_ONCE_S", 0.0)
    monkeypatch.setattr("teamchat.core.store.sessions.time.sleep", another_writes)
    with pytest.raises(KeyboardInterrupt):
        remove_session(db, session)
    assert [found.messages for found in all_sessions(db)] == [3]
    remove_session(db, session)
    assert [len(messages) for messages in left] == [3, 2, 1, 0]
    for table in (*sessions.BEFORE_MESSAGES, "messages", "turns", "texts"):
        assert db.rows(f"SELECT * FROM {table}") == []  # noqa: S608 (our own names)
    assert names(db) == []


class Killed(BaseException):
    pass


def test_a_deletion_that_was_killed_leaves_a_whole_store_and_can_be_repeated(tmp_path: Path) -> None:
    """After every one of its steps: what is there then is a conversation that nothing is missing in."""
    for step in count(1):
        with closing(Database(tmp_path / str(step) / "teamchat.db")) as db:
            session = a_conversation(db)
            died = killed_at(db, step, session)
            assert list(problems(db)) == [], step
            remove_session(db, session)
            for table in (*sessions.BEFORE_MESSAGES, "messages", "turns", "turn_events", "texts", "sessions"):
                assert db.rows(f"SELECT * FROM {table}") == [], (step, table)  # noqa: S608 (our own names)
            if not died:
                assert step > 20
                return


def a_conversation(db: Database) -> int:
    session = create_session(db, "team", None).id
    log = SqliteLog(db, session)
    for number in range(3):
        log.append(draft(f"message {number}"))
        turn = some_turn(db, session, system="Be Max.")
        end_turn(db, turn, "done", Outcome(0, 1.0), trace("text", "session", [TimedEvent(0.5, Text("text"))]))
        db.execute("UPDATE messages SET turn = ? WHERE number = ?", turn.id, number + 1)
    note_todos(db, session, [Add("think")], "max", "msg-2")
    return session


def killed_at(db: Database, step: int, session: int) -> bool:
    """Delete the session in pieces of one message, and die at the step of that number; whether there was one."""
    steps = count(1)

    def mortal(sql: str, *values: object) -> object:
        if next(steps) == step and sql != "ROLLBACK":
            raise Killed
        return Database.execute(db, sql, *values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "AT_ONCE_S", 0.0)
        patch.setattr(sessions, "REST_S", 0.0)
        patch.setattr(db, "execute", mortal)
        try:
            remove_session(db, session)
        except Killed:
            return True
    return False
