"""Knowledge in a prompt: whose files it has, whole or searched, and that it is never kept as a message."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.assemblers.parts import KNOWLEDGE, LESSONS
from teamchat.assemblers.truncation import byte_length
from teamchat.core.context.layers.collector import LayerContext, LayerText
from teamchat.core.context.layers.knowledge import KnowledgeLayer
from teamchat.core.knowledge import index as indexing
from teamchat.core.knowledge.files import KnowledgeFile, read_source
from teamchat.core.knowledge.index import INDEX_NAME, KnowledgeIndex
from teamchat.core.messages import NewMessage, Speaker
from teamchat.core.store.lessons import add_lesson
from tests.core.fake_conversation import Stage, team_of

LIKES = {"max": "claude", "sarah": "codex", "carol": "gemini", "al": "plain"}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tokens.md").write_text("# Tokens\n\nThey expire after an hour.\n")
    return Stage(tmp_path, team_of(tmp_path, LIKES))


def know(stage: Stage, *members: str, max_tokens: int = 4000) -> None:
    for name in members:
        stage.member(name, knowledge={"docs": stage.folder / "docs"})
    stage.team = replace(stage.team, knowledge_tokens=max_tokens)


def told(stage: Stage, text: str, *, task: str | None = None, max_tokens: int = 4000) -> LayerText:
    knowledge = KnowledgeLayer(KnowledgeIndex(stage.folder / INDEX_NAME), max_tokens)
    message = NewMessage(text, Speaker("kailai", "kailai", type="human")).stored_as("msg-1")
    found = knowledge(LayerContext(stage.team.member("max"), message, text, task))
    assert found is not None
    return found


def fill(stage: Stage, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (stage.folder / "docs" / name).write_text(text, encoding="utf-8", errors="replace")


@pytest.mark.parametrize("name", LIKES)
def test_small_files_stand_whole_in_the_prompt_with_their_source(stage: Stage, name: str) -> None:
    know(stage, name)
    stage.send(f"[NEXT: {name}] Hi")
    (prompt,) = stage.prompts
    assert "From docs/tokens.md:\n# Tokens\n\nThey expire after an hour.\n" in prompt
    assert prompt.index("From docs/") < prompt.index("Hi")


def test_nobody_else_is_told_a_members_own_knowledge(stage: Stage) -> None:
    know(stage, "max")
    stage.send("[NEXT: sarah, max] Hi")
    assert ["expire" in prompt for prompt in stage.prompts] == [False, True]


def test_what_members_know_apart_is_read_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither throws the other's files out of the index that they share."""
    reads: list[str] = []

    def noted(found: KnowledgeFile) -> bytes | None:
        reads.append(found.path.name)
        return read_source(found)

    monkeypatch.setattr(indexing, "read_source", noted)
    monkeypatch.setattr(indexing, "JUST_CHANGED_NS", -(10**18))
    for name in ("max", "sarah"):
        (stage.folder / f"{name}.md").write_text(f"Known to {name}.")
        stage.member(name, knowledge={f"{name}.md": stage.folder / f"{name}.md"})
    for _ in range(3):
        stage.send("[NEXT: max, sarah] Hi")
    assert reads == ["max.md", "sarah.md"]
    assert all(f"Known to {name}." in prompt for prompt, name in zip(stage.prompts, stage.spoke, strict=True))


def test_knowledge_lives_for_one_prompt(stage: Stage) -> None:
    """It is no message and no layer of the session, and a changed file shows at once."""
    know(stage, "max")
    stage.send("Hi")
    (stage.folder / "docs" / "tokens.md").write_text("They never do.\n")
    stage.send("Hi again")
    assert ["They expire" in prompt for prompt in stage.prompts] == [True, False]
    assert not any("They" in text for text in stage.said)
    assert stage.db.rows("SELECT * FROM summaries") == []


def test_the_receipt_names_the_sources(stage: Stage) -> None:
    know(stage, "max")
    add_lesson(stage.db, "Run make lint", None)
    stage.send("Hi")
    assert stage.turns[0].setup.sources == {LESSONS: ("lesson 1",), KNOWLEDGE: ("docs/tokens.md",)}


def test_a_layer_that_the_budget_dropped_has_no_sources(stage: Stage) -> None:
    know(stage, "max")
    fill(stage, {"more.md": "word " * 600})
    stage.team = replace(stage.team, max_prompt_tokens=400)
    stage.send("Hi")
    assert stage.turns[0].setup.trimmed.layers == (KNOWLEDGE,)
    assert stage.turns[0].setup.sources == {}


def test_without_sharing_nothing_is_told(stage: Stage) -> None:
    know(stage, "max")
    add_lesson(stage.db, "Run make lint", None)
    stage.team = replace(stage.team, share_context=False)
    stage.send("Hi")
    assert "expire" not in stage.prompts[0]
    assert "lint" not in stage.prompts[0]


def test_what_is_too_much_is_searched_with_the_message_and_the_task(stage: Stage) -> None:
    know(stage, "max")
    fill(stage, {f"other{number}.md": f"# Other\n\n{'filler ' * 100}\n" for number in range(5)})
    fill(stage, {"zh.md": "# 登录\n\n用户认证系统。\n"})
    assert told(stage, "When do tokens expire?", max_tokens=200).text.startswith("From docs/tokens.md:1-3 (Tokens):\n")
    assert told(stage, "怎么认证？", max_tokens=200).text.startswith("From docs/zh.md:1-3 (登录):\n")
    searched = told(stage, "Go on", task="The token", max_tokens=200)
    assert [excerpt.name for excerpt in searched.excerpts] == ["docs/tokens.md:1-3"]
    assert searched.excerpts[0].why.startswith("rank 1, score ")


def test_who_is_handed_over_to_is_told_what_fits_the_persons_request(stage: Stage) -> None:
    know(stage, "sarah", max_tokens=100)
    fill(stage, {"other.md": "filler " * 100})
    stage.says = {"max": ["OK"]}
    stage.send("[NEXT: max, sarah] When does a token expire?")
    assert "From docs/tokens.md:1-3 (Tokens):\n" in stage.prompts[1]


def test_where_nothing_fits_nothing_is_told_but_why(stage: Stage) -> None:
    know(stage, "max", max_tokens=100)
    fill(stage, {"more.md": "word " * 600, "image.png": "\0"})
    nothing = told(stage, "Hello", max_tokens=100)
    assert (nothing.text, nothing.note) == ("", "nothing in it fits; left out: not text (1)")
    stage.send("Hello")
    assert "[KNOWLEDGE]" not in stage.prompts[0]


def test_a_path_that_is_gone_by_now_stops_nothing(stage: Stage) -> None:
    know(stage, "max")
    (stage.folder / "docs").rename(stage.folder / "gone")
    assert told(stage, "Hi").note == "left out: missing (1)"


def test_with_no_knowledge_there_is_no_index(stage: Stage) -> None:
    stage.send("Hi")
    assert not (stage.folder / INDEX_NAME).exists()


@given(st.text(max_size=300), st.none() | st.text(max_size=50), st.integers(100, 400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
def test_whatever_is_said_the_layer_is_within_its_tokens(
    stage: Stage, text: str, task: str | None, max_tokens: int
) -> None:
    know(stage, "max")
    fill(stage, {f"{number}.txt": f"{text}\n\n{'水' * 400}\n\n{task}\n" for number in range(2)})
    found = told(stage, f"{text} tokens", task=task, max_tokens=max_tokens)
    assert byte_length(found.text) <= max_tokens * 4
    assert found.text
