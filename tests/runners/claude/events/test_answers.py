"""Which of Claude's texts are the reply: all blocks of its last own message, whatever its `result` has of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.agent_events import Text
from teamchat.runners.claude.events import ClaudeEvents
from tests.runners.claude.events.test_events import RESULT, delta, feed, tool_result, tool_use

Events = list[dict[str, object]]
THINKS = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SEARCHES = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
CALLS = tool_use("t1", "Read", file_path="a.py")


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def told(name: str | None, *blocks: object, parent: str | None = None) -> Events:
    """A message as Claude tells it: one event for each block."""
    known = {} if name is None else {"id": name}
    return [
        {"type": "assistant", "message": {**known, "content": [block]}, "parent_tool_use_id": parent}
        for block in blocks
    ]


def begins(name: str) -> dict[str, object]:
    event = {"type": "message_start", "message": {"id": name}}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None}


def result(words: str, **more: object) -> dict[str, object]:
    return RESULT | {"result": words} | more


def reply(*events: object) -> str:
    parser = ClaudeEvents()
    feed(parser, *events)
    verdict = parser.finish(0, "")
    assert verdict.failure is None
    return verdict.text


def failed(*events: object) -> str:
    parser = ClaudeEvents()
    feed(parser, *events)
    failure = parser.finish(0, "").failure
    assert failure is not None
    return failure.reason


@pytest.mark.parametrize(
    ("blocks", "whole"),
    [
        ([text("One, "), text("two.")], "One, two."),
        ([text("One."), text("\n\n"), text("Two.")], "One.\n\nTwo."),
        ([text("One."), THINKS, text("Two.")], "One.\n\nTwo."),
        ([text("One."), {"type": "redacted_thinking", "data": "x"}, text("Two.")], "One.\n\nTwo."),
        ([text("One."), SEARCHES, FOUND, text("Two, "), text("three.")], "One.\n\nTwo, three."),
        ([text("One."), CALLS, text("Two.")], "One.\n\nTwo."),
        ([THINKS, text("One.")], "One."),
        ([text(" "), text("One.")], "One."),
    ],
)
@pytest.mark.parametrize("streams", [True, False])
def test_the_reply_is_the_whole_last_message(blocks: Sequence[dict[str, object]], whole: str, *, streams: bool) -> None:
    message = [begins("m1")] * streams + told("m1", *blocks)
    last = next(block["text"] for block in reversed(blocks) if "text" in block)
    first = next(block["text"] for block in blocks if block.get("text") not in (None, " "))
    for words in (last, first, whole, ""):
        assert reply(*message, result(str(words))) == whole


def stops(why: str) -> Events:
    event = {"type": "message_delta", "delta": {"stop_reason": why}, "usage": {"output_tokens": 7}}
    return [
        {"type": "stream_event", "event": one, "parent_tool_use_id": None} for one in (event, {"type": "message_stop"})
    ]


@pytest.mark.parametrize("why", ["max_tokens", "pause_turn"])
def test_a_message_that_was_cut_goes_on_in_the_next_one(why: str) -> None:
    """Claude asks again by itself where an answer is longer than a message may be (2.1.330)."""
    parts = [
        event
        for number, words in enumerate(("Verdict: FA", "IL. The rest is fi", "ne."))
        for event in (
            begins(f"m{number}"),
            *told(f"m{number}", text(words)),
            *stops("end_turn" if number == 2 else why),
        )
    ]
    assert reply(*parts, result("ne.")) == "Verdict: FAIL. The rest is fine."


def test_a_message_that_was_cut_without_a_stream_goes_on_as_well() -> None:
    first, second = told("m1", text("The first ha")), told("m2", text("lf."))
    first[0]["message"] |= {"stop_reason": "max_tokens"}  # type: ignore[operator]
    assert reply(*first, *second, result("lf.")) == "The first half."


def test_a_message_that_was_cut_in_a_tool_call_does_not_go_on() -> None:
    looks = begins("m1"), *told("m1", text("I look."), CALLS), *stops("tool_use"), tool_result("t1", "ok")
    assert reply(*looks, begins("m2"), *told("m2", text("Done.")), *stops("end_turn"), result("Done.")) == "Done."


def test_thinking_after_the_answer_takes_nothing_away() -> None:
    assert reply(begins("m1"), *told("m1", text("The answer."), THINKS), result("")) == "The answer."


def test_text_of_a_message_before_a_tool_is_no_reply() -> None:
    looks = told("m1", text("I will look. [NEXT: sarah]"), CALLS)
    assert reply(*looks, tool_result("t1", "ok"), *told("m2", text("One."), text(" Two.")), result(" Two.")) == (
        "One. Two."
    )
    silent = (begins("m1"), *looks, tool_result("t1", "ok"), begins("m2"), *told("m2", THINKS), result(""))
    assert failed(*silent) == "finished without an answer"


def test_a_message_goes_on_after_the_result_of_its_tool() -> None:
    blocks = told("m1", text("One."), CALLS), tool_result("t1", "ok"), told("m1", text("Two."))
    assert reply(*blocks[0], blocks[1], *blocks[2], result("Two.")) == "One.\n\nTwo."


def test_what_a_subagent_says_in_between_is_not_the_members() -> None:
    inner = told("m2", text("Inner."), THINKS, parent="t1")
    assert reply(*told("m1", text("One, ")), *inner, *told("m1", text("two.")), result("two.")) == "One, two."


@pytest.mark.parametrize("words", ['{"verdict": "PASS"}', "Said by a command.", "One. Two. Three."])
def test_a_result_that_is_no_part_of_the_last_message_is_the_reply(words: str) -> None:
    assert reply(*told("m1", text("One."), text("Two.")), result(words)) == words


def test_messages_without_an_id_are_one_each() -> None:
    assert reply(*told(None, text("I look.")), *told(None, text("Done.")), result("Done.")) == "Done."


def test_a_result_that_failed_has_no_reply_however_much_was_said() -> None:
    said = told("m1", text("One, "), text("two."))
    assert failed(*said, result("API Error: 500", is_error=True)).endswith(": 500")


def test_a_second_result_without_a_message_of_its_own_does_not_repeat_the_first_reply() -> None:
    """As a command of a kept process tells one."""
    said = told("m1", text("One."), THINKS, text("Two."))
    assert reply(*said, result("Two."), result("Local output.")) == "Local output."
    assert failed(*said, result("Two."), result("")) == "finished without an answer"


def test_what_was_said_by_an_agent_that_was_killed_is_joined_as_its_reply_would_be() -> None:
    parser = ClaudeEvents()
    feed(parser, begins("m1"), *told("m1", text("One, "), text("two.")), delta(" Thr"), delta("ee"))
    assert parser.finish(-9, "").text == "One, two. Three"
    parser = ClaudeEvents()
    feed(parser, begins("m1"), *told("m1", text("One."), THINKS), delta("Two"))
    assert parser.finish(-9, "").text == "One.\n\nTwo"


WORDS = st.text(min_size=1, max_size=8).filter(lambda words: words.isascii() and words.isprintable() and words.strip())
BLOCKS = st.lists(st.one_of(WORDS, st.just(None)), min_size=1, max_size=8)
"""A text, or thinking."""


def sections(blocks: Sequence[str | None]) -> Iterator[str]:
    """Texts that follow each other, as one."""
    open_ = ""
    for block in (*blocks, None):
        if block is not None:
            open_ += block
        elif open_:
            yield open_
            open_ = ""


@given(st.lists(BLOCKS, min_size=1, max_size=3), st.data())
def test_any_messages_have_the_last_one_as_their_reply(messages: list[list[str | None]], data: st.DataObject) -> None:
    *_, last = messages
    if not any(last):
        last.append("said")
    parts = [block for block in last if block is not None]
    part = data.draw(st.sampled_from([*parts, "", "\n\n".join(sections(last))]))
    events = [
        event
        for number, blocks in enumerate(messages)
        for event in told(f"m{number}", *(THINKS if block is None else text(block) for block in blocks))
    ]
    parser = ClaudeEvents()
    heard = feed(parser, *events, result(part))
    assert parser.finish(0, "").text == "\n\n".join(sections(last))
    assert [event.text for event in heard if isinstance(event, Text)] == [b for m in messages for b in m if b]
