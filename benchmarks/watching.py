"""How late a watcher in another process shows what an agent writes, and what it costs to wait.

An agent writes the time in pieces. A watcher at a pipe and one at a terminal follow the conversation, and each piece is
late by the difference between the time in it and the time at which the watcher's output has it.
"""

from __future__ import annotations

import os
import re
import select
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.timing import percentile
from benchmarks.world import PERSON, TEAMCHAT, member, world

TURNS = 20
PIECES = 6  # of a turn
BETWEEN_S = 0.15
BOUND_S = 0.06
IDLE_S = 10.0
IDLE_BOUND = 0.02  # of one core
WAKES_BOUND = 1.1  # a second
STAMP = re.compile(rb"at(\d+\.\d{6})\.")
AGENT = f"""
import sys, time
sys.stdin.read()
for _ in range({PIECES}):
    print(f"at{{time.time():.6f}}.", flush=True)
    time.sleep({BETWEEN_S})
"""


@dataclass
class Watcher:
    """A watcher whose output is `output`. `late` has the seconds by which each piece came late, by its time."""

    name: str
    process: subprocess.Popen[bytes]
    output: int
    late: dict[bytes, float] = field(default_factory=dict)
    rest: bytes = b""

    def read(self) -> None:
        data = os.read(self.output, 1 << 20)
        now = time.time()
        self.rest = (self.rest + data)[-(1 << 16) :]
        for stamp in STAMP.findall(self.rest):
            self.late.setdefault(stamp, now - float(stamp))

    def firsts(self) -> list[float]:
        """Those of the first piece of each turn."""
        stamps = sorted(self.late)
        return [
            self.late[stamp]
            for before, stamp in zip([b"0", *stamps], stamps, strict=False)
            if float(stamp) - float(before) > 1.8 * BETWEEN_S
        ]

    def cpu_s(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wakes(self) -> int:
        """How often any of its threads has waited for something so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/status")
        waits = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)
        return sum(int(waits.findall(task.read_text())[0]) for task in tasks)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)  # SIGINT is ignored by what a shell runs in the background
        until = time.monotonic() + 10
        while self.process.poll() is None and time.monotonic() < until:
            if select.select([self.output], [], [], 0.1)[0]:
                try:
                    self.read()
                except OSError:  # the terminal is gone
                    break
        self.process.wait()


def watcher(name: str, folder: Path, env: Mapping[str, str], *args: str, terminal: bool = False) -> Watcher:
    ours, theirs = os.openpty() if terminal else os.pipe()
    argv = (*TEAMCHAT, "watch", "--last", "0", *args)
    process = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    return Watcher(name, process, ours)


def read_for(watchers: Sequence[Watcher], seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([one.output for one in watchers], [], [], left)
        for one in watchers:
            if one.output in ready:
                one.read()


def wait_for(watchers: Sequence[Watcher], process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        read_for(watchers, 0.02)
    read_for(watchers, 0.3)


def measures(_quick: bool) -> Measures:
    yield "watch", watch


def watch() -> Iterator[Figure]:
    with world(PERSON + member("max", (sys.executable, "-I", "-S", "-c", AGENT))) as at:
        at.teamchat("send", "--quiet", "Hi")
        watchers = [
            watcher("a pipe", at.folder, at.env, "--json", "--stream"),
            watcher("a terminal", at.folder, at.env, "--session", "s1", terminal=True),
        ]
        read_for(watchers, 3.0)
        before, slept = [one.cpu_s() for one in watchers], [one.wakes() for one in watchers]
        read_for(watchers, IDLE_S)
        shares = [(one.cpu_s() - used) / IDLE_S for one, used in zip(watchers, before, strict=True)]
        woken = [(one.wakes() - count) / IDLE_S for one, count in zip(watchers, slept, strict=True)]
        for _ in range(TURNS):
            argv = (*TEAMCHAT, "send", "--quiet", "--session", "s1", "Go")
            run = subprocess.Popen(argv, cwd=at.folder, env=at.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            wait_for(watchers, run)
        for one in watchers:
            one.end()
    for one, share, wakes in zip(watchers, shares, woken, strict=True):
        yield from late(f"watch at {one.name}, first of a turn", one.firsts())
        yield from late(f"watch at {one.name}", list(one.late.values()))
        yield Figure(
            name=f"watch at {one.name}, waiting, of a core", unit="%", value=100 * share, bound=100 * IDLE_BOUND
        )
        yield Figure(name=f"watch at {one.name}, waiting, wakes a second", unit="/s", value=wakes, bound=WAKES_BOUND)


def late(name: str, times: Sequence[float]) -> Iterator[Figure]:
    yield Figure(name=f"{name}, median", unit="ms", value=1000 * statistics.median(times))
    yield Figure(name=f"{name}, p99", unit="ms", value=1000 * percentile(times, 99), bound=1000 * BOUND_S)
