from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Done,
    Error,
    FailureKind,
    Note,
    Question,
    Retry,
    Started,
    Text,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
    VendorSession,
)
from teamchat.runners.gemini.events import GeminiEvents
from tests.runners.captures import replay

SUCCESS = {"type": "result", "status": "success"}


def feed(parser: GeminiEvents, *events: object) -> list[AgentEvent]:
    return [found for event in events for found in parser.feed(json.dumps(event).encode())]


def said(text: str) -> dict[str, object]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


def test_a_turn_with_a_tool_is_told_from_start_to_done() -> None:
    events, verdict = replay("gemini", "recommended")
    tool = "list_directory__list_directory_1795295180709_0"
    assert events == [
        Started("gemini-2.5-flash"),
        VendorSession("34582d9a-2428-4783-b336-389641c96c46"),
        TextDelta("Looking. "),
        Text("Looking. "),
        ToolCall(tool, "list_directory", "."),
        ToolResult(tool, ""),
        TextDelta("Done "),
        TextDelta("[NEXT:max]\n"),
        Text("Done [NEXT:max]\n"),
        Usage(111, 30, 32),
        Done(ok=True),
    ]
    assert verdict.text == "Done [NEXT:max]\n"


BLOCKED = "Blocked: command substitution detected in shell command."


@pytest.mark.parametrize(
    ("command", "output", "is_denied"),
    [
        ("echo sum $((1+1)) > made.txt", BLOCKED, True),
        ("echo `date`", BLOCKED, True),
        ("echo \"don't stop $(date) won't\"", BLOCKED, True),
        ("diff <(ls a) <(ls b)", BLOCKED, True),
        ("tee >(wc -l)", BLOCKED, True),
        ("bash -c 'echo $(date) > made.txt'", BLOCKED, True),
        ("/bin/sh -c 'echo `date` > made.txt'", BLOCKED, True),
        (f"echo '{BLOCKED}'", BLOCKED, False),  # it ran, and says so
        (f"echo '{BLOCKED}' '$(date)' | head -c 56", BLOCKED, False),
        (f'echo "{BLOCKED}" \\$\\(date\\) >/dev/null', BLOCKED, False),
        ("echo $(date)", f"{BLOCKED} No.", False),
        ("ls", "", False),
    ],
)
def test_a_command_with_an_expansion_is_refused_though_its_event_says_success(
    command: str, output: str, is_denied: bool
) -> None:
    use = {"type": "tool_use", "tool_id": "1", "tool_name": "run_shell_command", "parameters": {"command": command}}
    result = {"type": "tool_result", "tool_id": "1", "status": "success", "output": output}
    events = feed(GeminiEvents(), use, result)
    (told,) = (event for event in events if isinstance(event, ToolResult))
    assert told.failed == is_denied
    assert [event for event in events if isinstance(event, Denied)] == [
        Denied("run_shell_command", command)
    ] * is_denied


def test_the_echo_of_the_prompt_is_no_text() -> None:
    parser = GeminiEvents()
    assert feed(parser, {"type": "message", "role": "user", "content": "the prompt"}) == []
    feed(parser, SUCCESS)
    assert parser.finish(0, "").failure is not None


def test_thinking_counts_as_output() -> None:
    events, _ = replay("gemini", "thinking")
    assert Usage(11, 0, 57) in events


def test_zeros_are_no_usage() -> None:
    events, _ = replay("gemini", "e400")
    assert [event for event in events if isinstance(event, Usage)] == [Usage()]


def test_cached_tokens_are_part_of_the_input() -> None:
    events, _ = replay("gemini", "usage")
    assert Usage(12345, 9000, 999) in events


@pytest.mark.parametrize("name", ["tool_default", "tool_default_write"])
def test_a_tool_that_is_not_offered_counts_as_denied(name: str) -> None:
    events, verdict = replay("gemini", name)
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert [event for event in events if isinstance(event, Denied)] == [Denied(call.name, call.summary)]
    assert [event.failed for event in events if isinstance(event, ToolResult)] == [True]
    assert verdict.failure is None


@pytest.mark.parametrize(
    ("kind", "is_denied"),
    [("policy_violation", True), ("path_not_in_workspace", True), ("file_not_found", False), ("shell_execute", False)],
)
def test_a_tool_error_is_a_denial_only_by_its_type(kind: str, is_denied: bool) -> None:
    result = {"type": "tool_result", "tool_id": "t", "status": "error", "error": {"type": kind, "message": "no"}}
    events = feed(GeminiEvents(), result)
    assert any(isinstance(event, Denied) for event in events) == is_denied


