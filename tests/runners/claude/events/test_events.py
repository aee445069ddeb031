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
    TextDelta,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsedSoFar,
    VendorSession,
)
from teamchat.runners.base import Verdict
from teamchat.runners.claude.events import ClaudeEvents
from tests.runners.captures import replay

RESULT = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "Hi"}


def feed(parser: ClaudeEvents, *events: object) -> list[AgentEvent]:
    return [found for event in events for found in parser.feed(json.dumps(event).encode())]


def assistant(*blocks: object, **more: object) -> dict[str, object]:
    return {"type": "assistant", "message": {"content": list(blocks)}, "parent_tool_use_id": None, **more}


def tool_use(tool: str, name: str, **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": tool, "name": name, "input": arguments}


def tool_result(tool: str, content: object, detail: object = None, *, is_error: bool = False) -> dict[str, object]:
    block = {"type": "tool_result", "tool_use_id": tool, "content": content, "is_error": is_error}
    return {"type": "user", "message": {"content": [block]}, "tool_use_result": detail}


def delta(text: str, parent: str | None = None) -> dict[str, object]:
    event = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": parent}


def denied(name: str) -> list[tuple[str, str]]:
    return [(event.tool, event.detail) for event in replay("claude", name)[0] if isinstance(event, Denied)]


def test_a_turn_with_a_tool_is_told_from_start_to_done() -> None:
    events, verdict = replay("claude", "recommended")
    assert events == [
        Started("claude-opus-4-8[1m]", "2.1.197"),
        VendorSession("3ca5c347-c65c-49e4-868e-d9c944a3f236"),
        UsedSoFar(Usage(11, 0, 1)),
        Thinking("hm"),
        TextDelta("Looking. "),
        Text("Looking. "),
        ToolCall("toolu_25b8bb21f7a843338625", "Bash", "ls"),
        UsedSoFar(Usage(11, 0, 7)),
        ToolResult("toolu_25b8bb21f7a843338625", "note.txt"),
        UsedSoFar(Usage(141, 30, 8)),
        TextDelta("Done "),
        TextDelta("[NEXT:max]\n"),
        Text("Done [NEXT:max]\n"),
        UsedSoFar(Usage(141, 30, 27)),
        Usage(141, 30, 27, 0.001245),
        Done(ok=True),
    ]
    assert verdict.text == "Done [NEXT:max]\n"


def test_text_of_a_broken_stream_is_replaced_by_the_final_text() -> None:
    events, verdict = replay("claude", "drop_mid_once")
    texts = [event for event in events if isinstance(event, TextDelta | Text)]
    assert texts == [TextDelta("one "), TextDelta("two "), TextDelta("three "), Text("un deux trois")]
    assert verdict.text == "un deux trois"


def test_usage_comes_from_the_models_when_the_sum_is_all_zero() -> None:
    events, _ = replay("claude", "drop_mid_once")
    assert Usage(11, 0, 7, 0.00023) in events


def test_input_tokens_include_what_was_cached() -> None:
    events, _ = replay("claude", "usage")
    assert Usage(12345 + 111 + 9000, 9000, 678, 0.08386875) in events


def test_usage_that_is_not_told_is_unknown() -> None:
    assert Usage() in feed(ClaudeEvents(), RESULT)


def test_a_turn_that_was_interrupted_or_killed_tells_what_its_requests_have_used() -> None:
    def usage(name: str) -> Usage | None:
        events, verdict = replay("claude", name)
        return next((event for event in reversed(events) if isinstance(event, Usage)), verdict.usage)

    assert usage("sig_stream_SIGINT_group") == Usage(11, 0, 1), "its result tells zeros"
    assert usage("sig_stream_SIGINT_pid_2.1.260") == Usage(11, 0, 7)
    assert usage("sig_stream_SIGINT_pid_2.1.330") == Usage(11, 0, 16, 0.00045499999999999995)
    assert usage("sig_stream_SIGKILL_pid") == Usage(11, 0, 1), "it has no result"
    assert usage("sig_tool_SIGKILL_pid") == Usage(11, 0, 7)
    assert usage("sig_tool_SIGINT_pid") == Usage(11, 0, 7, 0.00023)
    assert usage("drop_mid_forever") == Usage(11, 0, 1)
    assert usage("max_budget") == Usage(11, 0, 7, 0.00023)


@pytest.mark.parametrize("name", ["e401", "e429_forever", "connrefused", "noauth", "prompt_too_long", "credit_low"])
def test_a_turn_that_got_no_answer_has_used_nobody_knows_what(name: str) -> None:
    events, verdict = replay("claude", name)
    assert [event for event in events if isinstance(event, Usage)] == [Usage()]
    assert verdict.usage is None


def test_a_request_counts_once_and_those_of_subagents_count_too() -> None:
    def begins(name: str, given: int, parent: str | None = None) -> dict[str, object]:
        message = {"id": name, "usage": {"input_tokens": given, "cache_read_input_tokens": 5, "output_tokens": 1}}
        return {"type": "stream_event", "event": {"type": "message_start", "message": message}} | of(parent)

    def goes_on(output: object, parent: str | None = None) -> dict[str, object]:
        inner = {"type": "message_delta", "usage": {"output_tokens": output}}
        return {"type": "stream_event", "event": inner} | of(parent)

    def of(parent: str | None) -> dict[str, object]:
        return {"parent_tool_use_id": parent}

    parser = ClaudeEvents()
    events = feed(parser, begins("m1", 10), begins("m2", 100, "t1"), goes_on(20), goes_on(200, "t1"), goes_on("many"))
    events += feed(parser, begins("m1", 10), assistant(message := {"type": "text", "text": "Hi"}))
    unstreamed = {"id": "m3", "usage": {"input_tokens": 1000}, "content": [message]}
    events += feed(parser, {"type": "assistant", "message": unstreamed}, {"type": "assistant", "message": unstreamed})
    assert [event.usage for event in events if isinstance(event, UsedSoFar)] == [
        Usage(15, 5, 1),
        Usage(120, 10, 2),
        Usage(120, 10, 21),
        Usage(120, 10, 220),
        Usage(1120, 10, 220),
    ]
    assert parser.finish(-9, "").usage == Usage(1110 + 2 * 5, 2 * 5, 220)


def test_of_a_process_that_stays_a_turn_has_its_own_tokens() -> None:
    model = {"inputTokens": 11, "outputTokens": 7}
    result = RESULT | {"modelUsage": {"m": {"inputTokens": 110}}, "model_usage_since_last_result": {"m": model}}
    assert Usage(11, None, 7) in feed(ClaudeEvents(), result)


def test_retries_tell_their_kind_number_and_delay() -> None:
    events, _ = replay("claude", "fallback")
    assert [event for event in events if isinstance(event, Retry)] == [
        Retry("overloaded (529)", FailureKind.OVERLOADED, 1, 10, 0.6152798632536387),
        Retry("overloaded (529)", FailureKind.OVERLOADED, 2, 10, 1.1491053389528394),
    ]
    assert Note("Switched to Sonnet 5 due to high demand for Opus 4.8") in events


@pytest.mark.parametrize(("name", "kind"), [("e401", FailureKind.LOGIN), ("e429_once", FailureKind.RATE_LIMIT)])
def test_a_retry_has_the_kind_of_its_status(name: str, kind: FailureKind) -> None:
    events, _ = replay("claude", name)
    assert {event.kind for event in events if isinstance(event, Retry)} == {kind}


def test_a_turn_that_is_stopped_while_it_retries_failed_for_the_reason_of_the_retry() -> None:
    parser = ClaudeEvents()
    feed(parser, {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 401, "error": "x"})
    feed(parser, {"type": "result", "subtype": "error_during_execution", "terminal_reason": "aborted_streaming"})
    failure = parser.finish(0, "").failure
    assert failure is not None
    assert (failure.kind, failure.hint) == (FailureKind.LOGIN, "claude auth login")


def test_a_retry_that_got_an_answer_is_no_reason_any_more() -> None:
    parser = ClaudeEvents()
    feed(parser, {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 500, "error": "server_error"})
    feed(parser, delta("Hel"))
    failure = parser.finish(-9, "").failure
    assert failure is not None
    assert failure.reason == "was ended by SIGKILL before it had finished its answer"


def test_the_partial_text_of_a_repeated_request_is_kept_once() -> None:
    parser = ClaudeEvents()
    restart = {"type": "stream_event", "event": {"type": "message_start"}}
    feed(parser, assistant({"type": "text", "text": "First."}), delta("one "), restart, delta("one "), delta("two "))
    assert parser.finish(-9, "").text == "First.\n\none two "


def test_denied_actions_are_told_once_with_what_was_asked() -> None:
    assert denied("perm_acceptEdits") == [
        ("Bash", "echo hi > b.txt && python3 -c 'print(1)'"),
        ("Read", "/etc/hostname"),
        ("WebFetch", "http://127.0.0.1:9/x"),
    ]


def test_calls_of_tools_that_are_switched_off_count_as_denied() -> None:
    assert [tool for tool, _ in denied("tools_none")] == ["Write", "Bash", "Bash", "Read", "WebFetch"]
    assert [tool for tool, _ in denied("tools_read")] == ["Write", "Bash", "Bash", "Read", "WebFetch"]


@pytest.mark.parametrize("name", ["perm_dontAsk", "perm_plan", "perm_auto", "tool_denied_write", "allowed_bash_py"])
def test_every_refusal_is_seen_before_the_end_of_the_turn(name: str) -> None:
    events, _ = replay("claude", name)
    end = next(at for at, event in enumerate(events) if isinstance(event, Usage))
    refused = [event for event in events if isinstance(event, Denied)]
    assert refused
    assert [event for event in events[:end] if isinstance(event, Denied)] == refused


def test_a_denial_that_only_the_result_tells_is_counted() -> None:
    denial = {"tool_name": "Bash", "tool_use_id": "t9", "tool_input": {"command": "rm  -rf\n/"}}
    assert Denied("Bash", "rm -rf /") in feed(ClaudeEvents(), RESULT | {"permission_denials": [denial, denial]})


@pytest.mark.parametrize("version", ["2.1.197", "2.1.260", "2.1.330"])
def test_each_version_tells_what_it_refuses_to_one_that_may_only_read(version: str) -> None:
    tools = [tool for tool, _ in denied(f"read_{version}")]
    assert tools == ["Write", "Bash", "Read"]


@pytest.mark.parametrize("words", ["It is not for you.", "<tool_use_error>New words</tool_use_error>"])
def test_a_writer_that_was_not_offered_is_refused_whatever_the_words(words: str) -> None:
    init = {"type": "system", "subtype": "init", "tools": ["Read", "Grep"]}
    calls = assistant(tool_use("t1", "Write", file_path="a.py"), tool_use("t2", "Read", file_path="b.py"))
    results = [tool_result(tool, words, is_error=True) for tool in ("t1", "t2")]
    events = feed(ClaudeEvents(), init, calls, *results)
    assert [event for event in events if isinstance(event, Denied)] == [Denied("Write", "a.py")]


def test_a_refusal_has_an_event_of_its_own_in_newer_versions() -> None:
    refusal = {"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "tool_use_id": "t1"}
    call, result = assistant(tool_use("t1", "Bash", command="make")), tool_result("t1", "New words", is_error=True)
    events = feed(ClaudeEvents(), call, refusal, result)
    assert [event for event in events if isinstance(event, Denied)] == [Denied("Bash", "make")]
    assert Denied("Bash", "No.") in feed(ClaudeEvents(), refusal | {"message": "No."})


@pytest.mark.parametrize(
    ("meta", "is_denied"),
    [
        ({"permission_decision": {"decision": "reject", "source": "config"}}, True),
        ({"non_execution_kind": "permission-rule"}, True),
        ({"permission_decision": {"decision": "accept"}}, False),
        ({"permission_decision": {"decision": "cancelled"}, "non_execution_kind": "cancelled"}, False),
        ({"non_execution_kind": "interrupted"}, False),
        ({"id": "another", "non_execution_kind": "permission-rule"}, False),
        ("nothing", False),
    ],
)
def test_why_a_tool_did_not_run_is_read_from_its_meta(meta: object, *, is_denied: bool) -> None:
    parser = ClaudeEvents()
    feed(parser, assistant(tool_use("t1", "Bash", command="make")))
    entries = [{"id": "t1", **meta}] if isinstance(meta, dict) else meta
    events = feed(parser, tool_result("t1", "New words", is_error=True) | {"tool_result_meta": entries})
    assert [event for event in events if isinstance(event, Denied)] == [Denied("Bash", "make")] * is_denied


def test_a_command_that_fails_by_itself_is_not_denied() -> None:
    parser = ClaudeEvents()
    feed(parser, assistant(tool_use("t1", "Bash", command="cat /root/x")))
    events = feed(parser, tool_result("t1", "Permission denied: it was blocked", is_error=True))
    assert events == [ToolResult("t1", "Permission denied: it was blocked", failed=True)]


def test_changed_files_are_those_of_the_edit_tools_that_succeeded() -> None:
    events, _ = replay("claude", "perm_bypass_sandboxenv")
    assert [event.paths for event in events if isinstance(event, ToolResult) and event.paths] == [("w.txt",)]
    parser = ClaudeEvents()
    feed(
        parser,
        assistant(
            tool_use("a", "Edit", file_path="a.py"),
            tool_use("b", "NotebookEdit", notebook_path="b.ipynb"),
            tool_use("c", "Read", file_path="c.py"),
            tool_use("d", "Write", file_path="d.py"),
        ),
    )
    results = feed(
        parser,
        tool_result("a", "ok", {"filePath": "/w/a.py"}),
        tool_result("b", "ok", "a string"),
        tool_result("c", "ok", {"filePath": "/w/c.py"}),
        tool_result("d", "no", is_error=True),
    )
    assert [event.paths for event in results if isinstance(event, ToolResult)] == [("/w/a.py",), ("b.ipynb",), (), ()]


def test_a_schedule_that_is_kept_is_a_changed_file() -> None:
    parser = ClaudeEvents()
    feed(parser, assistant(*(tool_use(tool, "CronCreate", durable=tool != "b") for tool in "abc")))
    results = feed(parser, tool_result("a", "ok"), tool_result("b", "ok"), tool_result("c", "no", is_error=True))
    paths = [event.paths for event in results if isinstance(event, ToolResult)]
    assert paths == [(".claude/scheduled_tasks.json",), (), ()]


def test_subagents_work_is_shown_but_their_text_is_not_the_members() -> None:
    parser = ClaudeEvents()
    events = feed(
        parser,
        delta("inner", "t0"),
        assistant({"type": "text", "text": "inner"}, parent_tool_use_id="t0"),
        assistant(tool_use("t1", "Grep", pattern="x"), parent_tool_use_id="t0"),
    )
    assert events == [ToolCall("t1", "Grep", "x")]


def test_synthetic_text_is_an_error_and_no_answer() -> None:
    events, verdict = replay("claude", "e400")
    assert Error("API Error: 400 mock says 400") in events
    assert not any(isinstance(event, Text) for event in events)
    assert verdict.text == ""


@pytest.mark.parametrize(
    "result",
    [
        RESULT | {"is_error": True},
        RESULT | {"is_error": None},
        RESULT | {"is_error": 0},
        RESULT | {"result": None},
        RESULT | {"result": " \n"},
        RESULT | {"subtype": "error_during_execution"},
        RESULT | {"num_turns": 0},
        {"type": "result"},
    ],
)
def test_only_a_full_success_is_one(result: dict[str, object]) -> None:
    parser = ClaudeEvents()
    feed(parser, result)
    assert parser.finish(0, "").failure is not None


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"is_error": True, "result": "success"}, "failed and gave no reason"),
        ({"is_error": True, "result": None}, "failed and gave no reason"),
        ({"is_error": None, "result": None}, "failed and gave no reason"),
        ({"result": None}, "reported an error: its result has no answer"),
    ],
)
def test_success_is_no_reason_of_a_failure(result: dict[str, object], reason: str) -> None:
    parser = ClaudeEvents()
    feed(parser, RESULT | result)
    failure = parser.finish(1, "").failure
    assert failure is not None
    assert failure.reason == reason


