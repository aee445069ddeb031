from __future__ import annotations

import json

import pytest

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
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    VendorSession,
)
from teamchat.runners.codex.events import CodexEvents
from tests.runners.captures import replay


def feed(parser: CodexEvents, *events: object) -> list[AgentEvent]:
    return [found for event in events for found in parser.feed(json.dumps(event).encode())]


def completed(**item: object) -> dict[str, object]:
    return {"type": "item.completed", "item": item}


def command(text: str) -> dict[str, object]:
    return completed(id="i", type="command_execution", command=text, aggregated_output="", exit_code=0)


def denied(name: str) -> list[Denied]:
    return [event for event in replay("codex", name)[0] if isinstance(event, Denied)]


def test_a_turn_with_a_tool_is_told_from_start_to_done() -> None:
    events, verdict = replay("codex", "recommended")
    assert events == [
        Started(),
        VendorSession("01a1ffee-6f6e-74d3-8acd-8c75f1e65f54"),
        Thinking("hm"),
        Text("Looking. "),
        ToolCall("item_2", "command_execution", "ls"),
        ToolResult("item_2", "note.txt\n", exit_code=0),
        Text("Done [NEXT:max]\n"),
        Usage(111, 30, 27, cumulative=True),
        Done(ok=True),
    ]
    assert verdict.text == "Done [NEXT:max]\n"


def test_the_last_message_is_the_reply_though_a_tool_came_after_it() -> None:
    events, verdict = replay("codex", "websearch")
    assert [type(event) for event in events if isinstance(event, Text | ToolCall)] == [Text, ToolCall]
    assert verdict.text == "go"


def test_changed_files_are_named() -> None:
    events, _ = replay("codex", "apply_patch_ws")
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert [path.rpartition("/")[2] for path in result.paths] == ["new.txt"]


def test_an_item_that_only_completes_was_called_too() -> None:
    assert feed(CodexEvents(), command("ls")) == [
        ToolCall("i", "command_execution", "ls"),
        ToolResult("i", "", exit_code=0),
    ]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("/bin/bash -lc 'echo \"a b\"'", 'echo "a b"'),
        ("/usr/bin/zsh -lc ls", "ls"),
        ("bash -c 'a\nb'", "a b"),
        ("ls -la", "ls -la"),
        ("/bin/bash -lc 'unfinished", "/bin/bash -lc 'unfinished"),
        ("/bin/bash -lc " + "x" * 5000, "/bin/bash -lc " + "x" * 185 + "…"),
    ],
)
def test_a_command_is_shown_without_the_shell_around_it(told: str, shown: str) -> None:
    assert feed(CodexEvents(), command(told))[0] == ToolCall("i", "command_execution", shown)


def test_an_mcp_call_is_a_tool_call() -> None:
    call = {
        "id": "m",
        "type": "mcp_tool_call",
        "server": "docs",
        "tool": "find",
        "arguments": {"query": "x"},
        "status": "completed",
        "result": {"content": [{"type": "text", "text": "found"}]},
    }
    assert feed(CodexEvents(), completed(**call)) == [
        ToolCall("m", "mcp_tool_call", "docs.find x"),
        ToolResult("m", "found"),
    ]


def test_a_plan_opens_no_tool_call_since_it_stays_open_for_the_whole_turn() -> None:
    assert feed(CodexEvents(), {"type": "item.started", "item": {"id": "t", "type": "todo_list", "items": []}}) == []


def test_what_the_sandbox_refused_is_denied() -> None:
    assert denied("ro_denied_b") == [Denied("command_execution", "touch made.txt; sleep 0.2; exit 1")]


def test_what_the_router_refused_is_told_on_stderr_only() -> None:
    assert [event.tool for event in denied("apply_patch_ro")] == ["file_change"]
    assert [event.tool for event in denied("tool_escalate")] == ["command_execution"]


def test_a_tool_that_does_not_exist_is_a_note() -> None:
    events, _ = replay("codex", "plan")
    assert Note("unsupported call: update_plan") in events
    assert denied("plan") == []