def test_changed_files_are_those_of_the_edit_tools_that_succeeded() -> None:
    events, _ = replay("gemini", "tool_auto_edit_write")
    assert [event.paths for event in events if isinstance(event, ToolResult)] == [("made.txt",)]
    events, _ = replay("gemini", "tool_default_write")
    assert [event.paths for event in events if isinstance(event, ToolResult)] == [()]
    events, _ = replay("gemini", "tool_default_read")
    assert [event.paths for event in events if isinstance(event, ToolResult)] == [()]


@pytest.mark.parametrize(
    ("name", "retries"),
    [
        ("e429_once", [Retry("status 429", FailureKind.RATE_LIMIT, 1)]),
        (
            "quota_minute_2s",
            [
                Retry("You exceeded your current quota", FailureKind.RATE_LIMIT, 1),
                Retry("You exceeded your current quota", FailureKind.RATE_LIMIT, 2),
            ],
        ),
        ("drop_before_once", [Retry("fetch failed sending request", FailureKind.OVERLOADED, 1)]),
        ("us_max1_skiptrust", []),
    ],
)
def test_retries_are_read_from_stderr(name: str, retries: list[Retry]) -> None:
    events, _ = replay("gemini", name)
    assert [event for event in events if isinstance(event, Retry)] == retries


@pytest.mark.parametrize(
    "error",
    [
        {"severity": "error", "message": "Maximum session turns exceeded"},
        {"message": "Something broke"},
        {"severity": "warning", "message": "Loop detected, stopping execution"},
    ],
)
@pytest.mark.parametrize("after", [[], [said("More.")]])
def test_an_error_is_a_failure_though_the_result_says_success(error: dict[str, str], after: list[object]) -> None:
    parser = GeminiEvents()
    events = feed(parser, said("ha ha "), {"type": "error", **error}, *after, SUCCESS)
    assert Error(error["message"]) in events
    assert events[-1] == Done(ok=False)
    verdict = parser.finish(0, "")
    assert verdict.text.startswith("ha ha ")
    assert verdict.failure is not None
    assert verdict.failure.reason.endswith(error["message"])


BLOCKED = "Agent execution blocked: Run the tests first."
WARNING: dict[str, object] = {"type": "error", "severity": "warning", "message": BLOCKED}
TOOL: list[dict[str, object]] = [
    {"type": "tool_use", "tool_id": "t", "tool_name": "glob", "parameters": {"pattern": "*"}},
    {"type": "tool_result", "tool_id": "t", "status": "success"},
]


@pytest.mark.parametrize(
    "events",
    [
        [said("A draft."), WARNING, said("The "), said("answer.")],
        [said("A draft."), WARNING, said("Tests."), *TOOL, said("The answer.")],
        [said("A draft."), WARNING, *TOOL, said("The answer.")],
        [WARNING, said("The answer.")],
        [said("A draft."), WARNING, said("Another."), WARNING, said("The answer.")],
    ],
)
def test_a_hook_that_sends_the_agent_back_is_a_note_and_the_reply_is_what_came_after(events: list[object]) -> None:
    parser = GeminiEvents()
    heard = feed(parser, *events, SUCCESS)
    assert Note(BLOCKED) in heard
    assert not [event for event in heard if isinstance(event, Error)]
    assert heard[-1] == Done(ok=True)
    verdict = parser.finish(0, "")
    assert (verdict.text, verdict.failure) == ("The answer.", None)


@pytest.mark.parametrize("before", [[], [said("A draft.")], [WARNING, said("A draft.")], [*TOOL, said("A draft.")]])
@pytest.mark.parametrize("end", [[SUCCESS], [{"type": "result", "status": "error"}], []])
def test_a_warning_after_which_nothing_comes_is_why_it_failed(before: list[object], end: list[object]) -> None:
    parser = GeminiEvents()
    heard = feed(parser, *before, WARNING, *end)
    assert Done(ok=True) not in heard
    verdict = parser.finish(0, "")
    assert verdict.failure is not None
    assert verdict.failure.reason == f"reported an error: {BLOCKED}"
    assert verdict.text == ("A draft." if said("A draft.") in before else "")


def test_a_turn_that_did_something_after_a_warning_and_says_nothing_has_no_answer() -> None:
    parser = GeminiEvents()
    feed(parser, said("A draft."), WARNING, *TOOL, SUCCESS)
    failure = parser.finish(0, "").failure
    assert failure is not None
    assert failure.reason == "finished without an answer"


PARTS = st.lists(st.sampled_from(["warning", "tool", "text"]), max_size=8)