def test_a_success_needs_exit_code_zero_too() -> None:
    parser = ClaudeEvents()
    feed(parser, RESULT)
    failure = parser.finish(3, "it broke\n").failure
    assert failure is not None
    assert failure.reason == "ended with exit code 3 after it had answered: it broke"


def test_a_later_error_takes_the_success_back() -> None:
    parser = ClaudeEvents()
    feed(parser, RESULT, RESULT | {"is_error": True, "result": "API Error: 500"})
    assert parser.finish(0, "").failure is not None


def test_lone_surrogates_become_replacement_characters() -> None:
    parser = ClaudeEvents()
    parser.feed(rb'{"type":"result","subtype":"success","is_error":false,"result":"a\ud83d b\ud83d\ude00"}')
    assert parser.finish(0, "").text == "a\ufffd b\U0001f600"


# --- a question to its user


DATABASE = {"question": "Which database?", "options": [{"label": "SQLite", "description": "a file"}]}
IN_WORDS = "Which database?\n- SQLite: a file"
DISABLED = (
    "<tool_use_error>Error: No such tool available: AskUserQuestion. AskUserQuestion is disabled for this session"
)
ASKS = assistant(tool_use("t1", "AskUserQuestion", questions=[DATABASE]))


@pytest.mark.parametrize(
    "refusal",
    [
        tool_result("t1", DISABLED, is_error=True),
        tool_result("t1", "Tool permission request failed: AbortError: Stream closed", is_error=True),
        None,
    ],
    ids=["not offered", "not answered", "no result"],
)
def test_a_question_that_nobody_answers_is_told_and_no_refusal(refusal: object) -> None:
    denial = {"tool_name": "AskUserQuestion", "tool_use_id": "t1", "tool_input": {"questions": [DATABASE]}}
    parser = ClaudeEvents()
    events = feed(parser, ASKS, *([refusal] if refusal else []), {**RESULT, "permission_denials": [denial]})
    assert [event for event in events if isinstance(event, Question | Denied)] == [Question(IN_WORDS)]
    assert parser.finish(0, "") == Verdict("Hi", usage=parser.used())


