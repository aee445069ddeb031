"""Messages are counted together, and the count of a session and its next id are right at every moment."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.core.store import counting, sessions
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import hide_messages, share_messages
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.rescue import rescue
from teamchat.core.store.sessions import create_session, find_session, remove_session
from tests.core.store.message_log_contract import draft, stored
from tests.hiding import hide, show
from tests.trials import trials


def count(db: Database, name: str = "s1") -> int:
    found = find_session(db, name)
    assert found
    return found.messages


def not_counted(db: Database) -> int:
    """How many messages the row of the only session does not count."""
    (row,) = db.rows("SELECT COUNT(*) AS many FROM messages, sessions WHERE messages.id > counted_through")
    return int(row["many"])


def rows_of_sessions(db: Database) -> list[tuple[object, ...]]:
    return [tuple(row) for row in db.rows("SELECT * FROM sessions")]


@pytest.fixture(autouse=True)
def _few_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "COUNTED_TOGETHER", 4)


def test_a_message_is_stored_without_a_change_of_its_session_until_there_are_many(db: Database, session: int) -> None:
    log, before = SqliteLog(db, session), rows_of_sessions(db)
    for wait in (1, 2, 3):
        log.append(draft("Hi"))
        assert not_counted(db) == wait
    assert rows_of_sessions(db) == before
    assert count(db) == 3
    log.append(draft("Hi"))
    assert (not_counted(db), count(db)) == (0, 4)


def test_what_a_killed_process_has_stored_is_counted_by_the_next(db: Database, session: int, path: Path) -> None:
    SqliteLog(db, session).append(draft("Hi"))
    with closing(Database(path)) as next_one:
        assert count(next_one) == 1
        assert SqliteLog(next_one, session).append(draft("Hi")).id == "msg-2"


def test_what_was_not_stored_after_all_is_not_counted(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    with db.taken_back():
        for _ in range(6):
            log.append(draft("Hi"))
        assert count(db) == 6
    assert count(db) == 0
    assert log.append(draft("Hi")).id == "msg-1"


def test_an_imported_conversation_is_counted_at_once_and_continues_after_its_greatest_id(
    db: Database, session: int
) -> None:
    log = SqliteLog(db, session)
    log.restore([stored("msg-7"), stored("msg-3"), stored("other")], None)
    assert (not_counted(db), count(db)) == (0, 3)
    assert [log.append(draft("Hi")).id for _ in range(2)] == ["msg-8", "msg-9"]
    assert count(db) == 5


def test_a_branch_counts_what_its_session_has_not_counted(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    for _ in range(3):
        log.append(draft("Hi"))
    hide_messages(db, session, ["msg-1"])
    for name, through, next_id in (("early", "msg-2", "msg-3"), ("late", "msg-3", "msg-4")):
        branch = create_session(db, "team", None, name).id
        share_messages(db, session, branch, log.place(through))
        assert count(db, name) == len(SqliteLog(db, branch).all()) > 0
        assert SqliteLog(db, branch).append(draft("Hi")).id == next_id
    assert (count(db), count(db, "early"), count(db, "late")) == (2, 2, 3)


def test_a_rescued_store_counts_what_is_there(db: Database, session: int, tmp_path: Path) -> None:
    log = SqliteLog(db, session)
    for _ in range(6):
        log.append(draft("Hi"))
    hide(db, "msg-5")
    rescue(db, tmp_path / "new.db")
    with closing(Database(tmp_path / "new.db")) as new:
        assert (not_counted(new), count(new)) == (0, 5)
        assert SqliteLog(new, session).append(draft("Hi")).id == "msg-7"
        assert count(new) == 6


def test_a_session_that_is_half_removed_counts_the_rest_and_gives_no_id_twice(
    db: Database, session: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SqliteLog(db, session)
    for _ in range(6):
        log.append(draft("Hi"))
    monkeypatch.setattr(sessions, "AT_ONCE_S", 0)
    for remaining in (5, 4, 3):
        sessions._removed(db, session)
        assert count(db) == len(log.all()) == remaining
    assert [log.append(draft("Hi")).id for _ in range(2)] == ["msg-7", "msg-8"]
    assert count(db) == len(log.all()) == 5


NAMES = ("s1", "s2", "s3")
STEPS = st.lists(
    st.tuples(st.sampled_from(("say", "say", "say", "hide", "show", "branch", "delete", "restart")), st.integers(0, 2)),
    max_size=40,
)


@settings(max_examples=trials(100), deadline=None)
@given(STEPS)
def test_whatever_is_said_undone_branched_and_deleted_every_message_is_counted(steps: list[tuple[str, int]]) -> None:
    """Messages of a later session get the places of deleted ones. A branch is made of the session before it."""
    with tempfile.TemporaryDirectory() as folder:
        db, path = Database(Path(folder) / "teamchat.db"), Path(folder) / "teamchat.db"
        made: dict[str, int] = {}
        last: dict[str, int] = {}  # the greatest number that each session knows
        shared: set[str] = set()
        for step, at in steps:
            name, before = NAMES[at], NAMES[at - 1]
            if step == "restart":
                db.close()
                db = Database(path)
            elif step == "branch" and name not in made and last.get(before):
                made[name], last[name] = create_session(db, "team", None, name).id, last[before]
                place = db.rows("SELECT MAX(id) AS place FROM messages")[0]["place"]
                share_messages(db, made[before], made[name], place)
                shared.add(before)
            elif step == "delete" and name in made and not shared:
                remove_session(db, made.pop(name))
                del last[name]
            elif step in ("hide", "show") and name in made:
                show(db, f"msg-{last[name]}")
                if step == "hide":
                    hide(db, f"msg-{last[name]}")
            elif step == "say":
                if name not in made:
                    made[name], last[name] = create_session(db, "team", None, name).id, 0
                last[name] += 1
                assert SqliteLog(db, made[name]).append(draft("Hi")).id == f"msg-{last[name]}"
            assert {one: count(db, one) for one in made} == {
                one: len(SqliteLog(db, key).all()) for one, key in made.items()
            }
        assert list(problems(db)) == []
        db.close()
