from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.agent_events import FailureKind, TextDelta
from teamchat.runners.pipe import PipeOutput
from tests.runners.captures import play


def test_what_it_prints_is_its_answer_line_by_line() -> None:
    events, verdict = play(PipeOutput(), [b"one", b"", b"  two"], [b"loading..."], 0)
    assert events == [TextDelta("one\n"), TextDelta("\n"), TextDelta("  two\n")]
    assert (verdict.text, verdict.failure) == ("one\n\n  two", None)


@pytest.mark.parametrize("output", [[], [b""], [b" ", b"\t\r"]])
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