def test_a_question_alone_is_an_answer() -> None:
    parser = ClaudeEvents()
    feed(parser, ASKS, tool_result("t1", DISABLED, is_error=True), {**RESULT, "result": ""})
    assert parser.finish(0, "").failure is None


def test_a_question_that_was_answered_is_none_to_a_person() -> None:
    """As a hook of the user's may do."""
    events = feed(ClaudeEvents(), ASKS, tool_result("t1", "SQLite"), RESULT)
    assert not [event for event in events if isinstance(event, Question)]


def test_a_question_of_a_subagent_is_for_the_one_that_runs_it() -> None:
    asks = {**ASKS, "parent_tool_use_id": "t0"}
    events = feed(ClaudeEvents(), asks, tool_result("t1", DISABLED, is_error=True), RESULT)
    assert not [event for event in events if isinstance(event, Question)]


def test_of_two_results_the_last_one_counts() -> None:
    events = ClaudeEvents()
    feed(events, RESULT | {"result": "First."})
    feed(events, RESULT | {"result": "Second."})
    assert events.finish(0, "").text == "Second."


# --- the tokens of subagents


OWN = {"usage": {"input_tokens": 22, "output_tokens": 14}, "total_cost_usd": 0.5}
ALL = {"m": {"inputTokens": 20, "outputTokens": 14}, "n": {"inputTokens": 13, "outputTokens": 7}}
LIFE = {"m": {"inputTokens": 330, "outputTokens": 210}}


