"""A member that is kept running, on the real program: what is left when teamchat is killed over it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.helpers import objects, said
from tests.program import ROOT, cli, ended, fake, run_here, start
from tests.runners.processes import eventually, kill_with_guardians

FAKE = ROOT / "tests" / "fakes" / "live.py"
TEAM = f"""
[team]
lead = "max"
[[members]]
name = "kailai"
type = "human"
[[members]]
name = "max"
agent = "kept"
memory = "live"
[[members]]
name = "sarah"
agent = "shell"
[agents.shell]
command = ["sh", "-c", "cat > prompt; echo '[NEXT:max] hang'"]
[agents.kept]
command = {json.dumps(fake(FAKE))}
like = "claude"
"""


def kept_running_here() -> list[int]:
    """The fake agents of this working folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if fake(FAKE)[-1].encode() in words and (entry / "cwd").readlink() == Path.cwd():
                found.append(int(entry.name))
    return found


def outputs(world: Path) -> Iterator[str]:
    """What the turns that run have written."""
    with contextlib.suppress(FileNotFoundError):  # one has just ended, and the next look is soon
        for file in (world / "state").rglob("turns/*/stdout"):
            yield file.read_text()


def test_kill_9_of_teamchat_ends_it_keeps_what_it_said_and_resume_goes_on(world: Path) -> None:
    """Its process has said "early" in a turn before: that is not said again."""
    Path("teamchat.toml").write_text(TEAM)
    assert run_here("trust").code == 0
    process = start("send", "[NEXT:max] [NEXT:sarah] say early")
    assert eventually(lambda: any("half" in text for text in outputs(world)))
    (agent,) = kept_running_here()
    process.kill()
    ended(process)
    assert eventually(lambda: agent not in kept_running_here()), "it outlived teamchat"
    ran = run_here("resume", "--skip")
    assert ran.code == 0, ran.err
    shown = run_here("show", "3").out
    assert "max (kept) · interrupted" in shown
    assert "| half" in shown
    assert "early" not in shown
    assert list((world / "state").rglob("turns/*")) == []
    assert cli("send", "say whole").code == 0
    assert said()[-1] == ("max", "whole")
    assert "a fresh session: its turn 3 was cut short" in run_here("show", "4").out


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("memory", ["fresh", "resume", "live"])
def test_a_session_that_goes_on_costs_what_its_turns_cost(memory: str) -> None:
    """Claude 2.1.330 tells the cost of the whole session with each turn: three turns of $0.25 are no $1.50."""
    limits = "[team.limits]\ncost_usd = 1.0\n[[members]]"
    sarah, agent = TEAM.index('[[members]]\nname = "sarah"'), TEAM.index("[agents.kept]")
    team = (TEAM[:sarah] + TEAM[agent:]).replace('"live"', f'"{memory}"').replace("[[members]]", limits, 1)
    Path("teamchat.toml").write_text(team)
    assert run_here("trust").code == 0
    for in_all in (0.25, 0.5, 0.75):
        assert run_here("send", "--quiet", f"cost {in_all} 0.25").code == 0
    receipts = [run_here("show", turn).out for turn in "123"]
    assert ["out 20, $0.2500" in receipt for receipt in receipts] == [True] * 3, receipts
    assert objects(run_here("usage", "--json"))[-1]["cost_usd"] == 0.75
    ran = run_here("send", "--quiet", "cost 1.0 0.25")
    assert ran.code == 0, "the budget holds four turns"
    assert run_here("send", "--quiet", "cost 1.25 0.25").code == 8


def test_what_outlives_teamchat_and_its_guardian_is_ended_by_resume(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its private folder is that of the turn it was started by, not of the one that was cut short."""
    monkeypatch.setattr("teamchat.runners.child.process.SETTLE_S", 0.1)  # nobody is left who would end it
    Path("teamchat.toml").write_text(TEAM.replace("hang", "deaf"))
    assert run_here("trust").code == 0
    process = start("send", "[NEXT:max] [NEXT:sarah] say early")
    assert eventually(lambda: any(text.count('"init"') == 2 for text in outputs(world)))
    kill_with_guardians(process.pid)
    ended(process)
    assert kept_running_here()
    assert run_here("resume", "--drop").code == 0
    assert eventually(lambda: kept_running_here() == [])
    assert list((world / "tmp").iterdir()) == []
    assert list((world / "state").rglob("turns/*")) == []
