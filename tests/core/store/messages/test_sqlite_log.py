from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.context.conversation_view import ContextManager
from teamchat.core.errors import UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.message_log import MessageLog
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import create_session
from tests.core.store.message_log_contract import KAILAI, MAX, MessageLogContract, draft, ids
from tests.core.store.test_turns import some_turn
from tests.hiding import hide


class TestSqliteLog(MessageLogContract):
    @pytest.fixture
    def log(self, db: Database, session: int) -> MessageLog:
        return SqliteLog(db, session)


def test_messages_are_there_when_the_store_is_opened_again(db: Database, path: Path, session: int) -> None:
    log = SqliteLog(db, session)
    said = [log.append(draft(text, speaker)) for text, speaker in (("Hi", KAILAI), ("Hello", MAX))]
    log.team_task = "task"
    with closing(Database(path)) as again:
        assert SqliteLog(again, session).all() == said
        assert SqliteLog(again, session).team_task == "task"


def test_the_turn_of_a_message_is_kept(db: Database, session: int) -> None:
    turn = some_turn(db, session)
    log = SqliteLog(db, session)
    log.append(replace(draft("Hi", MAX), turn_id=turn.id))
    assert log.get("msg-1").turn_id == turn.id


def test_sessions_know_nothing_of_each_other(db: Database) -> None:
    one, other = (SqliteLog(db, create_session(db, "team", None).id) for _ in range(2))
    one.append(draft("one"))
    other.append(draft("other"))
    assert [message.content for message in one.all()] == ["one"]
    assert [message.content for message in other.window("msg-1", 5)] == []
    assert other.append(draft("again")).id == "msg-2"


def test_a_hidden_message_is_no_part_of_the_log_and_its_id_is_not_given_again(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    for text in ("one", "two", "three"):
        log.append(draft(text))
    hide(db, "msg-2", "msg-3")
    assert ids(log.all()) == ["msg-1"]
    latest = log.latest()
    assert latest is not None
    assert latest.id == "msg-1"
    with pytest.raises(KeyError):
        log.get("msg-2")
    assert log.append(draft("four")).id == "msg-4"
    assert ids(log.window("msg-4", 5)) == ["msg-1"]


def test_the_id_of_a_hidden_message_is_taken(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    log.restore([draft("x").stored_as(f"msg-{number}") for number in (10**18 - 1, 10**18)], None)
    hide(db, f"msg-{10**18}")
    assert log.append(draft("next")).id == f"msg-{10**18 + 1}"


def test_a_restored_message_belongs_to_no_turn(db: Database, session: int) -> None:
    said = SqliteLog(db, session).append(replace(draft("Hi", MAX), turn_id=some_turn(db, session).id))
    restored = SqliteLog(db, create_session(db, "team", None).id)
    restored.restore([said], None)
    assert (restored.get("msg-1").turn_id, SqliteLog(db, session).get("msg-1").turn_id) == (None, said.turn_id)


def test_messages_that_cannot_be_restored_change_nothing(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    twice = draft("x").stored_as("msg-1")
    with pytest.raises(Exception, match="UNIQUE"):
        log.restore((twice, twice), "task")
    assert (log.all(), log.team_task) == ([], None)


def test_nothing_is_restored_over_hidden_messages(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    log.append(draft("Hi"))
    hide(db, "msg-1")
    with pytest.raises(UsageError, match=r"^a conversation can only be restored into an empty one$"):
        log.restore((draft("x").stored_as("msg-9"),), None)
    assert log.all() == []


def test_lone_surrogates_are_replaced_on_the_way_in(db: Database, session: int) -> None:
    manager = ContextManager(SqliteLog(db, session))
    manager.add_message(draft("a\ud83d\ude42b\udcffc"))
    manager.set_team_task("x\ud800")
    assert [message.content for message in manager.get_messages()] == ["a🙂b\ufffdc"]
    assert manager.get_team_task() == "x\ufffd"


def steps(db: Database, work: Callable[[], object]) -> int:
    """How many hundreds of instructions SQLite takes."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    db._connection.set_progress_handler(tick, 100)
    work()
    db._connection.set_progress_handler(None, 0)
    return count


def test_reading_and_appending_cost_the_same_however_long_the_session_is(db: Database, session: int) -> None:
    log = SqliteLog(db, session)
    costs = []
    with db.transaction():
        for size in (50, 1000):
            while (last := log.append(draft("Hi"))).id != f"msg-{size}":
                pass
            costs.append([steps(db, lambda: log.window(last.id, 5)), steps(db, lambda: log.append(draft("Hi")))])
    assert costs[1][0] <= costs[0][0] + 3
    assert costs[1][1] <= costs[0][1] + 3
