"""Pieces of text that are read at once are one event; none is lost, and none moves past another event."""

from __future__ import annotations

import itertools
import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.agent_events import AgentEvent, TextDelta
from tests.runners.captures import RUNNERS, Cli, captures, lines

Streaming = Literal["claude", "gemini"]


def piece(cli: Streaming, text: str) -> bytes:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    events: dict[Streaming, dict[str, object]] = {
        "claude": {"type": "stream_event", "event": delta},
        "gemini": {"type": "message", "role": "assistant", "content": text, "delta": True},
    }
    return json.dumps(events[cli]).encode()


@pytest.mark.parametrize("cli", ["claude", "gemini"])
def test_pieces_that_are_read_at_once_are_one(cli: Streaming) -> None:
    parser = RUNNERS[cli].parser()
    assert list(parser.feed(piece(cli, "one "), piece(cli, ""), piece(cli, "two"))) == [TextDelta("one two")]
    assert list(parser.feed(piece(cli, ""))) == []
    one, junk, two = parser.feed(piece(cli, "three"), b"no JSON", piece(cli, "four"))
    assert (one, two) == (TextDelta("three"), TextDelta("four"))
    assert "no JSON" in getattr(junk, "text", "")
    assert parser.finish(1, "").text == "one twothreefour"


def test_pieces_of_a_subagent_and_of_a_tools_input_are_no_text() -> None:
    parser = RUNNERS["claude"].parser()
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "no"}}
    of_subagent = {"type": "stream_event", "event": delta, "parent_tool_use_id": "toolu_1"}
    of_input = {**delta, "delta": {"type": "input_json_delta", "partial_json": '{"text'}}
    others = [of_subagent, {"type": "stream_event", "event": of_input}]
    assert list(parser.feed(*(json.dumps(event).encode() for event in others))) == []


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini", "opencode"])
@given(data=st.data())
def test_however_a_stream_is_read_it_says_the_same(cli: Cli, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(captures(cli))))
    stdout = lines(captures(cli)[name].stdout)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stdout)), max_size=5)) | {0, len(stdout)})
    one_by_one, at_once = RUNNERS[cli].parser(), RUNNERS[cli].parser()
    expected = [event for line in stdout for event in one_by_one.feed(line)]
    parts = itertools.pairwise(cuts)
    found = [event for begin, end in parts for event in at_once.feed(*stdout[begin:end])]
    assert joined(found) == joined(expected)
    assert at_once.finish(0, "") == one_by_one.finish(0, "")


def joined(events: list[AgentEvent]) -> list[AgentEvent]:
    """The events with all pieces of text that follow each other as one."""
    found: list[AgentEvent] = []
    for event in events:
        match found[-1:], event:
            case [TextDelta(text=before)], TextDelta(text=text):
                found[-1] = TextDelta(before + text)
            case _:
                found.append(event)
    return found
