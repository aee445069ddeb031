"""No output makes a parser raise, and none but a full success is judged to be one."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from teamchat.runners.agent_events import AgentEvent, ToolResult
from teamchat.runners.base import Verdict
from teamchat.runners.failures import is_blank
from tests.core.routing.marker_texts import grows_linearly
from tests.runners.captures import RUNNERS, Cli, captures, lines, play
from tests.trials import trials

CLIS: tuple[Cli, ...] = ("claude", "codex", "gemini", "opencode")
SUCCESSES: list[tuple[Cli, str]] = [
    (cli, name) for cli in CLIS for name in ("recommended", "markers", "unicode", "tool_default")
]
TERMINAL = {
    "claude": b'{"type":"result"',
    "codex": b'{"type":"turn.completed"',
    "gemini": b'{"type":"result"',
    "opencode": b'{"type":"step_finish"',
}

# the words of the three protocols, so that random objects come near to real events
KEYS = """
    type subtype is_error result num_turns errors status error message content role delta text thinking event item id
    name input tool_use_id tool_use_result permission_denials tool_name tool_input usage modelUsage total_cost_usd stats
    total_tokens input_tokens output_tokens cached severity parameters file_path tool_id output command changes path
    aggregated_output exit_code arguments session_id thread_id model attempt error_status terminal_reason
"""
WORDS = """
    system init api_retry stream_event content_block_delta text_delta assistant user result success tool_use tool_result
    text thinking thread.started turn.started turn.completed turn.failed item.started item.completed agent_message
    command_execution file_change web_search mcp_tool_call reasoning error message warning failed completed declined
    Write write_file Bash policy_violation message_start aborted_tools
"""
KEY, WORD = st.sampled_from(KEYS.split()), st.sampled_from(WORDS.split())
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORD | st.text()
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEY, inner, max_size=6), max_leaves=20
)
EVENTS = st.dictionaries(KEY, JSON, max_size=8).flatmap(
    lambda event: WORD.map(lambda kind: json.dumps({**event, "type": kind}).encode())
)
LINES = st.lists(EVENTS | JSON.map(lambda value: json.dumps(value).encode()) | st.binary(), max_size=8)


def assert_sound(events: list[AgentEvent], verdict: Verdict) -> None:
    """Everything can be stored as JSON in UTF-8, and a success has text and a failure words."""
    for event in events:
        json.dumps(to_builtins(event), ensure_ascii=False, allow_nan=False).encode()
    verdict.text.encode()
    if verdict.failure is None:
        assert not is_blank(verdict.text)
    else:
        assert verdict.failure.reason.strip()


def may_succeed(cli: Cli, stdout: list[bytes]) -> bool:
    """Whether any line is the terminal success event of this CLI."""
    for line in stdout:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        match event:
            case {"type": "result", "subtype": "success", "is_error": False} if cli == "claude":
                return True
            case {"type": "turn.completed"} if cli == "codex":
                return True
            case {"type": "result", "status": "success"} if cli == "gemini":
                return True
            case {"type": "step_finish", "part": {"reason": "stop"}} if cli == "opencode":
                return True
    return False


@pytest.mark.parametrize("cli", CLIS)
@given(stdout=LINES, stderr=st.lists(st.binary(), max_size=3), code=st.integers(-70, 300))
def test_any_output_is_survived_and_none_is_a_success_without_the_clis_own_word(
    cli: Cli, stdout: list[bytes], stderr: list[bytes], code: int
) -> None:
    events, verdict = play(RUNNERS[cli].parser(), stdout, stderr, code)
    assert_sound(events, verdict)
    if code != 0 or not may_succeed(cli, stdout):
        assert verdict.failure is not None


@pytest.mark.parametrize(("cli", "name"), SUCCESSES)
@settings(max_examples=trials(10))
@given(data=st.data())
def test_a_real_stream_that_is_cut_is_no_success(cli: Cli, name: str, data: st.DataObject) -> None:
    whole = captures(cli)[name].stdout
    end = whole.rindex(TERMINAL[cli]) + len(TERMINAL[cli])
    cut = data.draw(st.integers(0, end))
    events, verdict = play(RUNNERS[cli].parser(), lines(whole[:cut]), [], 0)
    assert_sound(events, verdict)
    assert verdict.failure is not None


@pytest.mark.parametrize(("cli", "name"), SUCCESSES)
@pytest.mark.parametrize("code", [1, 2, 101, 143, 173, -2, -9, -15])
def test_a_real_success_with_another_exit_code_is_none(cli: Cli, name: str, code: int) -> None:
    _, verdict = play(RUNNERS[cli].parser(), lines(captures(cli)[name].stdout), [], code)
    assert verdict.failure is not None


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"type":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"type":"result","num_turns":' + b"9" * 5000 + b"}",
        b'{"type":"tool_use","tool_id":"t","tool_name":"n","parameters":' + b'{"a":' * 800 + b"1" + b"}" * 801,
        b"\xef\xbb\xbf{}",
        b"null",
        b'"text"',
        b"\x00",
    ],
)
def test_hostile_lines_are_survived(cli: Cli, line: bytes) -> None:
    assert_sound(*play(RUNNERS[cli].parser(), [line], [line], 0))


@pytest.mark.parametrize("cli", CLIS)
def test_a_flood_of_junk_leaves_few_notes(cli: Cli) -> None:
    parser = RUNNERS[cli].parser()
    assert len([event for _ in range(10_000) for event in parser.feed(b"x" * 10_000)]) == 20


@pytest.mark.parametrize("cli", CLIS)
def test_a_megabyte_in_one_event_is_one_event(cli: Cli) -> None:
    text = "ab c" * 250_000
    line = {
        "claude": {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}},
        "codex": {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": text}},
        "gemini": {"type": "message", "role": "assistant", "content": text},
        "opencode": {"type": "text", "part": {"messageID": "m", "text": text}},
    }[cli]
    events = list(RUNNERS[cli].parser().feed(json.dumps(line).encode()))
    assert [getattr(event, "text", "") for event in events] == [text]


@pytest.mark.parametrize("cli", CLIS)
def test_what_a_long_stream_costs_grows_with_it_and_no_faster(cli: Cli) -> None:
    whole = captures(cli)["tool_default"].stdout

    def follow(many: str) -> None:
        play(RUNNERS[cli].parser(), lines(whole * (len(many) // 200)), [], 0)

    assert grows_linearly(follow, " ")


@pytest.mark.parametrize("cli", ["claude", "gemini"])
def test_a_call_that_ends_many_times_names_its_file_once(cli: Literal["claude", "gemini"]) -> None:
    path = "x" * 1000
    call, end = {
        "claude": (
            {"type": "assistant", "message": {"content": [edit("id", "name", "input", "Write", path)]}},
            {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1"}]}},
        ),
        "gemini": (
            edit("tool_id", "tool_name", "parameters", "write_file", path),
            {"type": "tool_result", "tool_id": "1", "status": "success"},
        ),
    }[cli]
    stdout = [json.dumps(event).encode() for event in (call, *[end] * 1000)]
    events, _ = play(RUNNERS[cli].parser(), stdout, [], 0)
    assert [event.paths for event in events if isinstance(event, ToolResult)] == [(path,), *[()] * 999]


def edit(call: str, name: str, arguments: str, tool: str, path: str) -> dict[str, object]:
    return {"type": "tool_use", call: "1", name: tool, arguments: {"file_path": path}}
