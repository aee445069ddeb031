from __future__ import annotations

import threading
from pathlib import Path

import pytest

from teamchat.core.errors import StoreError
from teamchat.core.routing.todos import Add, Finish, Wish
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import create_session
from teamchat.core.store.todos import changes_of, clear_todos, note_todos, todos_of
from tests.core.store.message_log_contract import draft
from tests.hiding import hide, show


def texts(db: Database, session: int) -> list[str]:
    return [item.added.text for item in todos_of(db, session).open]


def test_changes_are_kept_with_who_made_them_and_where(db: Database, session: int) -> None:
    SqliteLog(db, session).append(draft("[TODO: a]"))
    note_todos(db, session, [Add("a")], "kailai", "msg-1")
    note_todos(db, session, [Finish(1)], "max")
    kept = [(change.number, change.what, change.text, change.by, change.message) for change in changes_of(db, session)]
    assert kept == [(1, "added", "a", "kailai", "msg-1"), (1, "done", "a", "max", None)]


def test_the_list_follows_what_is_hidden_and_shown_again(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    said: list[list[Wish]] = [[Add("a"), Add("b")], [Finish(1), Add("c")], [Finish(2)]]
    for number, wishes in enumerate(said, 1):
        log.append(draft(f"message {number}"))
        note_todos(db, session, wishes, "max", f"msg-{number}")
    assert texts(db, session) == ["c"]
    hide(db, "msg-2")
    assert texts(db, session) == ["a"]
    hide(db, "msg-1")
    assert texts(db, session) == []
    assert [change.hidden for change in changes_of(db, session)] == [True, True, True, True, False]
    show(db, "msg-1")
    show(db, "msg-2")
    assert texts(db, session) == ["c"]


def test_no_number_is_given_twice_whatever_is_hidden_or_cleared(db: Database, session: int) -> None:
    SqliteLog(db, session).append(draft("x"))
    note_todos(db, session, [Add("a")], "max", "msg-1")
    hide(db, "msg-1")
    note_todos(db, session, [Add("b")], "max")
    assert [change.number for change in clear_todos(db, session, "kailai")] == [2]
    note_todos(db, session, [Add("c")], "max")
    assert [*todos_of(db, session).items] == [3]
    show(db, "msg-1")
    assert [*todos_of(db, session).items] == [1, 3]


def test_each_session_has_a_list_of_its_own(db: Database, session: int) -> None:
    other = create_session(db, "team", None).id
    note_todos(db, session, [Add("a")], "max")
    note_todos(db, other, [Add("b"), Finish(1)], "max")
    assert (texts(db, session), texts(db, other)) == (["a"], [])


def test_a_change_of_a_message_that_is_not_there_is_refused(db: Database, session: int) -> None:
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        note_todos(db, session, [Add("a")], "max", "msg-1")
    assert changes_of(db, session) == []


def test_changes_are_never_altered(db: Database, session: int) -> None:
    note_todos(db, session, [Add("a")], "max")
    before = changes_of(db, session)
    note_todos(db, session, [Finish(1)], "max")
    clear_todos(db, session, "max")
    assert changes_of(db, session)[:1] == before


def test_processes_that_add_at_once_get_numbers_of_their_own(db: Database, session: int, path: Path) -> None:
    def add(name: str) -> None:
        mine = Database(path)
        for _ in range(10):
            note_todos(mine, session, [Add(name)], name)
        mine.close()

    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [change.number for change in changes_of(db, session)] == [*range(1, 41)]


def test_reading_the_list_uses_indexes_only(db: Database, session: int) -> None:
    from teamchat.core.store.todos import CHANGES

    plan = [row["detail"] for row in db.rows(f"EXPLAIN QUERY PLAN {CHANGES}", session)]
    assert all(step.startswith("SEARCH") for step in plan), plan
