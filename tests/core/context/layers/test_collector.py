"""The collector gathers, the composer puts together in a fixed order, and neither renders text."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.assemblers.parts import (
    DIFFERENCES,
    FRAMEWORK,
    LAYERS,
    RESULTS,
    SUMMARY,
    TODO,
    AssemblerInput,
    PromptContextMessage,
)
from teamchat.core.agents import AGENT_TYPES
from teamchat.core.context.conversation_view import ContextComposer
from teamchat.core.context.layers.collector import ContextCollector, LayerContext, framework_only, texts_of
from teamchat.core.messages import NewMessage, Speaker
from tests.core.fake_conversation import Stage, team_of

TEAM = team_of(Path("/work"), {"max": "claude", "sarah": "codex"})
HI = NewMessage("Hi", Speaker("kailai", "kailai", type="human")).stored_as("msg-1")
CONTEXT = LayerContext(TEAM.member("max"), HI, "Hi", "Design it")
COMPOSER = ContextComposer(768 * 1024)


def test_every_key_of_the_collector_ends_in_context() -> None:
    collected = texts_of(ContextCollector({name: lambda _: "text" for name in LAYERS}).gather(CONTEXT))
    assert list(collected) == list(LAYERS)
    assert all(name.endswith("__context") for name in collected)


def test_a_source_of_no_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="no layer is called 'todo'"):
        ContextCollector({"todo": lambda _: "text"})
    with pytest.raises(ValueError, match="no layer is called 'todo'"):
        COMPOSER.compose(system_instruction=None, contexts={"todo": "text"}, message="Hi")


@pytest.mark.parametrize("nothing", [None, "", " \n"])
def test_a_layer_with_nothing_to_say_is_not_there(nothing: str | None) -> None:
    assert texts_of(ContextCollector({TODO: lambda _: nothing}).gather(CONTEXT)) == {}


def test_without_sharing_only_the_framework_is_told_and_what_a_process_shows() -> None:
    asked: list[str] = []

    def source(name: str, context: LayerContext) -> str:
        del context
        asked.append(name)
        return name

    sources = {name: (lambda context, name=name: source(name, context)) for name in LAYERS}
    assert texts_of(ContextCollector(sources, share=False).gather(CONTEXT)) == {
        FRAMEWORK: FRAMEWORK,
        DIFFERENCES: DIFFERENCES,
        RESULTS: RESULTS,
    }
    assert asked == [FRAMEWORK, DIFFERENCES, RESULTS]


def test_the_framework_is_told_of_the_member_that_it_is_for() -> None:
    collected = texts_of(framework_only(TEAM).gather(CONTEXT))
    assert collected[FRAMEWORK].startswith("You are max, a member of the team 'crew'")


def test_the_collector_renders_nothing() -> None:
    text = "# As it came\n\n[MESSAGE]\n"
    assert texts_of(ContextCollector({TODO: lambda _: text}).gather(CONTEXT)) == {TODO: text}


def test_the_composer_takes_explicit_parts_and_no_state_dict() -> None:
    parameters = list(inspect.signature(COMPOSER.compose).parameters)
    assert parameters == [
        "system_instruction", "instruction_file_text", "task", "contexts", "history", "message", "newest",
        "turn_note", "request",
    ]  # fmt: skip


def test_the_composer_adds_no_text_of_its_own() -> None:
    """Headings and lines are the assemblers'."""
    assert ContextComposer(9).compose(system_instruction=None, message="Hi") == AssemblerInput((), "Hi", max_bytes=9)
    composed = COMPOSER.compose(
        system_instruction="A", instruction_file_text="B", task="C", contexts={TODO: "D"}, message="E", turn_note="F",
        request="G",
    )  # fmt: skip
    assert composed == AssemblerInput(
        (), "E", "C", "A", "B", 768 * 1024, contexts={TODO: "D"}, turn_note="F", request="G"
    )  # fmt: skip


words = st.text("abcdefgh ", min_size=1, max_size=20).filter(str.strip)


@given(contexts=st.dictionaries(st.sampled_from(LAYERS), words), history=st.lists(words), message=words)
def test_a_query_has_one_path_into_a_prompt(contexts: dict[str, str], history: list[str], message: str) -> None:
    said = [PromptContextMessage("kailai", text) for text in history]
    composed = [
        COMPOSER.compose(system_instruction="You", contexts=contexts, history=said, message=f"<{message}>")
        for _ in range(2)
    ]
    assert composed[0] == composed[1]
    for kind in AGENT_TYPES.values():
        output = kind.assembler.assemble(composed[0])
        assert (output.prompt + (output.system_flag or "")).count(f"<{message}>") == 1


@pytest.mark.parametrize("like", ["claude", "codex", "gemini", "plain"])
def test_layers_come_in_one_order_whatever_order_they_were_found_in(like: str) -> None:
    contexts = {name: f"<{name}>" for name in reversed(LAYERS)}
    given_parts = COMPOSER.compose(
        system_instruction="<private>",
        contexts=contexts,
        history=[PromptContextMessage("kailai", "<history>")],
        message="<message>",
    )
    kind = next(row for name, row in AGENT_TYPES.items() if name == like)
    output = kind.assembler.assemble(given_parts)
    whole = (output.system_flag or "") + output.prompt
    order = [whole.index(f"<{name}>") for name in ("private", *LAYERS, "history", "message")]
    assert order == sorted(order)


def test_a_private_system_text_reaches_its_own_member_only(tmp_path: Path) -> None:
    """It lives for one call, and is in no message and in no layer."""
    stage = Stage(tmp_path, team_of(tmp_path, {"max": "claude", "sarah": "codex", "al": "plain"}))
    for name in ("max", "sarah", "al"):
        stage.member(name, system_instruction=f"You are secretly {name}", instruction_file_text=f"File of {name}")
    stage.send("[NEXT: max, sarah, al] Go")
    given = [(launch.identity.system_text or "") + launch.stdin.decode() for launch in stage.launched]
    assert stage.spoke == ["max", "sarah", "al"]
    for text, own in zip(given, stage.spoke, strict=True):
        told = [name for name in ("max", "sarah", "al") if f"secretly {name}" in text or f"File of {name}" in text]
        assert told == [own]
    assert not any("secretly" in said or "File of" in said for said in stage.said)


def test_a_summary_goes_into_compression_context_and_no_message() -> None:
    composed = COMPOSER.compose(system_instruction=None, contexts={SUMMARY: "summary"}, message="Hi")
    assert composed.context_messages == ()
    assert composed.contexts == {SUMMARY: "summary"}


def test_the_framework_is_in_every_prompt_and_in_no_message(tmp_path: Path) -> None:
    """It belongs to this version of teamchat, and a stored one would outlive it."""
    stage = Stage(tmp_path, team_of(tmp_path, {"max": "plain"}))
    for text in ("One", "Two"):
        stage.send(text)
    assert all("You are max, a member of the team 'crew'" in prompt for prompt in stage.prompts)
    assert not any("a member of the team" in said for said in stage.said)
