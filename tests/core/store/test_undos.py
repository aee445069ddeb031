"""Undos, hidden messages and the state before turns, as rows; and stores that had none of them yet."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.engine.state import Route, RouteStatus, Rules, State
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import hide_messages, show_messages
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.rescue import rescue
from teamchat.core.store.routes import open_routes, save_state
from teamchat.core.store.sessions import edits_of, remove_session
from teamchat.core.store.turns import Before, before_turn, state_now, turns_of
from teamchat.core.store.undos import begin_undo, last_undo, mark_undo, unfinished_undo
from tests.core.store.message_log_contract import draft, ids
from tests.core.store.test_turns import some_turn

ROUTE = Route("msg-1", "kailai", "msg-1", 3, "max", as_of="msg-1", status=RouteStatus.HELD, attempt=1, instead_of="bob")
STATE = State(Rules((), ()), (ROUTE,), 4, turns=2, since=5.5, last_ai="max", tokens=7, stale=1)
TREES = {"/work/\udcff": ("a" * 40, None)}


def test_the_state_before_a_turn_is_read_as_it_was(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    log.append(draft("Hi"))
    log.team_task = "task\ud800".encode(errors="replace").decode()
    turn = some_turn(db, session)
    assert before_turn(db, turn) is None
    before = state_now(db, session, STATE, 1)
    assert before == Before((ROUTE,), 2, 5.5, "max", 1, "task?", 1, 1)
    assert before.state == replace(STATE, next_route=1, tokens=0)


def test_a_route_that_was_given_to_another_member_is_stored_as_such(db: Database, session: int) -> None:
    SqliteLog(db, session).append(draft("Hi"))
    save_state(db, session, State(Rules((), ())), STATE)
    assert open_routes(db, session) == (ROUTE,)


def test_an_undo_is_stored_as_it_goes_on(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    for text in ("one", "two"):
        log.append(draft(text))
    target, now = state_now(db, session, State(Rules((), ())), 1), state_now(db, session, STATE, 2)
    begun = begin_undo(db, session, "both", 1, target, now, TREES)
    assert unfinished_undo(db, session) == begun
    assert (begun.number, begun.status, begun.before, begun.trees) == (1, "begun", now, TREES)
    files = mark_undo(db, begun, "files", {})
    assert unfinished_undo(db, session) == files == replace(begun, status="files", trees={})
    hide_messages(db, session, ["msg-2"], begun.id)
    done = mark_undo(db, files, "done")
    assert (unfinished_undo(db, session), last_undo(db, session)) == (None, done)
    assert (ids(log.all()), edits_of(db, session)) == (["msg-1"], 1)
    show_messages(db, begun.id)
    mark_undo(db, done, "redone")
    assert last_undo(db, session) is None
    assert (ids(log.all()), edits_of(db, session)) == (["msg-1", "msg-2"], 0)
    assert begin_undo(db, session, "files", 1, target, now, {}).number == 2
    assert list(problems(db)) == []


def test_a_rescued_store_keeps_what_is_hidden_and_undone(db: Database, session: int, tmp_path: Path) -> None:
    log = SqliteLog(db, session)
    for text in ("one", "two"):
        log.append(draft(text))
    turn = some_turn(db, session)
    before = state_now(db, session, STATE, 1)
    undo = begin_undo(db, session, "both", 1, before, before, {})
    hide_messages(db, session, ["msg-2"], undo.id)
    db.execute("UPDATE turns SET undone = ? WHERE id = ?", undo.id, turn.id)
    rescue(db, tmp_path / "new" / "teamchat.db")
    with closing(Database(tmp_path / "new" / "teamchat.db")) as new:
        assert ids(SqliteLog(new, session).all()) == ["msg-1"]
        assert turns_of(new, session)[0].undone == undo.id
        assert list(problems(new)) == []
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("DELETE FROM undos")
    rescue(db, tmp_path / "other" / "teamchat.db")
    with closing(Database(tmp_path / "other" / "teamchat.db")) as new:
        assert turns_of(new, session)[0].undone is None
        assert list(problems(new)) == []


def test_a_session_goes_with_its_undos(db: Database, session: int) -> None:
    SqliteLog(db, session).append(draft("one"))
    turn = some_turn(db, session)
    before = state_now(db, session, STATE, 1)
    undo = begin_undo(db, session, "both", 1, before, before, {})
    hide_messages(db, session, ["msg-1"], undo.id)
    db.execute("UPDATE turns SET undone = ? WHERE id = ?", undo.id, turn.id)
    remove_session(db, session)
    for table in ("undos", "hides", "turns", "messages", "sessions"):
        assert db.rows(f"SELECT * FROM {table}") == [], table  # noqa: S608 (our own names)
