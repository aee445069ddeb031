"""Being stopped, on the real program: what was said stays, what was running is held, and no process is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.helpers import actors, notes, objects, queue, said, steady, turn
from tests.program import ROOT, TIMEOUT_S, Result, argv, cli, ended, run_here, start
from tests.runners.processes import Pids, eventually, ignores, ignoring, kill_with_guardians

SAID_SO = "what max had said is in: teamchat show 1"
PAUSED = ("paused: max was interrupted; held: max, sarah", "try: teamchat resume")
GOES_ON = "session s1 continues"


def begin(pids: Pids, *args: str) -> subprocess.Popen[bytes]:
    """Start a conversation; returns when max has said half of his answer and all his processes run."""
    actors({"max": ["reply", "half", "+", "tool", "+", "hang"], "sarah": []})
    process = start("send", *args, "[NEXT: max, sarah] Go")
    pids.await_count(4)
    return process


def goes_on() -> None:
    """What was running runs again, once, and nothing of the half answer is in the conversation."""
    actors({"max": ["reply", "Whole."], "sarah": ["reply", "Me."]})
    ran = run_here("resume", "--quiet")
    assert (ran.code, ran.out) == (0, "Me.\n")
    assert said() == [("kailai", "[NEXT: max, sarah] Go"), ("max", "Whole."), ("sarah", "Me.")]
    assert "attempt 2\n" in run_here("show", "2").out


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)], ids=str
)
def test_a_signal_ends_the_turn_and_keeps_everything(pids: Pids, number: signal.Signals, code: int) -> None:
    process = begin(pids)
    process.send_signal(number)
    ran = steady(ended(process))
    assert ran == Result(code, "", notes("session s1 begins", *turn("max", 1), SAID_SO, *PAUSED))
    assert pids.alive() == []
    assert queue() == [("max", "held"), ("sarah", "held")]
    assert run_here("show").out.endswith("  partial text (never a message, never in a prompt):\n  | half\n")
    goes_on()


def test_json_and_the_exit_agree_on_how_it_ended(pids: Pids) -> None:
    process = begin(pids, "--json")
    process.terminate()
    ran = ended(process)
    assert ran.code == 143
    assert '"code": 143, "outcome": "terminated", "text": ""' in ran.out.splitlines()[-1]


def test_a_second_ctrl_c_does_not_wait_for_an_agent_that_ignores_the_first(pids: Pids) -> None:
    actors({"max": ["deaf", "+", "tool", "+", "hang"]})
    process = start("send", "Hi", program=ROOT / "tests" / "fakes" / "patient.py")
    pids.await_count(4)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)  # two at once are one to the system
    process.send_signal(signal.SIGINT)
    pids.await_end(lambda: process.send_signal(signal.SIGINT))
    ran = ended(process)
    assert ran.code == 130
    assert "Traceback" not in ran.err
    assert queue() == [("max", "held")]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT], ids=str)
def test_a_signal_that_the_caller_has_it_ignore_ends_nothing(pids: Pids, number: signal.Signals) -> None:
    with ignoring(number):
        process = begin(pids)
    assert ignores(process.pid, number)
    process.terminate()
    assert ended(process).code == 143


def test_many_signals_at_once_are_as_good_as_one(pids: Pids) -> None:
    process = begin(pids)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    ran = ended(process)
    assert ran.code in {130, 143}
    assert "Traceback" not in ran.err
    assert pids.alive() == []
    goes_on()


def test_a_signal_to_the_whole_group_is_as_good_as_one(pids: Pids) -> None:
    """As a terminal sends it: to teamchat and to every process that is in the foreground with it."""
    process = begin(pids)
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process).code == 130
    assert pids.alive() == []
    goes_on()


def test_kill_9_leaves_no_process_and_loses_nothing(pids: Pids) -> None:
    process = begin(pids)
    assert eventually(lambda: queue()[:1] == [("max", "running")])
    process.kill()
    assert ended(process).code == -signal.SIGKILL
    assert eventually(lambda: pids.alive() == [])
    shown = cli("log")  # looking does not touch what was running
    was = "was running when teamchat was killed"
    waits = "waiting: sarah, called by kailai in msg-1"
    assert shown.err == notes(f"{was}: max, called by kailai in msg-1", waits, "try: teamchat resume")
    assert run_here("show").out.startswith(f"turn 1 · max (max-agent) · {was}\n  try       teamchat resume\n")
    (left,) = objects(run_here("show", "--json"))
    assert (left["status"], left["abandoned"]) == ("running", True)
    stopped = run_here("stop")
    assert stopped == Result(
        0, "", notes("session s1 is not running", f"turn 1 (max) {was}; teamchat resume continues")
    )
    actors({"max": ["reply", "Whole."], "sarah": ["reply", "Me."]})
    killed = "turn 1 (max) was running when teamchat was killed; its partial text: teamchat show 1"
    begins, ends = turn("max", 2)
    ran = steady(run_here("resume"))
    assert ran == Result(0, "max:\nWhole.\n\nsarah:\nMe.\n\n", notes(GOES_ON, killed, begins, ends, *turn("sarah", 3)))
    receipt = run_here("show", "1").out
    assert receipt.startswith("turn 1 · max (max-agent) · interrupted\n")
    assert "\n  took      unknown\n" in receipt
    (as_json,) = objects(run_here("show", "1", "--json"))
    assert as_json["abandoned"] is False
    assert '"seconds": null' in json.dumps(as_json["outcome"])
    assert receipt.endswith("  partial text (never a message, never in a prompt):\n  | half\n")
    assert list(Path(os.environ["TMPDIR"]).iterdir()) == []


def test_kill_9_of_teamchat_and_of_the_guardian_is_made_good_by_resume(
    pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `pkill -9 -f teamchat` does: nobody is left to end the agent, until teamchat looks again."""
    monkeypatch.setattr("teamchat.runners.child.process.SETTLE_S", 0.1)  # nobody is left who would end it
    actors({"max": ["tool", "+", "daemon", "+", "reply", "half", "+", "hang"], "sarah": []})
    process = start("send", "[NEXT: max, sarah] Go")
    pids.await_count(5)
    assert eventually(lambda: queue()[:1] == [("max", "running")])
    kill_with_guardians(process.pid)
    ended(process)
    assert pids.alive()
    goes_on()
    assert pids.alive() == []


