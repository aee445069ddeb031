"""A program that the tests fork is what one of an interpreter of its own is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from teamchat.cli.app import COMMANDS
from teamchat.version import VERSION
from tests.cli.helpers import actors
from tests.forks import Program, can_fork
from tests.program import Started, argv, cli, cli_exec, ended, run_here, start
from tests.runners.processes import Pids, ignoring
from tests.scripted_team import crew

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
ARGUMENTS = {"demo": ("--speed", "0")}  # it would take the ten seconds that were recorded
STATUS = ("PPid", "Umask", "SigBlk", "SigIgn", "SigCgt", "CapEff", "NoNewPrivs", "Threads")


@pytest.fixture
def pids(world: Path, monkeypatch: pytest.MonkeyPatch) -> Pids:
    monkeypatch.setenv("AGENT_PIDS", str(world / "pids"))
    return Pids(world / "pids")


def facts(process: subprocess.Popen[bytes]) -> dict[str, object]:
    """What the system knows of a process, but for its number, its memory and how it was started."""
    folder = Path(f"/proc/{process.pid}")
    lines = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines())
    told: dict[str, object] = {name: lines[name] for name in STATUS}
    told |= {"own session": os.getsid(process.pid) == process.pid, "group": os.getpgid(process.pid) == process.pid}
    told |= {"cwd": (folder / "cwd").readlink(), "limits": (folder / "limits").read_text()}
    kinds = {link.name: str(link.readlink()).partition(":[")[0] for link in (folder / "fd").iterdir()}
    return told | {"files": {number: kinds[number] for number in ("0", "1", "2")}, "open": len(kinds)}


def settled(process: subprocess.Popen[bytes]) -> dict[str, object]:
    """The facts of a process that waits for its agent. What it opens on the way there is open or closed by then."""
    before: dict[str, object] = {}
    while before != (seen := facts(process)):
        before = seen
        time.sleep(0.1)
    return seen


@pytest.mark.parametrize("session", [True, False])
def test_the_system_sees_the_same_process(pids: Pids, session: bool) -> None:
    actors({"max": ["hang"]})
    pipe = subprocess.PIPE
    seen: list[dict[str, object]] = []
    for kind in (Started, subprocess.Popen):
        args = argv("send", "--new", "Go")
        process = kind(args, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=session)
        pids.await_count(len(seen) + 1)
        seen.append(settled(process))
        process.send_signal(signal.SIGTERM)
        assert ended(process).code == 143
    assert seen[0] == seen[1]


@pytest.mark.parametrize("args", [["log"], ["show", "--json"], ["send", "--to", "nobody", "Go"], ["nonsense"], []])
def test_it_says_the_same_and_ends_the_same(world: Path, args: list[str]) -> None:
    crew(world, {"max": ["Hi."]})
    run_here("send", "Go")
    assert cli(*args) == cli_exec(*args)


def test_it_is_killed_by_its_number(pids: Pids) -> None:
    actors({"max": ["hang"]})
    process = start("send", "Go")
    pids.await_count(1)
    os.kill(process.pid, signal.SIGKILL)
    assert ended(process).code == -signal.SIGKILL


def test_what_an_interpreter_reads_when_it_starts_is_no_fork() -> None:
    assert can_fork(os.environ)
    assert can_fork({**os.environ, "HOME": "/", "COLUMNS": "20"})
    assert not any(
        can_fork({**os.environ, name: "C"}) for name in ("PYTHONUTF8", "LC_ALL", "LANG", "TZ", "FORCE_COLOR")
    )
    with ignoring(signal.SIGHUP):
        assert not can_fork(os.environ)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_runs_in_an_interpreter_of_its_own(command: str) -> None:
    """The server has imported every module, so only this finds a missing import."""
    ran = cli_exec(command, *ARGUMENTS.get(command, ()))
    assert "Traceback" not in ran.err
    assert ran.code in range(14)


def test_threads_fork_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    send = socket.send_fds

    def slowly(*given: Any) -> None:
        send(*given)
        time.sleep(0.005)  # until another thread would write between the two parts of a request

    monkeypatch.setattr(socket, "send_fds", slowly)
    with ThreadPoolExecutor(8) as pool:
        ran = list(pool.map(lambda _: Program(argv("--version"), stdout=subprocess.PIPE).communicate()[0], range(24)))
    assert set(ran) == {f"teamchat {VERSION}\n".encode()}
