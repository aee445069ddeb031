"""What tests of real processes share: starting fake agents, following them, and seeing what is left of them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from teamchat.runners.child import supervisor as turn
from teamchat.runners.child.guardian import below, processes, send_signal
from teamchat.runners.child.process import ChildProcess
from teamchat.runners.child.running import Chunk, Exit, Running
from tests.program import fake

AGENT = Path(__file__).parent.parent / "fakes" / "agent.py"
PATIENCE_S = 60.0  # how long a test waits for what should be there in an instant: the machine may be busy


def agent(*steps: str) -> tuple[str, ...]:
    """The argv of a fake agent."""
    return (*fake(AGENT), *steps)


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


@dataclass(frozen=True, slots=True)
class Ran:
    out: bytes
    err: bytes
    exit: Exit
    seconds: float

    @property
    def end(self) -> tuple[int, tuple[str, ...]]:
        """The exit code, and what had to be ended afterwards."""
        return self.exit.code, self.exit.left


async def following(
    process: Running, when: bytes = b"", then: Callable[[], None] | None = None, ends: bytes | None = None
) -> Ran:
    """Everything a process writes, and its end; `then` is called once, as soon as stdout contains `when`.

    The process is told that its turn is over as soon as stdout contains `ends`.
    """
    started = time.monotonic()
    seen = {"out": bytearray(), "err": bytearray()}
    async for chunk in process.chunks():
        assert isinstance(chunk, Chunk)
        seen[chunk.stream] += chunk.data
        if ends and ends in seen["out"]:
            process.over()
        if then and when in seen["out"]:
            then()
            then = None
    assert then is None, f"{when!r} was never seen"
    assert process.exit is not None
    return Ran(bytes(seen["out"]), bytes(seen["err"]), process.exit, time.monotonic() - started)


def follow(process: Running, when: bytes = b"", then: Callable[[], None] | None = None) -> Ran:
    return asyncio.run(asyncio.wait_for(following(process, when, then), PATIENCE_S))


def eventually(condition: Callable[[], bool], within: float = PATIENCE_S) -> bool:
    until = time.monotonic() + within
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def clocks_wait_for(condition: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock of a turn in this process runs out before that, however slow the start of its agent is."""
    look = turn._Turn._look

    def looks(self: turn._Turn, now: float) -> None:
        if condition():
            look(self, now)

    monkeypatch.setattr(turn._Turn, "_look", looks)


def state(pid: int) -> bytes:
    """What the system says that process does: b"T" for one that is stopped, b"X" for one that is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return b"X"
    return stat.rpartition(b")")[2].split()[0]


def lives(pid: int) -> bool:
    """Whether that process still runs; one that waits to be reaped does not."""
    return state(pid) not in {b"Z", b"X"}


@contextmanager
def ignoring(number: signal.Signals) -> Iterator[None]:
    """What is started in here ignores it, as `nohup` has it with SIGHUP, and a script with SIGINT behind `&`."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


def ignores(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    (ignored,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(ignored & 1 << (number - 1))


def kill_with_guardians(teamchat: int) -> None:
    """As `pkill -9 -f teamchat` does: none of them has the time to see another one's end."""
    os.kill(teamchat, signal.SIGSTOP)
    assert eventually(lambda: state(teamchat) == b"T")
    guardians = [pid for pid, (parent, _) in processes().items() if parent == teamchat]
    assert guardians
    for pid in (*guardians, teamchat):
        send_signal(pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Pids:
    """The pids that a fake agent wrote down: its own and its children's."""

    file: Path

    def hang(self) -> bool:
        """Whether one of them has said all that it says, and hangs."""
        return Path(f"{self.file}.hangs").exists()

    def all(self) -> list[int]:
        return [int(line) for line in self.file.read_text().split()] if self.file.exists() else []

    def alive(self) -> list[int]:
        return [pid for pid in self.all() if lives(pid)]

    def await_end(self, again: Callable[[], None]) -> None:
        """Wait until none is alive. `again` is called every two seconds: two signals at once are one to the system."""
        until = time.monotonic() + PATIENCE_S
        while not eventually(lambda: self.alive() == [], within=2.0):
            assert time.monotonic() < until, self.alive()
            again()

    def await_count(self, count: int) -> None:
        assert eventually(lambda: len(self.all()) >= count), self.all()


def no_tracing() -> bool:
    """Whether this system lets no process trace one that it has not started."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return sys.platform != "linux" or (scope.exists() and scope.read_text().strip() != "0")


def guardian_of(process: ChildProcess) -> int:
    return processes()[process.pid][0]


def children() -> set[int]:
    """The processes below this one."""
    return set(below(os.getpid(), processes()))


def descriptors() -> list[str]:
    """This process's open files, by what they are."""
    names = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(link.readlink()))
        except OSError:  # the folder itself, opened to list it
            continue
    return sorted(names)