def request(name: str, parent: str | None = None) -> dict[str, object]:
    message = {"id": name, "usage": {"input_tokens": 11, "output_tokens": 7}, "content": []}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def used(*events: object) -> Usage:
    return [event for event in feed(ClaudeEvents(), *events) if isinstance(event, Usage)][-1]


@pytest.mark.parametrize("requests", [[], [request("m1"), request("m2", "t1"), request("m3")]])
def test_the_tokens_of_every_model_since_the_last_result_count(requests: list[dict[str, object]]) -> None:
    result = RESULT | OWN | {"modelUsage": LIFE, "model_usage_since_last_result": ALL}
    assert used(*requests, result) == Usage(33, None, 21, 0.5)


def test_an_older_version_tells_the_tokens_of_its_subagents_by_their_requests_alone() -> None:
    requests = [request("m1"), request("m2", "t1"), request("m3")]
    assert used(*requests, RESULT | OWN | {"modelUsage": LIFE}) == Usage(33, None, 21, 0.5)
    assert used(requests[0], RESULT | OWN | {"modelUsage": LIFE}) == Usage(22, None, 14, 0.5)


def test_two_results_of_a_turn_are_added_up() -> None:
    """2.1.330 tells two if a subagent ran in the background: the second has nothing of what the first told."""
    first, second = (RESULT | OWN | {"model_usage_since_last_result": models} for models in (ALL, {}))
    assert used(first, second) == Usage(33, None, 21, 0.5)
    more = RESULT | OWN | {"model_usage_since_last_result": {"m": {"inputTokens": 1, "outputTokens": 1}}}
    assert used(first, more) == Usage(34, None, 22, 0.5)


