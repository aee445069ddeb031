"""A member that is kept running, on the real program: what is left when teamchat is killed over it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.helpers import said
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


def test_what_outlives_teamchat_and_its_guardian_is_ended_by_resume(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its private folder is that of the turn it was started by, not of the one that was cut short."""
    monkeypatch.setattr("teamchat.runners.process.process.SETTLE_S", 0.1)  # nobody is left who would end it
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
