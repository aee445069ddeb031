"""What a list of conversations is made from: counts that the store keeps, and titles; also of stores without them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from teamchat.core.receipt import Outcome
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import share_messages
from teamchat.core.store.listing import list_sessions
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.rescue import rescue
from teamchat.core.store.schema import RECOUNT
from teamchat.core.store.sessions import all_sessions, create_session, find_session, rename_session
from teamchat.core.store.turns import end_turn
from teamchat.runners.agent_events import Usage
from tests.core.store.message_log_contract import draft
from tests.core.store.test_turns import some_turn
from tests.hiding import hide


def counts(db: Database) -> list[tuple[str, int, int, float | None, int]]:
    return [(one.name, one.messages, one.turns, one.cost_usd, one.turns_with_cost) for one in all_sessions(db)][::-1]


def recounted(db: Database) -> list[tuple[str, int, int, float | None, int]]:
    for sql in RECOUNT:
        db.execute(sql)
    return counts(db)


@pytest.fixture
def busy(db: Database, session: int) -> Database:
    """Messages, one of them hidden, turns with and without a cost, and a branch."""
    log = SqliteLog(db, session)
    for text in ("Design it", "I did", "undone"):
        log.append(draft(text))
    for cost in (0.25, None, 0.5):
        end_turn(db, some_turn(db, session), "done", Outcome(0, 1.0, usage=Usage(1, 1, cost_usd=cost)))
    some_turn(db, session)
    made = create_session(db, "team", None, "branch")
    share_messages(db, session, made.id, log.place("msg-3"))
    hide(db, "msg-3")
    return db


def test_the_counts_are_those_of_the_rows(busy: Database) -> None:
    assert counts(busy) == [("s1", 2, 4, 0.75, 2), ("branch", 3, 0, None, 0)]
    assert recounted(busy) == [("s1", 2, 4, 0.75, 2), ("branch", 3, 0, None, 0)]


def test_a_cost_that_is_unknown_is_not_zero(busy: Database) -> None:
    one, other = find_session(busy, "s1"), find_session(busy, "branch")
    assert one
    assert other
    assert (one.cost_usd, one.turns_with_cost, one.turns) == (0.75, 2, 4)
    assert other.cost_usd is None


def test_a_rescued_store_counts_what_is_there(busy: Database, tmp_path: Path) -> None:
    rescue(busy, tmp_path / "rescued.db")
    with closing(Database(tmp_path / "rescued.db")) as rescued:
        assert counts(rescued) == recounted(rescued) == counts(busy)


def test_a_list_has_titles_running_turns_and_the_last_message(busy: Database) -> None:
    branch, one = list_sessions(busy)
    assert (one.title, branch.title) == ("Design it", "Design it")
    assert one.last
    assert (one.last.id, branch.last and branch.last.id) == ("msg-2", "msg-3")
    assert [(turn.number, turn.member) for turn in one.running] == [(4, "max")]
    assert branch.branch_of == ("s1", "msg-3")
    rename_session(busy, one.session.id, "The design")
    assert [listed.title for listed in list_sessions(busy)] == ["Design it", "The design"]
