"""The server of the guardians as this process sees it: whatever happens to it, the next agent starts."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from teamchat.runners.process import guardians as module
from teamchat.runners.process.guardian import processes
from teamchat.runners.process.guardians import Guardians
from tests.runners.processes import PATIENCE_S, children, eventually, lives, no_tracing, state

ROOT = Path(__file__).parent.parent.parent.parent
TRACES = """
import ctypes, sys, time
ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0)  # PTRACE_ATTACH
time.sleep(600)
"""


@pytest.fixture
def guardians() -> Iterator[Guardians]:
    made = Guardians()
    yield made
    made.end()


def server_of(guardians: Guardians) -> int:
    before = children()
    guardians.begin()
    (server,) = children() - before
    return server


def guardian_is_forked(guardians: Guardians) -> bool:
    return guarded(guardians)[1] not in (b"Z", b"X")


def guarded(guardians: Guardians) -> tuple[int, bytes]:
    """A guardian and its `state`."""
    with Path(os.devnull).open("r+b") as nothing:
        folder = os.open("/", os.O_RDONLY)
        pid, control = guardians.guard(folder, [nothing.fileno()] * 3)
        os.close(folder)
    with control:
        return pid, state(pid)


def stop(server: int) -> None:
    os.kill(server, signal.SIGSTOP)
    assert eventually(lambda: state(server) == b"T")


def kill(server: int) -> None:
    os.kill(server, signal.SIGKILL)
    assert eventually(lambda: not lives(server))


@pytest.mark.parametrize("harm", [stop, kill])
def test_a_server_that_somebody_stops_or_kills_keeps_no_agent_from_starting(
    guardians: Guardians, harm: Callable[[int], None]
) -> None:
    server = server_of(guardians)
    assert guardian_is_forked(guardians)
    harm(server)
    assert guardian_is_forked(guardians)


def forked_ahead(guardians: Guardians) -> int:
    """The guardian of the next agent."""
    server = server_of(guardians)
    before = children()
    guardians.prepare()
    assert guardians._ahead
    assert select.select([guardians._ahead], [], [], PATIENCE_S)[0]  # it has told its number
    (ahead,) = children() - before
    assert processes()[ahead][0] == server
    return ahead


def test_a_guardian_that_was_forked_ahead_guards_the_next_agent(guardians: Guardians) -> None:
    ahead = forked_ahead(guardians)
    guardians.prepare()
    assert guarded(guardians)[0] == ahead
    assert guarded(guardians)[0] != ahead


def test_a_guardian_that_was_forked_ahead_ends_with_the_server(guardians: Guardians) -> None:
    ahead = forked_ahead(guardians)
    guardians.end()
    assert not lives(ahead)


@pytest.mark.parametrize("harm", [stop, kill])
def test_a_guardian_that_somebody_stops_or_kills_ahead_keeps_no_agent_from_starting(
    guardians: Guardians, harm: Callable[[int], None]
) -> None:
    harm(forked_ahead(guardians))
    assert guarded(guardians)[1] not in (b"T", b"Z", b"X")


@pytest.mark.skipif(no_tracing(), reason="needs to trace a process")
def test_a_server_that_does_not_react_is_replaced(guardians: Guardians, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is traced takes no signal but SIGKILL, and cannot be reaped before its tracer has ended."""
    server = server_of(guardians)
    assert guardian_is_forked(guardians)
    monkeypatch.setattr(module, "FORK_S", 0.2)
    monkeypatch.setattr(module, "SERVER_END_S", 0.1)
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", TRACES, str(server)]) as tracer:
        try:
            assert eventually(lambda: state(server) == b"t")
            with pytest.warns(ResourceWarning, match="still running"):
                assert guardian_is_forked(guardians)
            assert not lives(server)
        finally:
            tracer.kill()


def test_the_server_ends_with_the_last_copy_of_its_socket(guardians: Guardians) -> None:
    server = server_of(guardians)
    guardians.end()
    assert not lives(server)


def test_a_fork_of_this_process_keeps_no_server_from_ending(
    guardians: Guardians, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_of(guardians)
    ready, tells = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(tells, b"+")
        signal.pause()
    os.read(ready, 1)
    try:
        monkeypatch.setattr(module, "SERVER_END_S", PATIENCE_S)
        before = time.monotonic()
        guardians.end()
        assert not lives(server)
        assert time.monotonic() - before < PATIENCE_S  # it did not have to be killed
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(tells)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
def test_a_stopped_server_ends_when_its_parent_is_killed() -> None:
    program = (
        "import os, signal\n"
        "from teamchat.runners.process.guardians import GUARDIANS\n"
        "GUARDIANS.guard(os.open('/', os.O_RDONLY), [0, 1, 2])\n"
        "print(GUARDIANS._server.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        stop(server)
        parent.kill()
    assert eventually(lambda: not lives(server))


def test_a_server_that_can_not_start_is_an_error_of_the_guard(
    guardians: Guardians, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/missing")
    before = children()
    with pytest.raises(FileNotFoundError):
        guardians.begin()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ConnectionError):
        guardian_is_forked(guardians)
    assert eventually(lambda: children() <= before)
