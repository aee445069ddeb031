from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.agent_events import Done, Failure, FailureKind, Note, Started, Text, TextDelta
from teamchat.runners.base import Job, Terminal
from teamchat.runners.terminal.runner import TerminalEvents, TerminalRunner
from tests.runners.captures import play


def told(event: str, **values: str) -> bytes:
    return json.dumps({"type": event, **values}).encode()


def test_what_the_typist_tells_becomes_events() -> None:
    lines = [told("seen"), told("ready"), told("text", text="o"), told("note", text="n"), told("answer", text="one")]
    events, verdict = play(TerminalEvents(), lines, [], 0)
    assert events == [Started(), TextDelta("o"), Note("n"), Text("one"), Done(ok=True)]
    assert (verdict.text, verdict.failure) == ("one", None)


@pytest.mark.parametrize("code", [0, 1, -9])
def test_an_answer_is_one_however_the_program_ended(code: int) -> None:
    _, verdict = play(TerminalEvents(), [told("answer", text="one")], [], code)
    assert (verdict.text, verdict.failure) == ("one", None)
    _, verdict = play(TerminalEvents(), [told("answer", text=" \n")], [], code)
    assert verdict.failure == Failure(FailureKind.AGENT, "finished without an answer")


def test_a_failure_is_told_in_its_own_words_and_keeps_the_text() -> None:
    lines = [told("text", text="one\n"), told("text", text="two"), told("failed", kind="timeout", reason="was slow")]
    events, verdict = play(TerminalEvents(), lines, [], 1)
    assert events[-1] == Done(ok=False)
    assert (verdict.text, verdict.failure) == ("one\ntwo", Failure(FailureKind.TIMEOUT, "was slow"))


def test_a_typist_that_dies_has_failed() -> None:
    _, verdict = play(TerminalEvents(), [told("text", text="one\n")], [b"MemoryError"], -9)
    assert verdict.text == "one"
    assert verdict.failure == Failure(FailureKind.AGENT, "was ended by SIGKILL before its prompt came: MemoryError")


@given(st.lists(st.binary() | st.builds(told, st.text(), kind=st.text(), reason=st.text())), st.integers(-70, 300))
def test_nothing_makes_it_raise_or_lie(lines: list[bytes], code: int) -> None:
    _, verdict = play(TerminalEvents(), lines, [], code)
    assert verdict.failure is not None


def test_a_program_that_is_shown_is_the_members_own() -> None:
    folder = Path("/w")
    job = Job(("desk", "-x"), folder, folder, args=("-y",), terminal=Terminal("> "), first_byte_s=7.0)
    command = TerminalRunner().command(job)
    assert (command.argv, command.env) == (("desk", "-x", "-y"), {"TERM": "dumb"})
    assert json.loads(command.through[-1]) == {"pattern": "> ", "submit": "\r", "leave": None, "ready_s": 7.0}
    assert all(Path(name).is_absolute() for name in json.loads(command.through[-3]))
    with pytest.raises(ValueError, match="needs its prompt pattern"):
        TerminalRunner().command(Job(("desk",), folder, folder))
