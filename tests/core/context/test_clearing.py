"""A live coordinator whose conversation is cleared or replaced: turns and messages stay together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.engine.events import ResumeMode
from teamchat.core.errors import UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.turns import turns_of
from teamchat.core.turn.events import ConversationEvent, TurnStarted
from tests.core.fake_conversation import Fails, Stage, team_of


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "plain", "sarah": "plain"}))


def texts(db: Database, session: int) -> list[str]:
    return [message.content for message in SqliteLog(db, session).all()]


def replies(db: Database, session: int) -> list[str]:
    """What each turn's reply id points to, in the turn's own session; that message names the turn in turn."""
    turns = turns_of(db, session)
    said = [SqliteLog(db, session).get(turn.outcome.reply) for turn in turns if turn.outcome and turn.outcome.reply]
    assert [message.turn_id for message in said] == [turn.id for turn in turns if turn.outcome and turn.outcome.reply]
    return [message.content for message in said]


def test_after_clear_turns_and_messages_are_of_the_new_session(stage: Stage) -> None:
    stage.says = {"max": ["one", "two"]}
    coordinator = stage.open()
    asyncio.run(coordinator.send("Hi"))

    coordinator.manager.clear()
    stage.says = {"max": ["one", "two"]}
    asyncio.run(coordinator.send("Hi again"))

    assert coordinator.session != stage.session
    assert texts(stage.db, stage.session) == ["Hi", "one"]
    assert texts(stage.db, coordinator.session) == ["Hi again", "two"]
    assert replies(stage.db, stage.session) == ["one"]
    assert replies(stage.db, coordinator.session) == ["two"]
    assert [message.id for message in coordinator.manager.get_messages()] == ["msg-1", "msg-2"]
    assert "one" not in stage.prompts[1]


def test_after_an_import_turns_go_on_from_its_messages(stage: Stage) -> None:
    stage.says = {"max": ["one", "two"]}
    coordinator = stage.open()
    asyncio.run(coordinator.send("Hi"))

    coordinator.manager.import_snapshot(coordinator.manager.export_snapshot())
    asyncio.run(coordinator.send("Go on"))

    assert texts(stage.db, coordinator.session) == ["Hi", "one", "Go on", "two"]
    assert replies(stage.db, coordinator.session) == ["two"]
    assert replies(stage.db, stage.session) == ["one"]
    assert SqliteLog(stage.db, coordinator.session).get("msg-2").turn_id is None


def test_what_was_held_stays_in_the_old_session(stage: Stage) -> None:
    stage.says = {"max": [Fails()]}
    coordinator = stage.open()
    asyncio.run(coordinator.send("Hi"))
    assert stage.queue == ["max held"]

    coordinator.manager.clear()

    assert coordinator.state.queue == ()
    launched = len(stage.launched)
    asyncio.run(coordinator.resume(ResumeMode.RETRY))
    assert len(stage.launched) == launched
    assert stage.queue == ["max held"]


def test_clear_and_import_are_refused_while_a_member_speaks(stage: Stage) -> None:
    refused: list[str] = []
    coordinator: ConversationCoordinator

    def clear(event: ConversationEvent) -> None:
        if isinstance(event, TurnStarted):
            for change in (coordinator.manager.clear, lambda: coordinator.manager.import_snapshot(EMPTY)):
                with pytest.raises(UsageError) as error:
                    change()
                refused.append(str(error.value))

    stage.hear, stage.says = clear, {"max": ["one"]}
    coordinator = stage.open()
    asyncio.run(coordinator.send("Hi"))

    assert refused == ["max is speaking: a conversation cannot be cleared or replaced meanwhile"] * 2
    assert coordinator.session == stage.session
    assert replies(stage.db, stage.session) == ["one"]


EMPTY: dict[str, object] = {"messages": [], "teamTask": None, "timestamp": 0, "version": 1}
