"""The sums of what turns have used, which the store keeps as turns end."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.receipt import Outcome
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.rescue import rescue
from teamchat.core.store.schema import RECOUNT
from teamchat.core.store.sessions import create_session, remove_session
from teamchat.core.store.turns import deliver_turn, end_turn, find_turn, trace
from teamchat.core.store.usage import UsageRow, total_used, used
from teamchat.core.store.vendor_sessions import VendorTurns
from teamchat.runners.agent_events import Usage
from teamchat.runners.base import Memory
from tests.core.store.message_log_contract import draft
from tests.core.store.test_turns import SETUP, some_turn

KNOWN = Outcome(0, 1.0, model="opus 5", usage=Usage(100, None, 20, 0.25))


def recounted(db: Database, session: int | None) -> list[UsageRow]:
    for sql in RECOUNT:
        db.execute(sql)
    return used(db, session)


def talk(db: Database, session: int) -> None:
    """Two turns of a known model, one of which nothing is known, and one that runs."""
    if not SqliteLog(db, session).has("msg-1"):
        SqliteLog(db, session).append(draft("Hi"))
    end_turn(db, some_turn(db, session), "done", KNOWN)
    end_turn(db, some_turn(db, session), "answered", KNOWN)
    end_turn(db, some_turn(db, session), "failed", Outcome(1, 1.0))
    some_turn(db, session)


def test_the_sums_are_those_of_the_turns(db: Database, session: int) -> None:
    talk(db, session)
    opus5, opus = used(db, session)
    assert (opus5.model, opus5.used.turns, opus5.used.cost_usd.known, opus5.used.cached_tokens.known) == (
        "opus 5", 2, 0.5, None,
    )  # fmt: skip
    assert (opus.model, opus.used.turns, opus.used.input_tokens.known, opus.used.input_tokens.unknown) == (
        "opus", 2, None, 2,
    )  # fmt: skip
    assert used(db, session) == recounted(db, session)
    assert list(problems(db)) == []


def test_a_reply_that_is_delivered_later_is_counted_once(db: Database, session: int) -> None:
    talk(db, session)
    before = used(db, session)
    turn = find_turn(db, session, 2)
    assert turn
    deliver_turn(db, turn, "msg-1")
    assert used(db, session) == before == recounted(db, session)


def test_all_sessions_are_summed_and_a_deleted_one_is_not(db: Database, session: int) -> None:
    talk(db, session)
    other = create_session(db, "team", None).id
    talk(db, other)
    assert total_used(used(db, None)).turns == 8
    assert [row.used.turns for row in used(db, None)] == [4, 4]
    remove_session(db, other)
    assert used(db, None) == used(db, session)


def test_a_rescued_store_has_the_same_sums(db: Database, session: int, path: Path) -> None:
    talk(db, session)
    rescue(db, path.parent / "new.db")
    with closing(Database(path.parent / "new.db")) as new:
        assert used(new, session) == used(db, session)


def test_what_the_turns_in_a_vendor_session_used_is_added_up(db: Database, session: int) -> None:
    def ended(name: str, usage: Usage | None, memory: Memory = "resume") -> None:
        turn = some_turn(db, session, replace(SETUP, memory=memory))
        end_turn(db, turn, "done", Outcome(0, 1.0, usage=usage), trace("", name))

    for usage in (Usage(1, 2, 3, 0.5), None, Usage(), Usage(10, 20, 30, 1.0)):
        ended("v-1", usage)
    ended("v-2", Usage(7))
    ended("v-3", Usage(7), "fresh")
    for _ in range(2):
        assert VendorTurns(db, session, "max", "v-1").usage == Usage(11, 22, 33, 1.5)
        assert VendorTurns(db, session, "max", "v-2").usage == Usage(7, 0, 0, 0.0)
        assert VendorTurns(db, session, "max", "v-3").usage == Usage(0, 0, 0, 0.0)
        assert VendorTurns(db, session, "sarah", "v-1").usage == Usage(0, 0, 0, 0.0)
        for sql in RECOUNT:
            db.execute(sql)


def test_a_sum_that_is_none_is_a_problem_of_the_store(db: Database, session: int) -> None:
    talk(db, session)
    db.execute("UPDATE usage SET sent = -1")
    assert [problem.partition(":")[0] for problem in problems(db)] == ["a sum of turns cannot be read"] * 2
