"""What a member's line says, as its agent's events tell it."""

from __future__ import annotations

import pytest

from teamchat.cli.output.terminal.doing import Doing, status_lines
from teamchat.cli.output.terminal.look import Look
from teamchat.core.turn.run_events import TriesAgain
from teamchat.runners.agent_events import (
    NOTHING_YET,
    AgentEvent,
    Done,
    FailureKind,
    Note,
    Retry,
    TextDelta,
    ToolCall,
    Usage,
    UsedSoFar,
)

BEGAN = 100.0
OVERLOADED = FailureKind.OVERLOADED


def line(*events: AgentEvent, after: float = 0.0) -> str:
    """The line so many seconds after the last of the events, which come when the turn begins."""
    doing = Doing("max", BEGAN)
    for event in events:
        doing.learn(event, BEGAN)
    return shown(doing, BEGAN + after)


def shown(doing: Doing, now: float) -> str:
    (found,) = status_lines([doing], (), now, 80, Look(styles=False, colours=False), {"max": 1})
    return found[2:]


@pytest.mark.parametrize(
    ("retry", "after", "words"),
    [
        (Retry("overloaded (529)", OVERLOADED, 2, 3, 4.0), 0.0, "waiting for the model: retry 2 of 3 in 4 s"),
        (Retry("overloaded (529)", OVERLOADED, 2, 3, 4.0), 1.5, "waiting for the model: retry 2 of 3 in 3 s"),
        (Retry("overloaded (529)", OVERLOADED, 2, 3, 0.5), 0.0, "waiting for the model: retry 2 of 3 in 1 s"),
        (Retry("overloaded (529)", OVERLOADED, 2, 3, 4.0), 4.0, "waiting for the model: retry 2 of 3"),
        (Retry("overloaded (529)", OVERLOADED, 2, 3), 0.0, "waiting for the model: retry 2 of 3"),
        (Retry("status 429", OVERLOADED, 2), 0.0, "waiting for the model: retry 2"),
        (Retry("Overloaded", OVERLOADED), 0.0, "waiting for the model: Overloaded"),
    ],
)
def test_a_wait_for_the_model_is_counted_down_as_far_as_the_cli_tells_it(
    retry: Retry, after: float, words: str
) -> None:
    assert line(retry, after=after) == f"max  {words}   0:0{int(after)}"


def test_the_wait_is_over_when_the_agent_goes_on() -> None:
    retry = Retry("overloaded (529)", OVERLOADED, 2, 3, 9.0)
    assert line(retry, TextDelta("Hi")) == "max  writing   0:00"
    assert line(retry, UsedSoFar(Usage(10, 0, 1))) == "max  thinking   0:00   11 tokens"
    assert line(retry, Note("something")) == "max  waiting for the model: retry 2 of 3 in 9 s   0:00"


def test_a_program_that_answers_at_its_end_is_said_to_do_so() -> None:
    assert line(Note(NOTHING_YET)) == line().replace("starting", "nothing yet (this program answers at its end)")
    assert "nothing yet" not in line(TextDelta("So"), Note(NOTHING_YET))


def test_a_member_whose_files_are_recorded_does_afterwards_what_it_did_before() -> None:
    doing = Doing("max", BEGAN)
    for before in ("starting", "finishing"):
        doing.record(over=False)
        assert shown(doing, BEGAN) == "max  recording the files   0:00"
        doing.record(over=True)
        assert shown(doing, BEGAN) == f"max  {before}   0:00"
        doing.learn(Done(ok=True), BEGAN)


def test_a_member_that_tries_again_counts_down_from_then_on() -> None:
    failed = Doing("max", BEGAN, used=Usage(10, 0, 1))
    waits = failed.trying_again(TriesAgain(1, 2, 3.2), BEGAN + 60)
    assert shown(waits, BEGAN + 61) == "max  waiting to try again: retry 1 of 2 in 3 s   0:01"


def test_the_tokens_so_far_are_those_that_were_told_last() -> None:
    call = ToolCall("t1", "Bash", "ls")
    used = UsedSoFar(Usage(10, 0, 1)), call, UsedSoFar(Usage(17_000, 9_000, 1_000, 0.1))
    assert line(*used) == "max  running `ls`   0:00   18k tokens"
    assert line(*used, Usage(20_000, 9_000, 1_000, 0.1)).endswith("21k tokens")


def test_the_tokens_of_a_whole_vendor_session_are_not_those_of_the_turn() -> None:
    assert line(Usage(10_000, 0, 1, cumulative=True)) == "max  starting   0:00"
