"""How the lines of `--json` are written, and when they are given to who reads them."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.cli.output.jsonl import JsonOutput, write_line
from teamchat.core.turn.run_events import spoken
from teamchat.runners.agent_events import AgentEvent, Done, Note, TextDelta, ToolCall


class Pipe(io.StringIO):
    """Keeps how much was written at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[list[str]] = []

    def flush(self) -> None:
        self.flushed.append([json.loads(line)["type"] for line in self.getvalue().split("\n")[:-1]])


@pytest.mark.parametrize(
    ("events", "flushed"),
    [
        ((Note("a"), Note("b"), Note("c")), ["note", "note", "note"]),
        ((Note("a"), Done(ok=True)), ["note"]),
        ((ToolCall("1", "Bash", "ls"), TextDelta("x")), ["tool_call", "text_delta"]),
    ],
)
def test_what_came_at_once_is_flushed_once(
    events: tuple[AgentEvent, ...], flushed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = Pipe()
    monkeypatch.setattr(sys, "stdout", pipe)
    output = JsonOutput("s1", stream=True)
    for event in spoken("max", 1, events):
        output(event)
    assert pipe.flushed == [flushed]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_line_is_one_line_of_json_with_what_was_given(value: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        pipe = Pipe()
        patch.setattr(sys, "stdout", pipe)
        write_line("note", text=value)
    line, rest = pipe.getvalue().split("\n")
    assert (json.loads(line), rest) == ({"v": 1, "type": "note", "text": value}, "")
