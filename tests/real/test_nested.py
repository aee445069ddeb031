"""A real CLI that runs teamchat by its own shell: its agents run it no further."""

from __future__ import annotations

import shlex

import pytest

from teamchat.runners.base import Vendor
from tests.forks import RUN
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.server import tool_results
from tests.real.world import World

pytestmark = pytest.mark.real
RUNS = shlex.join(RUN)
DEEPER = "send --new Deeper"
ANSWERS = "send --session other yes"
ACCESS: dict[Vendor, str] = {
    "claude": f'access = "edit"\nallow = ["{RUNS} send"]',  # it refuses `full` to root
    "codex": 'access = "full"',  # the sandbox of its `edit` lets nothing write in the state folder
    "gemini": f'access = "edit"\nallow = ["{RUNS} send"]',
}


def in_shell(vendor: Vendor, path: str, words: str) -> ToolUse:
    """A call of the CLI's shell tool that runs teamchat. Codex has a login shell, which has a PATH of its own."""
    command = f"{RUNS} {words}"
    if vendor == "codex":
        return ToolUse("exec_command", {"cmd": f"PATH={shlex.quote(path)} {command}", "yield_time_ms": 30_000})
    return ToolUse("Bash" if vendor == "claude" else "run_shell_command", {"command": command})


@pytest.mark.parametrize("vendor", ACCESS)
def test_the_teamchat_of_a_real_cli_runs_turns_and_that_of_its_agents_none(user: World, vendor: Vendor) -> None:
    user.member(vendor, ACCESS[vendor])
    deeper = Reply(tools=(in_shell(vendor, user.env["PATH"], DEEPER),))
    user.server.script(vendor, [deeper, deeper, Reply("Inner."), Reply("Outer.")])
    ran = user.json("send", "--trust", "Go")
    assert ran.code == 0, ran.err
    told = [result for request in user.server.turns(vendor) for result in tool_results(request)]
    assert ran.result["text"] == "Outer.", told
    assert any("no turn may begin here, inside of turn 1 of s1" in str(result) for result in told), told
    (child,) = user.receipt(1)["outcome"]["children"]
    assert (child["session"], child["turns"]) == ("s2", 1)
    assert [session["caller"] and session["caller"]["turn"] for session in user("sessions", "--json").events] == [
        1,
        None,
    ]


@pytest.mark.parametrize("vendor", ACCESS)
def test_the_teamchat_of_a_real_cli_answers_no_question_that_a_person_is_asked(user: World, vendor: Vendor) -> None:
    user.member(vendor, ACCESS[vendor])
    asks, answers = Reply("[NEXT: kailai] Shall I?"), Reply(tools=(in_shell(vendor, user.env["PATH"], ANSWERS),))
    user.server.script(vendor, [asks, answers, Reply("Outer.")])
    assert user.json("send", "--trust", "--new", "--session", "other", "Go").code == 9
    ran = user.json("send", "--new", "Answer it")
    assert ran.code == 0, ran.err
    told = [result for request in user.server.turns(vendor) for result in tool_results(request)]
    assert any("session other was not begun in turn 1 of s2" in str(result) for result in told), told
    assert [one["kind"] for one in user("log", "--session", "other", "--json").events] == ["human", "ai"]
