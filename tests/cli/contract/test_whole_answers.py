"""Which texts of an agent are its reply, and which tokens its receipt counts, from `teamchat send` to the store."""

from __future__ import annotations

import pytest

from tests.cli.contract.vendor_output import Event, lines, raw
from tests.cli.helpers import actors, objects, said
from tests.cli.test_terminal import at_terminal
from tests.program import Result, run_here

pytestmark = pytest.mark.usefixtures("world")
INIT: Event = {"type": "system", "subtype": "init", "model": "m", "session_id": "v-1", "claude_code_version": "2.1.330"}
BACK = "Agent execution blocked: Run the tests first."
members = pytest.mark.parametrize("member", [{}, {"memory": "live"}], ids=["fresh", "live"])


def message(name: str, *blocks: Event, parent: str | None = None) -> tuple[Event, ...]:
    """A message of Claude, which it streams and tells block by block."""
    of = {"parent_tool_use_id": parent}
    usage = {"input_tokens": 11, "output_tokens": 7}
    begins = {"type": "message_start", "message": {"id": name, "usage": usage}}
    told: list[Event] = [{"type": "stream_event", "event": begins, **of}]
    for block in blocks:
        if "text" in block and parent is None:
            delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": block["text"]}}
            told.append({"type": "stream_event", "event": delta, **of})
        told.append({"type": "assistant", "message": {"id": name, "usage": usage, "content": [block]}, **of})
    return tuple(told)


def text(words: str) -> Event:
    return {"type": "text", "text": words}


def result(words: str, **more: object) -> Event:
    return {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": words, **more}


THINKS: Event = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def team(protocol: str, *events: Event, head: str = "", **member: str) -> None:
    """Max, who prints these events, and Sarah, who says that she was called."""
    steps = {"max": raw(lines(events)), "sarah": ["claude-like", "I was called."]}
    actors(steps, like=protocol, members={"max": member}, team=head)


def outcome(ran: Result) -> dict[str, object]:
    """How the first turn ended."""
    return next(event for event in objects(ran) if event["type"] == "turn_finished")


@members
def test_every_block_of_claudes_last_message_is_stored_and_shown_once(member: dict[str, str]) -> None:
    answer = message("m2", text("The first half."), THINKS, text("The second "), text("half."))
    team("claude", INIT, *message("m1", text("I look.")), *answer, result("half."), **member)
    assert run_here("send", "--to", "max", "--quiet", "Hi").out == "The first half.\n\nThe second half.\n"
    assert ("max", "The first half.\n\nThe second half.") in said()


def test_a_terminal_shows_an_answer_in_several_blocks_once() -> None:
    answer = message("m1", text("The first half."), THINKS, text("The second half."))
    team("claude", INIT, *answer, result("The second half."))
    shown = at_terminal("send", "--no-input", "--to", "max", "Hi").out
    assert (shown.count("The first half."), shown.count("The second half.")) == (1, 1)
    assert "replaced" not in shown


@members
def test_a_marker_in_any_block_of_the_last_message_calls(member: dict[str, str]) -> None:
    answer = message("m1", text("Look at it. [NEXT: sarah]"), THINKS, text("That is all."))
    team("claude", INIT, *answer, result("That is all."), **member)
    ran = run_here("send", "--to", "max", "Hi")
    assert (ran.code, said()[-1]) == (0, ("sarah", "I was called."))
    assert "earlier message" not in ran.err


def test_a_marker_in_a_message_before_the_last_calls_nobody_and_is_told() -> None:
    looks = message("m1", text("[NEXT: sarah] I look."), {"type": "tool_use", "id": "t1", "name": "Read", "input": {}})
    team("claude", INIT, *looks, *message("m2", text("One. "), text("Two.")), result("Two."))
    ran = run_here("send", "--to", "max", "Hi")
    assert (ran.code, said()[-1]) == (0, ("max", "One. Two."))
    assert "max calls sarah in an earlier message of its turn" in ran.err


def test_a_verdict_stands_at_the_end_of_the_whole_answer() -> None:
    team("claude", INIT, *message("m1", text("Checked. PA"), text("SS"), THINKS), result(""))
    assert run_here("send", "--to", "max", "--verdict", "PASS,FAIL", "Hi").code == 0


@members
def test_the_tokens_of_claudes_subagents_count_for_its_receipt_and_the_guard(member: dict[str, str]) -> None:
    done = "Done. [NEXT: sarah]"
    told = (*message("m1", text("I ask.")), *message("m2", text("Seen."), parent="t1"), *message("m3", text(done)))
    usage = {"usage": {"input_tokens": 22, "output_tokens": 14}, "total_cost_usd": 0.5}
    models = {"m": {"inputTokens": 33, "outputTokens": 21}}
    for more in ({}, {"model_usage_since_last_result": models}):
        team("claude", INIT, *told, result(done, **usage, **more), head="[team.limits]\ntokens = 50", **member)
        ran = run_here("send", "--new", "--to", "max", "--json", "Hi")
        used = {"input_tokens": 33, "cached_tokens": None, "output_tokens": 21, "cost_usd": 0.5}
        assert (ran.code, outcome(ran)["usage"]) == (8, used)


def gemini(*events: Event) -> None:
    team(
        "gemini", {"type": "init", "session_id": "v-1", "model": "m"}, *events, {"type": "result", "status": "success"}
    )


def speaks(words: str) -> Event:
    return {"type": "message", "role": "assistant", "content": words, "delta": True}


WARNING: Event = {"type": "error", "severity": "warning", "message": BACK}


def test_a_hook_that_sends_gemini_back_is_a_note_and_what_comes_after_it_the_reply() -> None:
    gemini(speaks("A draft."), WARNING, speaks("The complete "), speaks("answer."))
    ran = run_here("send", "--to", "max", "--json", "Hi")
    assert (ran.code, said()[-1]) == (0, ("max", "The complete answer."))
    assert [event["text"] for event in objects(ran) if event["type"] == "note"] == [BACK]


def test_a_warning_of_gemini_after_which_nothing_comes_is_a_failure_with_its_words() -> None:
    gemini(speaks("A draft."), WARNING)
    ran = run_here("send", "--to", "max", "Hi")
    assert ran.code == 1
    assert f"reported an error: {BACK}" in ran.err
    assert said() == [("kailai", "Hi")]
