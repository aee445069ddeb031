"""Nobody is kept from writing longer than writing takes: what is slow comes before a transaction, or after it."""

from __future__ import annotations

import asyncio
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from teamchat.core.conversation import lessons as learning
from teamchat.core.conversation import posting as saying
from teamchat.core.conversation import summary as compacting
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.store.turns import partial_of
from teamchat.core.turn.run_events import Conclusion
from teamchat.runners.child.running import MAX_OUTPUT_BYTES
from tests.core.fake_conversation import Fails, Stage, team_of

LONG = "It is long enough to be compressed. " * 30
SLOW = (
    (saying, "address_reply"),
    (saying, "says_nothing_new"),
    (learning, "lessons_in"),
    (compacting, "recent_people"),
    (zlib, "compress"),
)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "plain", "sarah": "claude"}))


@pytest.fixture
def done(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Which slow things were done. Before each, and whenever something is told, another process writes, or fails to."""
    done: set[str] = set()
    with closing(sqlite3.connect(stage.db.path, timeout=0, isolation_level=None)) as other:

        def write() -> None:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")

        def freely(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def checked(*args: Any) -> Any:
                write()
                done.add(name)
                return function(*args)

            return checked

        for module, name in SLOW:
            monkeypatch.setattr(module, name, freely(name, getattr(module, name)))
        stage.hear = lambda _: write()
        yield done


def test_others_may_write_while_replies_are_read_and_packed(stage: Stage, done: set[str]) -> None:
    stage.says = {"max": [f"{LONG}\n[NEXT: nobody] [NEXT: sarah]"], "sarah": [LONG, LONG]}
    assert stage.send(f"[NEXT: max] [TEAM_TASK: {'x' * 6000}] {LONG}").code == 0
    assert any("nobody" in warning for warning in stage.warnings)
    assert any("cut" in warning for warning in stage.warnings)
    assert done == {"address_reply", "says_nothing_new", "compress"}


def test_others_may_write_while_a_group_speaks_and_its_replies_become_messages(stage: Stage, done: set[str]) -> None:
    stage.says = {"max": [f"{LONG}\n[NEXT: nobody]"], "sarah": [LONG]}
    assert stage.send("[NEXT: max + sarah] Go").code == 0
    assert len(stage.log) == 3
    assert done == {"address_reply", "says_nothing_new", "compress"}


def test_others_may_write_while_a_partial_text_is_packed(stage: Stage, done: set[str]) -> None:
    stage.says = {"max": [Fails(LONG)]}
    assert stage.send("[NEXT: max] Go").code == 1
    assert partial_of(stage.db, stage.turns[0]) == LONG
    assert done == {"compress"}


@pytest.mark.parametrize(
    ("work", "slow"),
    [
        (lambda coordinator: coordinator.summarise("sarah"), {"recent_people", "compress"}),
        (lambda coordinator: coordinator.learn("sarah", "s1"), {"lessons_in", "compress"}),
    ],
)
def test_others_may_write_while_an_answer_aside_is_read(
    stage: Stage, done: set[str], work: Callable[[ConversationCoordinator], Any], slow: set[str]
) -> None:
    stage.send("[NEXT: max] Go")
    stage.answers = lambda _: LONG
    done.clear()

    async def run() -> Conclusion:
        conclusion: Conclusion = await work(stage.open())
        return conclusion

    assert asyncio.run(run()).code == 0
    assert done == slow


def test_the_longest_output_of_an_agent_fits_into_the_store(stage: Stage) -> None:
    """Even where none of it is UTF-8: each byte is then one character of three."""
    with closing(sqlite3.connect(stage.db.path)) as connection:
        assert MAX_OUTPUT_BYTES * len("\ufffd".encode()) < connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)


def test_of_two_replies_in_a_group_the_second_is_held_against_the_first(stage: Stage) -> None:
    max_, sarah = stage.team.ai_members
    parsed = stage.open().posting.parse((max_, "We are done.", None, tuple), (sarah, "All done.", None, tuple))
    assert [one.new for one in parsed] == [True, False]