# --- the cost of a session that goes on


def since(**costs: float | None) -> dict[str, object]:
    """What 2.1.330 tells of each model since its last result."""
    told = {name: {"inputTokens": 11, "outputTokens": 7, "costUSD": cost} for name, cost in costs.items()}
    return {"modelUsage": LIFE, "model_usage_since_last_result": told}


def test_the_cost_of_a_turn_is_that_of_its_models_and_not_of_the_session() -> None:
    parser = ClaudeEvents()
    (told,) = [event for event in feed(parser, RESULT | OWN | since(m=0.125, n=0.25)) if isinstance(event, Usage)]
    assert told == Usage(22, None, 14, 0.375)
    assert parser.finish(0, "").own_cost
    assert used(RESULT | OWN | since(m=0.125), RESULT | OWN | since(m=0.25)).cost_usd == 0.375
    assert used(RESULT | OWN | since(m=0.125), RESULT | OWN | since()).cost_usd == 0.125
    assert used(RESULT | OWN | since(m=0.0)).cost_usd == 0.0


def test_an_older_version_tells_the_cost_of_its_process_alone() -> None:
    parser = ClaudeEvents()
    assert Usage(22, None, 14, 0.5) in feed(parser, RESULT | OWN)
    assert not parser.finish(0, "").own_cost