@pytest.mark.parametrize("name", ["toolfail_slow1", "tool_stderr", "writeout_ws"])
def test_a_command_that_fails_or_mentions_the_sandbox_otherwise_is_not_denied(name: str) -> None:
    assert denied(name) == []


@pytest.mark.parametrize(
    ("name", "kind", "attempts", "most"),
    [
        ("drop_mid_once", FailureKind.OVERLOADED, [1], 5),
        ("e401", FailureKind.LOGIN, [1, 2, 3, 4, 5], 5),
        ("e429_once", FailureKind.RATE_LIMIT, [1], 5),
        ("connrefused", FailureKind.OVERLOADED, [None] * 8, None),
    ],
)
def test_reconnecting_is_a_retry(name: str, kind: FailureKind, attempts: list[int | None], most: int | None) -> None:
    events, _ = replay("codex", name)
    retries = [event for event in events if isinstance(event, Retry)]
    assert [retry.attempt for retry in retries] == attempts
    assert [retry.most for retry in retries] == [most if number else None for number in attempts]
    assert {retry.kind for retry in retries} == {kind}
    assert not any("Reconnecting" in retry.reason for retry in retries)


def test_an_error_event_that_is_no_retry_is_an_error() -> None:
    events, _ = replay("codex", "insufficient_quota")
    assert Error("Quota exceeded. Check your plan and billing details.") in events


def test_warnings_in_items_are_notes() -> None:
    events, verdict = replay("codex", "unknown_config_key")
    assert len([event for event in events if isinstance(event, Note)]) == 2
    assert verdict.failure is None


def test_a_failed_turn_stays_failed_whatever_follows() -> None:
    parser = CodexEvents()
    feed(
        parser, completed(id="a", type="agent_message", text="Hi"), {"type": "turn.failed"}, {"type": "turn.completed"}
    )
    verdict = parser.finish(0, "")
    assert (verdict.text, verdict.failure is None) == ("Hi", False)


def test_usage_of_zeros_is_unknown() -> None:
    zeros = {"type": "turn.completed", "usage": {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}}
    assert Usage(cumulative=True) in feed(CodexEvents(), zeros)


def test_a_completed_turn_without_a_message_is_no_success() -> None:
    parser = CodexEvents()
    feed(parser, completed(id="a", type="agent_message", text=" \n"), {"type": "turn.completed", "usage": None})
    failure = parser.finish(0, "").failure
    assert failure is not None
    assert failure.reason == "finished without an answer"


def test_a_question_to_its_user_is_told_by_stderr_alone() -> None:
    """As 0.150.0 to 0.169.0 tell it: the question itself is nowhere."""
    line = b"ERROR codex_core::tools::router: error=request_user_input is unavailable in Default mode"
    told = "(a question that Codex did not pass on: request_user_input is unavailable in Default mode)"
    assert list(CodexEvents().feed_stderr(line)) == [Question(told)]


def test_subagents_are_tools_and_the_end_says_that_their_tokens_are_unknown() -> None:
    """As 0.150.0 to 0.171.0 tell of them."""
    spawn = {"id": "i1", "type": "collab_tool_call", "tool": "spawn_agent", "prompt": "Look.", "status": "in_progress"}
    done = {**spawn, "status": "completed", "receiver_thread_ids": ["t2"]}
    waits = {"id": "i2", "type": "collab_tool_call", "tool": "wait", "prompt": None, "status": "failed"}
    ends = {"type": "turn.completed", "usage": {"input_tokens": 33, "output_tokens": 21}}
    started = {"type": "item.started", "item": spawn}
    uncounted = Note("the tokens of its subagents are not counted, since Codex does not report them")
    assert feed(CodexEvents(), started, completed(**done), completed(**waits), ends) == [
        ToolCall("i1", "collab_tool_call", "spawn_agent Look."),
        ToolResult("i1", ""),
        ToolCall("i2", "collab_tool_call", "wait"),
        ToolResult("i2", "", failed=True),
        Usage(33, None, 21, cumulative=True),
        uncounted,
        Done(ok=True),
    ]
    assert uncounted not in feed(CodexEvents(), ends)
