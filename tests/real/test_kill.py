"""kill -9 of teamchat while an agent runs a shell tool: no process survives, nothing is lost, `resume` goes on."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply, ToolUse
from tests.real.world import MEMBERS, TIMEOUT_S, World, alive, kill, tree, wait_until

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
WAITS = "tail -f waits.txt"  # Claude Code 2.1.330 does not run a `sleep` that stands alone


def shell(vendor: Vendor, command: str) -> ToolUse:
    """The tool with which that CLI runs a shell command."""
    names = {
        "claude": ("Bash", "command"),
        "codex": ("exec_command", "cmd"),
        "gemini": ("run_shell_command", "command"),
    }
    tool, argument = names[vendor]
    return ToolUse(tool, {argument: command})


def busy(user: World, vendor: Vendor) -> str:
    """A member whose model says something and then runs a long shell command."""
    name = user.member(vendor, 'access = "edit"\nallow = ["tail"]')
    (user.cwd / "waits.txt").touch()
    user.server.script(vendor, [Reply("Let me wait.", tools=(shell(vendor, WAITS),)), Reply("Done waiting.")])
    return name


def commands(pids: set[int]) -> list[str]:
    """The command lines of these processes."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found.append(
                Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            )
    return found


def waiting(pids: set[int]) -> bool:
    """Whether the shell command is among these processes."""
    return WAITS in commands(pids)


@pytest.mark.core
@pytest.mark.parametrize("vendor", VENDORS)
def test_kill_9_leaves_no_process_and_loses_nothing(user: World, vendor: Vendor) -> None:
    name = busy(user, vendor)
    with user.start("send", "--trust", "Go") as process:
        seen: set[int] = set()
        wait_until(lambda: waiting(tree(process.pid)))
        time.sleep(0.5)  # whatever else the CLI starts beside its tool
        seen |= tree(process.pid)
        kill(process)
    wait_until(lambda: not any(alive(pid) for pid in seen))
    assert "Go" in user("log").out
    user.server.script(vendor, [Reply("Whole again.")])
    ran = user.json("resume")
    assert (ran.code, ran.result["text"]) == (0, "Whole again."), ran.err
    assert user.receipt(1)["status"] == "interrupted"
    assert "Let me wait." in str(user.receipt(1)["partial"]) + user("show", "1").out
    assert [event["attempt"] for event in ran.events if event["type"] == "turn_started"] == [2]
    assert [event["from"] for event in user("log", "--json").events] == ["kailai", name]


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_turn_cleanly(user: World, vendor: Vendor, number: signal.Signals, code: int) -> None:
    name = busy(user, vendor)
    with user.start("send", "--trust", "Go") as process:
        wait_until(lambda: waiting(tree(process.pid)))
        seen = tree(process.pid)
        process.send_signal(number)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code, err
    assert [pid for pid in seen if alive(pid)] == []
    assert f"{name} was interrupted" in err.decode()
    assert b"teamchat resume" in err


SIDE_BY_SIDE = """
[[members]]
name = "kailai"
type = "human"
"""
TOOL = """#!/bin/sh
(setsid sleep 287 > /dev/null 2>&1 &)
exec sleep 286
"""
ONE = """
[[members]]
name = "{name}"
agent = "{vendor}"
access = "edit"
allow = ["./tool.sh"]
cwd = "{vendor}"
model = "{model}"
"""


def test_kill_9_over_three_agents_with_daemons_leaves_no_process(user: World) -> None:
    """Each runs a shell tool that has left a daemon of its own behind."""
    models = {"claude": "claude-opus-4-8", "codex": "gpt-5.5", "gemini": "gemini-2.5-flash"}
    user.team(SIDE_BY_SIDE + "".join(ONE.format(name=MEMBERS[v], vendor=v, model=models[v]) for v in VENDORS))
    for vendor in VENDORS:
        folder = user.cwd / vendor
        folder.mkdir()
        (folder / "tool.sh").write_text(TOOL)
        (folder / "tool.sh").chmod(0o755)
        user.server.script(vendor, [Reply("Let me wait.", tools=(shell(vendor, "./tool.sh"),)), Reply("Done.")])
    with user.start("send", "--trust", "[NEXT: max + sarah + carol] Go") as process:
        wait_until(lambda: [commands(tree(process.pid)).count(f"sleep {n}") for n in (286, 287)] == [3, 3])
        time.sleep(0.5)  # whatever else the CLIs start beside their tools
        seen = tree(process.pid)
        kill(process)
    wait_until(lambda: not any(alive(pid) for pid in seen))
    for vendor in VENDORS:
        user.server.script(vendor, [Reply(f"{vendor} again.")])
    ran = user.json("resume")
    assert ran.code == 0, ran.err
    assert [event["from"] for event in user("log", "--json").events] == ["kailai", *MEMBERS.values()]
    assert [event["attempt"] for event in ran.events if event["type"] == "turn_started"] == [2, 2, 2]
