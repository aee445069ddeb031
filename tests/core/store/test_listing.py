"""What a list of conversations is made from: counts that the store keeps, and titles; also of stores without them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from teamchat.core.receipt import Outcome
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import share_messages
from teamchat.core.store.listing import list_sessions, title_of
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.migrations.m010_finding import RECOUNT
from teamchat.core.store.migrations.m018_counted_together import ALL_COUNTED
from teamchat.core.store.rescue import rescue
from teamchat.core.store.sessions import all_sessions, create_session, find_session, last_session, rename_session
from teamchat.core.store.turns import end_turn
from teamchat.runners.events import Usage
from tests.core.store.message_log_contract import draft
from tests.core.store.test_stored_turns import some_turn
from tests.core.store.test_undos import older, say
from tests.hiding import hide


def counts(db: Database) -> list[tuple[str, int, int, float | None, int]]:
    return [(one.name, one.messages, one.turns, one.cost_usd, one.turns_with_cost) for one in all_sessions(db)][::-1]


def recounted(db: Database) -> list[tuple[str, int, int, float | None, int]]:
    for sql in (RECOUNT, ALL_COUNTED):
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


def test_a_store_that_had_no_counts_gets_them(path: Path) -> None:
    with closing(older(path, 9)) as old:
        for number in (1, 2, 3):
            say(old, number)
        old.execute("INSERT INTO hides VALUES (1, 2, NULL)")
    with closing(Database(path)) as db:
        (found,) = all_sessions(db)
        assert (found.messages, found.turns, found.title, found.cost_usd) == (2, 0, None, None)
        assert title_of(db, found) == "word1"
        SqliteLog(db, 1).append(draft("next"))
        assert [one.messages for one in all_sessions(db)] == [3]
        assert list(problems(db)) == []


def test_the_session_that_an_older_store_used_last_is_the_one_that_a_person_continues(path: Path) -> None:
    with closing(older(path, 9)) as old:
        old.execute("UPDATE sessions SET used = 1")
    with closing(Database(path)) as db:  # a script
        create_session(db, "team", None, "hook")
        assert [found and found.name for found in (last_session(db), last_session(db, typed=True))] == ["hook", "s1"]


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
