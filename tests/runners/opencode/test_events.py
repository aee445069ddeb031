from __future__ import annotations

import json
from typing import Any

import pytest

from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Done,
    Error,
    FailureKind,
    Retry,
    Started,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsedSoFar,
    VendorSession,
)
from teamchat.runners.opencode.events import OpencodeEvents
from tests.runners.captures import replay

SESSION = "ses_1"
START = {"type": "step_start", "sessionID": SESSION, "part": {"type": "step-start"}}
TOKENS = {"input": 6, "output": 7, "reasoning": 2, "cache": {"write": 3, "read": 2}}


def feed(parser: OpencodeEvents, *events: object) -> list[AgentEvent]:
    return [found for event in events for found in parser.feed(json.dumps(event).encode())]


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "sessionID": SESSION, "part": {"type": "text", "text": text, "messageID": "m1"}}


def ended(reason: str = "stop", cost: float = 0.5, message: str = "m1") -> dict[str, Any]:
    part = {"reason": reason, "tokens": TOKENS, "cost": cost, "messageID": message}
    return {"type": "step_finish", "sessionID": SESSION, "part": part}


def used(name: str, given: object, **state: object) -> dict[str, Any]:
    part = {"type": "tool", "tool": name, "callID": "t", "state": {"input": given, **state}}
    return {"type": "tool_use", "sessionID": SESSION, "part": part}


def failed(name: str, **data: object) -> dict[str, Any]:
    return {"type": "error", "sessionID": SESSION, "error": {"name": name, "data": data}}


def logged(text: str) -> bytes:
    return f'timestamp=2026-01-01T00:00:00.000Z level=ERROR run=1 message="stream error" error.error="{text}"'.encode()


def test_a_turn_with_a_tool_is_told_from_start_to_done() -> None:
    events, verdict = replay("opencode", "recommended")
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert call == ToolCall(call.id, "read", "note.txt")
    assert "1: a note" in result.output
    (session,) = [event for event in events if isinstance(event, VendorSession)]
    assert session.id.startswith("ses_")
    assert events == [
        Started(),
        session,
        Text("Looking."),
        call,
        ToolResult(call.id, result.output),
        UsedSoFar(Usage(100, 40, 7, 0.000495)),
        Text("Done [NEXT:max]\n"),
        Usage(220, 90, 16, 0.000495 + 0.0006),
        Done(ok=True),
    ]
    assert verdict.text == "Done [NEXT:max]\n"


def test_thinking_is_told_and_is_no_text() -> None:
    events, verdict = replay("opencode", "thinking")
    assert Thinking("I think so.") in events
    assert verdict.text == "I thought."


def test_what_the_agent_could_not_do_is_denied_and_what_went_wrong_is_not() -> None:
    events, verdict = replay("opencode", "tool_read_denied")
    denied = [(event.tool, event.detail) for event in events if isinstance(event, Denied)]
    assert denied == [("write", "/work/project/made.txt"), ("bash", "touch made.sh"), ("read", "/etc/hostname")]
    assert [event.failed for event in events if isinstance(event, ToolResult)] == [True] * 4
    assert verdict.text == "I tried."


def test_changed_files_are_those_of_the_edit_tools_that_succeeded() -> None:
    events, _ = replay("opencode", "tool_edit")
    paths = [path for event in events if isinstance(event, ToolResult) for path in event.paths]
    assert paths == ["/work/project/made.txt", "note.txt"]
    assert [event.tool for event in events if isinstance(event, Denied)] == ["bash"]


def test_the_files_of_a_patch_are_those_that_it_names() -> None:
    patch = "*** Begin Patch\n*** Add File: a b.txt\n+x\n*** Delete File: c\n*** Update File: d/e\n*** End Patch"
    events = feed(OpencodeEvents(), used("apply_patch", {"patchText": patch}, status="completed", output="Done"))
    assert [event.paths for event in events if isinstance(event, ToolResult)] == [("a b.txt", "c", "d/e")]


def test_all_steps_count_and_cached_tokens_are_part_of_the_input() -> None:
    events = feed(OpencodeEvents(), START, ended("tool-calls"), START, said("Hi"), ended(cost=0.25))
    assert [event for event in events if isinstance(event, Usage)] == [Usage(22, 4, 18, 0.75)]


def test_zeros_are_no_usage() -> None:
    nothing = {"input": 0, "output": 0, "reasoning": 0, "cache": {"write": 0, "read": 0}}
    end = {"type": "step_finish", "part": {"reason": "stop", "tokens": nothing, "cost": 0}}
    events = feed(OpencodeEvents(), START, said("Hi"), end)
    assert not [event for event in events if isinstance(event, Usage)]


