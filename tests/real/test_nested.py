"""A real CLI that runs teamchat by its own shell: its agents run it no further."""

from __future__ import annotations

import shlex

import pytest

from teamchat.core.doctor.scripted.server import tool_results
from teamchat.runners.base import Vendor
from teamchat.runners.scripted import Reply, ToolUse
from tests.forks import RUN
from tests.real.world import World

pytestmark = pytest.mark.real
RUNS = shlex.join(RUN)
COMMAND = f"{RUNS} send --new Deeper"
ACCESS: dict[Vendor, str] = {
    "claude": f'access = "edit"\nallow = ["{RUNS} send"]',  # it refuses `full` to root
    "codex": 'access = "full"',  # the sandbox of its `edit` lets nothing write in the state folder
    "gemini": f'access = "edit"\nallow = ["{RUNS} send"]',
}


def in_shell(vendor: Vendor, path: str) -> ToolUse:
    """A call of the CLI's shell tool that runs the command. Codex has a login shell, which has a PATH of its own."""
    if vendor == "codex":
        return ToolUse("exec_command", {"cmd": f"PATH={shlex.quote(path)} {COMMAND}", "yield_time_ms": 30_000})
    return ToolUse("Bash" if vendor == "claude" else "run_shell_command", {"command": COMMAND})


@pytest.mark.parametrize("vendor", ACCESS)
def test_the_teamchat_of_a_real_cli_runs_turns_and_that_of_its_agents_none(user: World, vendor: Vendor) -> None:
    user.member(vendor, ACCESS[vendor])
    deeper = Reply(tools=(in_shell(vendor, user.env["PATH"]),))
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
