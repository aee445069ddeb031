"""Lessons in a prompt: all of them while they fit, else the best, each on a line with its day and session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.assemblers.truncation import byte_length
from teamchat.core.context.layers.collector import LayerContext, LayerText
from teamchat.core.context.layers.sources import LessonsLayer
from teamchat.core.messages import NewMessage, Speaker
from teamchat.core.store.lessons import add_lesson
from tests.core.fake_conversation import Stage, team_of


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "claude"}))


def told(stage: Stage, text: str, *, task: str | None = None, max_tokens: int = 500) -> LayerText | None:
    message = NewMessage(text, Speaker("kailai", "kailai", type="human")).stored_as("msg-1")
    return LessonsLayer(stage.db, max_tokens)(LayerContext(stage.team.member("max"), message, text, task))


def test_there_is_no_layer_while_nothing_was_learned(stage: Stage) -> None:
    stage.send("Hi")
    before = stage.prompts[0]
    assert told(stage, "Hi") is None
    assert "EXPERIENCE" not in before


def test_a_lesson_is_a_line_with_its_day_and_session(stage: Stage) -> None:
    add_lesson(stage.db, "Run make lint", "s1")
    add_lesson(stage.db, "Never push", None)
    stage.send("Hi")
    day = r"\d{4}-\d\d-\d\d"
    assert re.search(rf"\[EXPERIENCE\]\n- {day} \(s1\): Run make lint\n- {day}: Never push\n\n", stage.prompts[0])


def test_when_they_are_too_many_those_that_fit_come_first_and_then_the_newest(stage: Stage) -> None:
    add_lesson(stage.db, "Tokens expire after an hour", None)
    add_lesson(stage.db, "数据库要先迁移", None)
    for number in range(9):
        add_lesson(stage.db, f"Filler {number}", None)
    room = 30  # tokens: three lines
    for text, task, first in (("How long is a token good?", None, 1), ("go on", "迁移", 2)):
        found = told(stage, text, task=task, max_tokens=room)
        assert found is not None
        assert found.excerpts[0].name == f"lesson {first}"
        assert found.excerpts[0].why.startswith("rank 1, score ")
        assert [(excerpt.name, excerpt.why) for excerpt in found.excerpts[1:]][-1] == ("lesson 11", "newest")


def test_no_tokens_are_no_layer(stage: Stage) -> None:
    add_lesson(stage.db, "Run make lint", None)
    stage.team = replace(stage.team, experience_tokens=0)
    stage.send("Hi lint")
    assert "make lint" not in stage.prompts[0]


@given(st.lists(st.text(max_size=200), max_size=8), st.text(), st.integers(0, 200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_whatever_was_learned_and_said_the_layer_is_within_its_tokens(
    stage: Stage, lessons: list[str], text: str, max_tokens: int
) -> None:
    for lesson in lessons:
        add_lesson(stage.db, f"word {lesson}", None)
    found = told(stage, f"{text} word", max_tokens=max_tokens)
    assert byte_length(found.text if found else "") <= max_tokens * 4