def test_what_a_killed_turn_had_used_is_known() -> None:
    parser = OpencodeEvents()
    feed(parser, START, ended("tool-calls"), START)
    assert parser.finish(-9, "").usage == Usage(11, 2, 9, 0.5)


def test_text_before_the_last_step_is_no_answer() -> None:
    parser = OpencodeEvents()
    feed(parser, START, said("I will look."), ended("tool-calls"), START, ended(message="m2"))
    verdict = parser.finish(0, "")
    assert verdict.text == "I will look."
    assert verdict.failure is not None


def test_an_answer_in_several_blocks_is_one() -> None:
    parser = OpencodeEvents()
    feed(parser, START, said("One."), said("Two."), ended())
    assert parser.finish(0, "").text == "One.\n\nTwo."


def test_a_step_after_the_last_one_undoes_its_end() -> None:
    parser = OpencodeEvents()
    feed(parser, START, said("One."), ended(), START, said("Tw"))
    assert parser.finish(0, "").failure is not None


@pytest.mark.parametrize("reason", ["length", "content-filter", "error", "other", "unknown"])
def test_an_answer_that_broke_off_is_a_failure(reason: str) -> None:
    parser = OpencodeEvents()
    feed(parser, START, said("Half"), ended(reason))
    verdict = parser.finish(0, "")
    assert verdict.text == "Half"
    assert verdict.failure is not None
    assert verdict.failure.reason == f"reported an error: its answer broke off: {reason}"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (failed("ContextOverflowError", message="it is what it is"), FailureKind.TOO_LARGE),
        (failed("ProviderAuthError", message="no"), FailureKind.LOGIN),
        (failed("MessageAbortedError", message="Aborted"), FailureKind.INTERRUPTED),
        (failed("APIError", message="no", statusCode=401), FailureKind.LOGIN),
        (failed("APIError", message="no", statusCode=529), FailureKind.OVERLOADED),
        (failed("APIError", message="Rate limit reached"), FailureKind.RATE_LIMIT),
        (failed("UnknownError", message=" "), FailureKind.AGENT),
        ({"type": "error", "error": {"name": 1, "data": []}}, FailureKind.AGENT),
    ],
)
def test_an_error_is_of_the_kind_that_its_name_or_status_says(event: object, kind: FailureKind) -> None:
    parser = OpencodeEvents()
    assert [type(found) for found in feed(parser, event)][-1] is Error
    failure = parser.finish(1, "").failure
    assert failure is not None
    assert failure.kind is kind


def test_an_answer_that_broke_off_and_was_asked_for_again_is_none() -> None:
    events, verdict = replay("opencode", "eof_mid")
    assert [event.text for event in events if isinstance(event, Text)] == ["Half", "Whole."]
    assert (verdict.text, verdict.failure) == ("Whole.", None)


def test_a_text_may_come_after_the_end_of_its_step() -> None:
    parser = OpencodeEvents()
    feed(parser, START, ended(), said("Late."))
    assert parser.finish(0, "").text == "Late."


def test_an_unexpected_error_has_its_cause_from_the_log() -> None:
    _, verdict = replay("opencode", "invalid_model")
    assert verdict.failure is not None
    assert verdict.failure.reason == (
        "reported an error: Model not found: anthropic/nope.; a provider that is not connected has none"
    )


def test_a_session_that_is_gone_is_told() -> None:
    _, verdict = replay("opencode", "resume_unknown")
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.GONE


@pytest.mark.parametrize(
    ("told", "retries"),
    [
        ("AI_APICallError: Overloaded", [Retry("Overloaded", FailureKind.OVERLOADED)]),
        ('AI_APICallError: \\"Too many requests\\"', [Retry('"Too many requests"', FailureKind.RATE_LIMIT)]),
        ("AI_APICallError: invalid x-api-key", []),
        ("AI_APICallError: messages: something is wrong", []),
    ],
)
def test_retries_are_read_from_the_log(told: str, retries: list[Retry]) -> None:
    assert list(OpencodeEvents().feed_stderr(logged(told))) == retries


def test_a_retry_is_read_where_the_log_takes_the_error_apart() -> None:
    events, verdict = replay("opencode", "error_event")
    assert [event for event in events if isinstance(event, Retry)] == [Retry("Overloaded", FailureKind.OVERLOADED)]
    assert verdict.text == "Whole."


def test_the_log_is_no_reason_of_a_failure() -> None:
    verdict = OpencodeEvents().finish(1, logged("AI_APICallError: x").decode())
    assert verdict.failure is not None
    assert verdict.failure.reason == "ended with exit code 1 before it had finished its answer"


def test_another_sessions_id_is_told() -> None:
    events = feed(OpencodeEvents(), START, {**START, "sessionID": "ses_2"})
    assert [event.id for event in events if isinstance(event, VendorSession)] == ["ses_1", "ses_2"]
