"""kill -9 of teamchat while an agent runs a shell tool: no process survives, nothing is lost, `resume` goes on."""

from __future__ import annotations

import signal
import time

import pytest

from teamchat.core.scripted.protocol import Vendor
from teamchat.core.scripted.reply import Reply, ToolUse
from tests.real.world import World, alive, kill, tree, wait_until

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
SLEEP = "sleep 286"


def busy(user: World, vendor: Vendor) -> str:
    """A member whose model says something and then runs a long shell command."""
    tool: dict[Vendor, ToolUse] = {
        "claude": ToolUse("Bash", {"command": SLEEP}),
        "codex": ToolUse("exec_command", {"cmd": SLEEP}),
        "gemini": ToolUse("run_shell_command", {"command": SLEEP}),
    }
    name = user.member(vendor, 'access = "edit"\nallow = ["sleep"]')
    user.server.script(vendor, [Reply("Let me wait.", tools=(tool[vendor],)), Reply("Done waiting.")])
    return name


def sleeping(pids: set[int]) -> bool:
    """Whether the shell command is among these processes."""
    for pid in pids:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
                if file.read().replace(b"\0", b" ").strip() == SLEEP.encode():
                    return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("vendor", VENDORS)
def test_kill_9_leaves_no_process_and_loses_nothing(user: World, vendor: Vendor) -> None:
    name = busy(user, vendor)
    with user.start("send", "--trust", "Go") as process:
        seen: set[int] = set()
        wait_until(lambda: sleeping(tree(process.pid)), 40)
        time.sleep(0.5)  # whatever else the CLI starts beside its tool
        seen |= tree(process.pid)
        kill(process)
    time.sleep(2.0)
    assert [pid for pid in seen if alive(pid)] == []
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
        wait_until(lambda: sleeping(tree(process.pid)), 40)
        seen = tree(process.pid)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert process.returncode == code, err
    assert [pid for pid in seen if alive(pid)] == []
    assert f"{name} was interrupted" in err.decode()
    assert b"teamchat resume" in err
