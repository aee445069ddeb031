from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.agent_events import FailureKind, TextDelta
from teamchat.runners.pipe import PipeOutput
from tests.runners.captures import play


def test_what_it_prints_is_its_answer_as_it_comes() -> None:
    events, verdict = play(PipeOutput(), [b"on", b"e\n\n", b"  t", b"wo"], [b"loading..."], 0)
    assert events == [TextDelta("on"), TextDelta("e\n\n"), TextDelta("  t"), TextDelta("wo")]
    assert (verdict.text, verdict.failure) == ("one\n\n  two", None)


@given(st.text() | st.binary(), st.lists(st.integers(0, 40)))
def test_however_its_output_is_cut_its_answer_is_the_same(output: str | bytes, cuts: list[int]) -> None:
    data = output if isinstance(output, bytes) else output.encode(errors="replace")
    ends = [0, *sorted(cuts), len(data)]
    events, verdict = play(PipeOutput(), [data[begin:end] for begin, end in pairwise(ends)], [], 0)
    text = data.decode(errors="replace")
    assert verdict.text == text.removesuffix("\n")
    streamed = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text in (streamed, f"{streamed}\ufffd")  # half a character at the end may still become a whole one


@pytest.mark.parametrize("output", [[], [b""], [b" ", b"\t\r"], [b"\n"], [b"\n", b"\n"]])
def test_exit_code_zero_without_text_is_no_success(output: list[bytes]) -> None:
    _, verdict = play(PipeOutput(), output, [], 0)
    assert verdict.failure is not None
    assert verdict.failure.reason == "finished without an answer"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (2, "ended with exit code 2: Error: no model llama3"),
        (-9, "was ended by SIGKILL: Error: no model llama3"),
        (143, "was ended by SIGTERM: Error: no model llama3"),
        (-99, "was ended by signal 99: Error: no model llama3"),
    ],
)
def test_another_exit_code_is_a_failure_and_keeps_the_text(code: int, reason: str) -> None:
    _, verdict = play(PipeOutput(), [b"half an ans"], [b"Error: no model llama3", b"bye"], code)
    assert verdict.text == "half an ans"
    assert verdict.failure is not None
    assert (verdict.failure.kind, verdict.failure.reason) == (FailureKind.AGENT, reason)


@given(st.lists(st.binary()), st.integers(-70, 300), st.binary())
def test_no_output_makes_it_raise_or_lie(output: list[bytes], code: int, stderr: bytes) -> None:
    _, verdict = play(PipeOutput(), output, [stderr], code)
    assert (verdict.failure is None) == (code == 0 and bool(verdict.text.strip()))
