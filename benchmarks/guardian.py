"""What a turn's guardian adds on the way to the agent's first instruction, and the memory that is its own."""

from __future__ import annotations

import asyncio
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.timing import REPEATS, Took, interleaved
from teamchat.runners.pipe import PipeOutput
from teamchat.runners.process.process import launch
from teamchat.runners.process.running import Launch
from teamchat.runners.process.supervisor import Clocks, Stopper, run_turn

CLOCK = ("/bin/date", "+%s.%N")
OWN_MEMORY = "grep ^Private_ /proc/$PPID/smaps_rollup"  # of the agent's parent, the guardian


def measures(quick: bool) -> Measures:
    yield "start of an agent", lambda: start(REPEATS if quick else 4 * REPEATS)
    yield "own memory", memory


def start(repeats: int) -> Iterator[Figure]:
    ours, bare = interleaved(guarded, unguarded, repeats=repeats)
    yield Figure(
        name="start of an agent", unit="ms", value=ours.wall_ms, floor=bare.wall_ms, floor_is="without a guardian",
        bound=15, by="difference",
    )  # fmt: skip


def memory() -> Iterator[Figure]:
    kilobytes = sum(map(int, re.findall(rb"(\d+) kB", output_of(("/bin/sh", "-c", OWN_MEMORY)))))
    yield Figure(name="own memory", unit="MB", value=kilobytes * 1024 / 1e6, bound=8)


def guarded() -> Took:
    """Until an agent that tells the time tells it."""
    began = time.time()
    return Took(1000 * (float(output_of(CLOCK)) - began), 0)


def unguarded() -> Took:
    began = time.time()
    told = subprocess.run(CLOCK, capture_output=True, check=True).stdout
    return Took(1000 * (float(told) - began), 0)


def output_of(argv: tuple[str, ...]) -> bytes:
    """What an agent writes in a turn."""
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(turn(argv, Path(name)))
        return (Path(name) / "turn" / "stdout").read_bytes()


async def turn(argv: tuple[str, ...], folder: Path) -> None:
    running = launch(Launch(argv, folder, {}, b"", folder / "turn"))
    end = await run_turn(running, PipeOutput(), Clocks(60, 60, 60), Stopper(), lambda _event: None)
    if end.failure:
        raise RuntimeError(end.failure.reason)