def test_what_the_session_has_used_before_is_no_usage_of_a_turn_that_failed() -> None:
    failed = RESULT | {"is_error": True, "result": "API Error: 400", "total_cost_usd": 0.5, "usage": {}}
    assert used(failed | since()) == Usage()
    budget = failed | {"subtype": "error_max_budget_usd", "errors": ["Reached maximum budget ($0.3)"]}
    assert used(budget | since(m=0.125)) == Usage(11, None, 7, 0.125)
    assert used(budget | {"modelUsage": LIFE}) == Usage(330, None, 210, 0.5), "2.1.260 counts from its start"


@pytest.mark.parametrize("odd", [None, "1", -1, True, 1e999])
def test_a_cost_that_cannot_be_read_is_not_left_out_of_the_sum(odd: object) -> None:
    models = {"m": {"costUSD": 0.25}, "n": {"costUSD": odd}}
    assert used(RESULT | OWN | {"model_usage_since_last_result": models}).cost_usd == 0.5


def test_what_is_shown_while_it_runs_agrees_with_the_receipt() -> None:
    requests = [request("m1"), request("m2", "t1"), request("m3")]
    result = RESULT | OWN | {"model_usage_since_last_result": ALL}
    events = feed(ClaudeEvents(), *requests, result)
    (*_, shown) = [event.usage for event in events if isinstance(event, UsedSoFar)]
    (told,) = [event for event in events if isinstance(event, Usage)]
    assert (shown.input_tokens, shown.output_tokens) == (told.input_tokens, told.output_tokens)
