"""Routing over the real CLIs: failover, a group, a person asked across two commands."""

from __future__ import annotations

from threading import Barrier

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply, Request, ToolUse
from tests.real.model.server import Script
from tests.real.world import MEMBERS, PANEL, TIMEOUT_S, World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")


def panel(**extra: str) -> str:
    """The panel, with further lines for some members."""
    text = PANEL
    for name, lines in extra.items():
        text = text.replace(f'name = "{name}"\n', f'name = "{name}"\n{lines}\n')
    return text


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_vendor_that_answers_429_is_replaced_within_seconds(user: World, vendor: Vendor) -> None:
    """From the first 429 to the next member's first byte, where the CLI's own retries take minutes."""
    name = MEMBERS[vendor]
    stand_in = "sarah" if vendor != "codex" else "max"
    user.team(panel(**{name: f'fallback = ["{stand_in}"]'}))
    user.server.script(vendor, [Reply(status=429, message="rate limit exceeded")])
    ran = user.json("send", "--to", name, "Hi")
    assert ran.code == 0, ran.err
    (reply,) = (event for event in ran.events if event["type"] == "message" and event["kind"] == "ai")
    assert (reply["from"], reply["stands_for"]) == (stand_in, name)
    first = next(request.at for request in user.server.requests if request.vendor == vendor)
    answered = next(request.at for request in user.server.requests if request.vendor not in (vendor, None))
    assert answered - first < 30  # less than five where nothing else runs
    asked = len(user.server.turns(vendor))
    again = user.json("send", "--to", name, "And now?")  # the cool-down is remembered
    assert again.code == 0, again.err
    assert len(user.server.turns(vendor)) == asked
    assert f"{stand_in} (for {name})" in user.prompt("codex" if stand_in == "sarah" else "claude")


def test_a_missing_login_is_replaced(user: World) -> None:
    user.team(panel(max='fallback = ["carol"]'))
    user.env = {name: value for name, value in user.env.items() if name != "ANTHROPIC_API_KEY"}
    ran = user.json("send", "--to", "max", "Hi")
    assert ran.code == 0, ran.err
    assert [event["from"] for event in ran.events if event["type"] == "message"] == ["kailai", "carol"]


def test_a_rate_limit_that_passes_is_waited_for(user: World) -> None:
    user.member("codex", "retries = 2")
    user.server.script("codex", [*[Reply(status=429, message="slow down")] * 2, Reply("There.")])
    ran = user.json("send", "Hi")
    assert ran.code == 0, ran.result
    assert ran.result["text"] == "There."
    attempts = [(event["turn"], event["attempt"]) for event in ran.events if event["type"] == "turn_started"]
    assert attempts == [(1, 1), (2, 2), (3, 3)]  # each with a receipt of its own


def test_a_group_of_all_three_speaks_at_the_same_time_and_in_order(user: World) -> None:
    """No model answers before all three were asked."""
    user.team()
    all_asked = Barrier(3)

    def answers(vendor: Vendor, delay: float) -> Script:
        def answer(_request: Request) -> Reply:
            all_asked.wait(TIMEOUT_S)
            return Reply((f"{vendor} ", "says hi"), delay_s=delay)

        return answer

    for vendor, delay in zip(VENDORS, (1.0, 0.1, 0.1), strict=True):
        user.server.script(vendor, answers(vendor, delay))
    ran = user.json("send", "[NEXT: max + sarah + carol] Hi")
    assert ran.code == 0, ran.err
    said = [event["text"] for event in ran.events if event["type"] == "message"]
    assert said[1:] == ["claude says hi", "codex says hi", "gemini says hi"]
    for vendor in VENDORS:
        assert user.prompt(vendor).endswith("Hi")  # each sees the same message, and none of the others


def test_a_person_is_asked_in_one_command_and_answers_in_another(user: World) -> None:
    user.team()
    user.server.script("claude", [Reply("Which one?\n[NEXT: kailai, sarah]"), Reply("Good.")])
    user.server.script("codex", [Reply("Building it.")])
    asked = user.json("send", "[NEXT:max] Go")
    assert (asked.code, asked.result["waiting"]) == (9, "kailai"), asked.err
    answered = user.json("send", "The first one")
    assert answered.code == 0, answered.err
    assert [event["member"] for event in answered.events if event["type"] == "turn_started"] == ["max", "sarah"]


ASKED = {
    "questions": [
        {
            "question": "Which database?",
            "header": "Database",
            "multiSelect": False,
            "options": [{"label": "SQLite", "description": "a file"}, {"label": "Postgres", "description": "a server"}],
        }
    ]
}
TOOLS: dict[Vendor, str] = {"claude": "AskUserQuestion", "codex": "request_user_input", "gemini": "ask_user"}


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("access", ["read", "edit"])
def test_what_an_agent_asks_by_a_tool_of_its_cli_is_asked_and_answered(
    user: World, vendor: Vendor, access: str
) -> None:
    name = user.member(vendor, f'access = "{access}"')
    replies = [Reply(tools=(ToolUse(TOOLS[vendor], ASKED),)), Reply("I need to know."), Reply("SQLite it is.")]
    user.server.script(vendor, replies)
    asked = user.json("send", "--trust", "Go")
    assert (asked.code, asked.result["waiting"]) == (9, "kailai"), asked.err
    question = "(a question that Codex did not pass on:" if vendor == "codex" else "Which database?\n- SQLite: a file\n"
    assert asked.result["text"].startswith(f"I need to know.\n\n{question}")
    answered = user.json("send", "SQLite")
    assert (answered.code, answered.result["text"]) == (0, "SQLite it is."), answered.err
    assert [event["member"] for event in answered.events if event["type"] == "turn_started"] == [name]
    assert question in user.prompt(vendor) or access == "edit"  # which goes on with the session where it asked


def test_a_ping_pong_pair_stops_at_its_guard_and_resumes(user: World) -> None:
    user.team(panel().replace('name = "panel"', 'name = "panel"\n\n[team.limits]\nturns = 2\nsimilarity = 0'))
    user.server.script("claude", lambda _request: Reply("Ping.\n[NEXT: sarah]"))
    user.server.script("codex", lambda _request: Reply("Pong.\n[NEXT: max]"))
    ran = user.json("send", "--trust", "[NEXT:max] Play")
    assert (ran.code, ran.result["turns"], ran.result["paused"]) == (7, 2, "turns"), ran.err
    assert ran.result["hint"] == "teamchat resume"
    more = user.json("resume")
    assert (more.code, more.result["turns"]) == (7, 2), more.err
    said = [event["from"] for event in user("log", "--json").events]
    assert said == ["kailai", "max", "sarah", "max", "sarah"]