@given(PARTS)
def test_a_turn_has_an_answer_exactly_if_it_ends_with_a_text(parts: list[str]) -> None:
    events: dict[str, list[dict[str, object]]] = {"warning": [WARNING], "tool": TOOL, "text": [said("x")]}
    parser = GeminiEvents()
    feed(parser, *(event for part in parts for event in events[part]), SUCCESS)
    verdict = parser.finish(0, "")
    assert (verdict.failure is None) == (parts[-1:] == ["text"])
    if verdict.failure is None:
        last = next((at for at in reversed(range(len(parts))) if parts[at] != "text"), -1)
        assert verdict.text == "x" * (len(parts) - 1 - last)


def test_text_before_the_last_tool_is_no_answer() -> None:
    parser = GeminiEvents()
    feed(
        parser,
        said("I will look."),
        {"type": "tool_use", "tool_id": "t", "tool_name": "glob", "parameters": {"pattern": "*"}},
        {"type": "tool_result", "tool_id": "t", "status": "success"},
        SUCCESS,
    )
    verdict = parser.finish(0, "")
    assert verdict.failure is not None
    assert verdict.text == "I will look."


def test_a_prompt_that_was_cut_off_is_a_failure() -> None:
    parser = GeminiEvents()
    line = "Warning: stdin input truncated to 8388608 bytes."
    assert list(parser.feed_stderr(line.encode())) == [Note(line)]
    feed(parser, said("Hi"), SUCCESS)
    failure = parser.finish(0, line).failure
    assert failure is not None
    assert failure.kind is FailureKind.TOO_LARGE


def test_the_exit_code_tells_the_status_that_the_message_leaves_out() -> None:
    for code, kind in ((145, FailureKind.LOGIN), (173, FailureKind.RATE_LIMIT), (247, FailureKind.OVERLOADED)):
        parser = GeminiEvents()
        feed(parser, {"type": "result", "status": "error", "error": {"type": "unknown", "message": "no"}})
        failure = parser.finish(code, "").failure
        assert failure is not None
        assert failure.kind is kind


def test_a_question_to_its_user_is_told_and_no_refusal() -> None:
    """As 0.55.1 to 0.61.0 tell it."""
    asked = {"questions": [{"question": "Which database?", "options": [{"label": "SQLite", "description": "a file"}]}]}
    use = {"type": "tool_use", "tool_name": "ask_user", "tool_id": "t1", "parameters": asked}
    words = 'Tool "ask_user" not found. Did you mean one of: "read_file"?'
    error = {"type": "tool_not_registered", "message": words}
    refusal = {"type": "tool_result", "tool_id": "t1", "status": "error", "output": words, "error": error}
    for end in ([refusal, SUCCESS], [SUCCESS]):
        parser = GeminiEvents()
        events = feed(parser, use, *end)
        told = [event for event in events if isinstance(event, Question | Denied)]
        assert told == [Question("Which database?\n- SQLite: a file")]
        assert parser.finish(0, "").failure is None


def test_a_path_outside_of_the_workspace_is_a_refusal() -> None:
    """As 0.55.1 to 0.61.0 tell it: by the words alone."""
    use = {"type": "tool_use", "tool_name": "read_file", "tool_id": "t1", "parameters": {"file_path": "/etc/hostname"}}
    words = 'Path not in workspace: Attempted path "/etc/hostname" resolves outside the allowed workspace directories'
    error = {"type": "invalid_tool_params", "message": words}
    outside = {"type": "tool_result", "tool_id": "t1", "status": "error", "output": words, "error": error}
    missing = {**outside, "error": {"type": "file_not_found", "message": "File not found: /w/Path not in workspace: x"}}
    assert Denied("read_file", "/etc/hostname") in feed(GeminiEvents(), use, outside)
    assert not [event for event in feed(GeminiEvents(), use, missing) if isinstance(event, Denied)]


def test_a_file_that_gemini_would_ask_about_is_a_refusal() -> None:
    """As 0.61.0 tells it of a file in `.vscode`, which it confirms under `auto_edit`, too."""
    file = "/w/.vscode/tasks.json"
    use = {"type": "tool_use", "tool_name": "write_file", "tool_id": "t1", "parameters": {"file_path": file}}
    words = 'Tool execution for "WriteFile" requires user confirmation, which is not supported in non-interactive mode.'
    error = {"type": "unhandled_exception", "message": words}
    result = {"type": "tool_result", "tool_id": "t1", "status": "error", "output": words, "error": error}
    broken = {**result, "error": {**error, "message": "ENOSPC: no space left on device"}}
    denied = [event for event in feed(GeminiEvents(), use, result) if isinstance(event, Denied)]
    assert [event.tool for event in denied] == ["write_file"]
    assert not [event for event in feed(GeminiEvents(), use, broken) if isinstance(event, Denied)]