def test_a_message_after_kill_9_leaves_what_was_running(pids: Pids) -> None:
    process = begin(pids)
    assert eventually(lambda: queue()[:1] == [("max", "running")])
    process.kill()
    ended(process)
    actors({"max": ["reply", "Whole."], "sarah": ["reply", "Me."]})
    ran = run_here("send", "--to", "sarah", "Hello?")
    assert (ran.code, ran.out) == (0, "sarah:\nMe.\n\n")
    assert (
        "· still on hold: max, sarah for msg-1 'Go'; teamchat resume runs it, teamchat resume --drop drops it\n"
        in ran.err
    )
    assert queue() == [("max", "held"), ("sarah", "held")]


def test_a_closed_terminal_loses_nothing(pids: Pids) -> None:
    """The terminal that all three streams are is gone, and SIGHUP comes."""
    actors({"max": ["reply", "half", "+", "tool", "+", "hang"], "sarah": []})
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        argv("send", "[NEXT: max, sarah] Go"), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    pids.await_count(4)
    os.close(ours)
    process.send_signal(signal.SIGHUP)
    assert process.wait(TIMEOUT_S) == 143
    assert pids.alive() == []
    goes_on()


@pytest.mark.parametrize(
    "module", ["teamchat.cli.app", "typer", "teamchat.cli.log", "sqlite3", "teamchat.core.messages"]
)
def test_ctrl_c_while_modules_are_imported_is_no_traceback(world: Path, module: str) -> None:
    actors({"max": ["reply", "Hi."]})
    interrupted = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "fakes" / "ctrl_c.py"), module, "log"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (interrupted.returncode, interrupted.stdout, interrupted.stderr) == (130, b"", b"")
    assert not (world / "state").exists() or run_here("sessions").out == ""
