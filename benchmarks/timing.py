"""Times of processes and functions, taken so that what else the machine does falls on value and floor alike."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.figure import Figure

REPEATS = 12
TOKEN = re.compile(r"\w+|\W")
"""A floor of what reads a text: it takes every word and every other character."""


class Took(NamedTuple):
    """What a process took. `cpu_ms` has the processes below it, too, which ended before it."""

    wall_ms: float
    cpu_ms: float


def run(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes = b"", codes: Sequence[int] = (0,)
) -> Took:
    """What a command took that is given `stdin` and whose output nobody reads. Any other exit code is an error."""
    with (cwd / ".stdin").open("w+b") as given, (cwd / ".stderr").open("w+b") as errors:
        given.write(stdin)
        given.seek(0)
        began = time.perf_counter()
        process = subprocess.Popen(argv, cwd=cwd, env=dict(env), stdin=given, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if process.returncode not in codes:
            raise RuntimeError(f"{argv} ended with {process.returncode}: {errors.read().decode(errors='replace')}")
    return Took(1000 * wall, 1000 * (used.ru_utime + used.ru_stime))


def interleaved(*ways: Callable[[], Took], repeats: int = REPEATS) -> list[Took]:
    """The medians of each way. The ways take turns, each second round in reverse; a first round warms up.

    A figure is compared with its floor by the ratio of their medians, not by the median of the ratios of pairs: a pair
    has the noise of both runs in it, and so the table compares the value and the floor that it shows.
    """
    taken: list[list[Took]] = [[] for _ in ways]
    for number in range(repeats + 1):
        turns = list(zip(ways, taken, strict=True))
        for way, times in turns[:: -1 if number % 2 else 1]:
            times.append(way())
    return [Took(*map(statistics.median, zip(*times[1:], strict=True))) for times in taken]


def best_ms(work: Callable[[], object], repeats: int = 5) -> float:
    """The shortest wall time of a function in this process, where everything else only adds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1000 * min(times)


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def compared(
    name: str,
    value: Callable[[], Took],
    floor: Callable[[], Took],
    floor_is: str,
    bound: float | None,
    by: Literal["ratio", "difference", "value"] = "ratio",
) -> Iterator[Figure]:
    """The wall time of a command beside that of another, interleaved."""
    ours, theirs = interleaved(value, floor)
    yield Figure(name=name, unit="ms", value=ours.wall_ms, floor=theirs.wall_ms, floor_is=floor_is, bound=bound, by=by)
