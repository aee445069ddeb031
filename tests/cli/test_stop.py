from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import lock_file
from teamchat.core.errors import ExitCode
from teamchat.core.files.session_lock import session_lock
from tests.cli.helpers import objects, refused
from tests.program import cli, ended, run_here, start
from tests.runners.processes import eventually, state
from tests.scripted_team import crew


@pytest.fixture
def busy(world: Path) -> None:
    """A member that says something and then takes long, and one that is quick."""
    half = {"say": "Half", "touch": str(Path.cwd() / "began"), "hang": 600}
    crew(world, {"max": [half, "Whole"], "sarah": ["Hi"] * 3})


def running() -> None:
    """Wait until the first turn has begun, and its agent: the route runs before both."""
    assert eventually(Path("began").exists)
    assert eventually(lambda: '"status":"running"' in run_here("show", "--json").out.replace(" ", ""))


@pytest.mark.usefixtures("busy")
def test_stop_ends_a_conversation_of_another_terminal_and_keeps_the_queue() -> None:
    with start("send", "--to", "max,sarah", "Go") as first:
        running()
        (receipt,) = objects(run_here("show", "--json"))
        assert (receipt["status"], receipt["abandoned"]) == ("running", False)
        stopped = cli("stop")
        assert (stopped.code, stopped.out) == (0, "")
        assert f"stopped process {first.pid} (teamchat send --to max,sarah Go)" in stopped.err
        assert ended(first).code == 143
    assert "held: max" in run_here("log").err
    resumed = run_here("resume")
    assert (resumed.code, resumed.out) == (0, "max:\nWhole\n\nsarah:\nHi\n\n")


@pytest.mark.usefixtures("busy")
def test_a_conversation_that_ctrl_z_has_stopped_is_ended_too() -> None:
    with start("send", "--to", "max", "Go") as first:
        running()
        first.send_signal(signal.SIGSTOP)
        assert eventually(lambda: state(first.pid) == b"T")
        assert cli("stop").code == 0
        assert ended(first).code == 143


@pytest.mark.usefixtures("busy")
def test_a_process_that_is_gone_or_out_of_sight_is_no_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in another container that shares the state folder: the lock is held, and nobody here has that number."""
    assert run_here("send", "--to", "sarah", "Hi").code == 0
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setattr("teamchat.cli.stop.PATIENCE_S", 0.1)
    lock = lock_file(Path.cwd(), 1)
    with session_lock(lock, "send"):
        lock.write_text(f"process {gone.pid} (send)")
        ran = run_here("stop")
    assert (ran.code, refused(ran)) == (1, f"process {gone.pid} (send) has not ended 0.1 s after it was asked to")


@pytest.mark.usefixtures("busy")
def test_a_second_process_sends_what_a_stopped_one_has_not_sent() -> None:
    with start("send", "--to", "max", "Go") as first:
        running()
        with start("send", "--to", "sarah", "Me, too") as second:
            assert second.stderr
            waits = f"queued: it goes out before the next turn of process {first.pid} (teamchat send --to max Go)"
            assert any(waits in line.decode() for line in second.stderr)
            assert cli("stop").code == 0
            ended(first)
            done = ended(second)
    assert (done.code, done.out) == (0, "sarah:\nHi\n\n")


@pytest.mark.usefixtures("busy")
def test_stopping_what_nobody_runs_is_said() -> None:
    assert run_here("send", "--to", "sarah", "Hi").code == 0
    stopped = run_here("stop")
    assert (stopped.code, stopped.err) == (0, "· session s1 is not running\n")


def test_stop_without_a_conversation() -> None:
    assert run_here("stop").code == 4


@pytest.mark.usefixtures("busy")
def test_what_goes_on_names_the_session_where_it_is_not_the_last_one() -> None:
    with start("send", "--new", "--session", "dev", "--to", "max", "Go") as first:
        running()
        assert run_here("send", "--new", "--to", "sarah", "Hi").code == 0
        assert cli("stop", "--session", "dev").err.endswith("; teamchat resume --session dev continues\n")
        assert ended(first).err.endswith("· try: teamchat resume --session dev\n")


@pytest.mark.parametrize("number", ["1", "0", "-1", "00", "9999999999", "4294967297"])
def test_a_lock_that_names_no_process_that_could_hold_it_ends_nobody(world: Path, number: str) -> None:
    """An agent can write that file; the lock is held all the same."""
    crew(world, {"max": ["Hi"]})
    assert run_here("send", "Hi").code == 0
    lock = lock_file(Path.cwd(), 1)
    with session_lock(lock, "teamchat send"):
        lock.write_text(f"process {number} (teamchat send)\n")
        stopped = run_here("stop")
    assert stopped.code == ExitCode.STORE
    assert f"is held, and names no process that could hold it: process {number} " in refused(stopped)
