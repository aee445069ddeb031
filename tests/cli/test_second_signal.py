"""A second signal ends the real program while it reads and stores a reply, and the reply is not lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.cli.helpers import actors, notes, queue, said, steady, turn
from tests.program import ROOT, Result, ended, run_here, start
from tests.runners.processes import PATIENCE_S, eventually
from tests.screens import screen

BUSY = ROOT / "tests" / "fakes" / "busy.py"
HOSTILE = "`a ``b ```c [NEXT "  # what takes longest to read
BUSY_NOTE = "still busy; Ctrl-C now ends teamchat at once"
KILLED = "turn 1 (max) was running when teamchat was killed; its partial text: teamchat show 1"


def insist(process: subprocess.Popen[bytes], number: signal.Signals) -> Result:
    """Send the signal again and again, since two at once are one to the system, until the program has ended."""
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < until:
        process.send_signal(number)
        time.sleep(0.3)
    process.kill()  # if it still runs, which its exit code shows
    return ended(process)


def told(process: subprocess.Popen[bytes]) -> str:
    """What it writes on stderr up to the line that answers a first signal."""
    assert process.stderr is not None
    lines = [""]
    while BUSY_NOTE not in lines[-1]:
        lines.append(process.stderr.readline().decode())
        assert lines[-1], lines
    return "".join(lines)


def reads_output(process: subprocess.Popen[bytes]) -> bool:
    """Whether the program has an agent's output open."""
    for file in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            if file.readlink().name == "stdout":
                return True
    return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_second_signal_ends_what_runs_no_handler(number: signal.Signals, code: int) -> None:
    actors({"max": ["reply", "Long."]})
    process = start("send", "Go", program=BUSY)
    assert eventually(Path("busy").exists)
    process.send_signal(number)
    assert told(process) == notes("session s1 begins", "max begins (turn 1)", BUSY_NOTE)
    assert insist(process, number) == Result(code, "", "")
    assert queue() == [("max", "running")]
    actors({"max": ["reply", "Whole."]})
    ran = steady(run_here("resume"))
    begin, end = turn("max", 2)
    assert ran == Result(0, "max:\nWhole.\n\n", notes("session s1 continues", KILLED, begin, end))
    assert said() == [("kailai", "Go"), ("max", "Whole.")]
    assert run_here("show", "1", "--reply").out == "Long."


def test_a_second_signal_leaves_the_terminal_of_a_chat_as_it_was() -> None:
    actors({"max": ["reply", "Long."]})
    with screen("chat", script=BUSY) as shown:
        before = termios.tcgetattr(shown.child.child_fd)
        shown.until(lambda text: "›" in text)
        shown.child.send("Go\r")
        shown.until(lambda _: Path("busy").exists())
        assert termios.tcgetattr(shown.child.child_fd) != before
        for _ in range(2):
            os.kill(shown.child.pid, signal.SIGTERM)
            shown.until(lambda text: BUSY_NOTE in text)
        shown.to_the_end()
        assert shown.child.exitstatus == 143
        assert termios.tcgetattr(shown.child.child_fd) == before
        assert shown.cursor_is_visible


def test_one_signal_ends_nothing_that_is_being_stored() -> None:
    actors({"max": ["reply", "Long."]})
    process = start("send", "Go", program=BUSY)
    assert eventually(Path("busy").exists)
    process.terminate()
    told(process)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    assert insist(process, signal.SIGTERM).code == 143


def test_a_second_signal_does_not_wait_for_stderr() -> None:
    actors({"max": ["reply", "Long."]})
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(theirs, bytes(1 << 16))
    os.set_blocking(theirs, True)
    process = start("send", "--quiet", "Go", program=BUSY, stderr=theirs)
    os.close(theirs)
    assert eventually(Path("busy").exists)
    assert insist(process, signal.SIGINT).code == 130
    os.close(ours)
