"""What a turn's guardian adds on the way to the agent's first instruction, and the memory that is its own.

Each guardian is an interpreter of its own. `send` starts the first one ahead, while the rest of the program is loaded.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures, Unavailable
from benchmarks.timing import REPEATS, Took, interleaved
from teamchat.runners.child.guardians import GUARDIANS
from teamchat.runners.child.process import launch
from teamchat.runners.child.running import FIRST_LINE, Launch
from teamchat.runners.child.supervisor import Clocks, Stopper, run_turn
from teamchat.runners.pipe import PipeOutput

CLOCK = ("/bin/date", "+%s.%N")
OWN_MEMORY = "grep -h ^Pss_Anon: /proc/$PPID/smaps_rollup"  # of the agent's parent


def measures(quick: bool) -> Measures:
    repeats = REPEATS if quick else 4 * REPEATS
    yield "start of an agent", partial(start, "start of an agent", guarded, repeats)
    yield "start of the first agent", partial(start, "start of the first agent", guarded_ahead, repeats)
    yield "own memory", memory


def start(name: str, guarded: Callable[[], Took], repeats: int) -> Iterator[Figure]:
    ours, bare = interleaved(guarded, unguarded, repeats=repeats)
    yield Figure(
        name=name, unit="ms", value=ours.wall_ms, floor=bare.wall_ms, floor_is="without a guardian", bound=50,
        by="difference",
    )  # fmt: skip


def memory() -> Iterator[Figure]:
    if sys.platform != "linux":
        raise Unavailable("only Linux tells the memory that a process shares with nobody")
    (guardian,) = map(int, re.findall(rb"(\d+) kB", output_of(("/bin/sh", "-c", OWN_MEMORY))[1]))
    yield Figure(name="own memory", unit="MB", value=guardian * 1024 / 1e6, bound=8)


def guarded() -> Took:
    """From the launch of an agent that tells the time until it tells it."""
    began, told = output_of(CLOCK)
    return Took(1000 * (float(told) - began), 0)


def guarded_ahead() -> Took:
    """The same where the guardian was started while the program was loaded, which takes longer."""
    GUARDIANS.prepare()
    time.sleep(0.1)
    return guarded()


def unguarded() -> Took:
    began = time.time()
    told = subprocess.run(CLOCK, capture_output=True, check=True).stdout
    return Took(1000 * (float(told) - began), 0)


def output_of(argv: tuple[str, ...]) -> tuple[float, bytes]:
    """When an agent was launched in a turn, and what it writes."""
    with tempfile.TemporaryDirectory() as name:
        began = asyncio.run(turn(argv, Path(name)))
        return began, (Path(name) / "turn" / "stdout").read_bytes().removeprefix(FIRST_LINE)


async def turn(argv: tuple[str, ...], folder: Path) -> float:
    began = time.time()
    running = launch(Launch(argv, folder, {}, b"", folder / "turn"))
    end = await run_turn(running, PipeOutput(), Clocks(60, 60, 60), Stopper(), lambda _event: None)
    if end.failure:
        raise RuntimeError(end.failure.reason)
    return began
