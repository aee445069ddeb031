"""How late teamchat shows the first piece of text that an agent writes after it was silent, while three agents stream.

Each of three agents of a group runs a tool and then streams text, again and again. It notes the time at which it writes
the first piece of each text. With `--json --stream`, the piece is shown when its line is there; at a terminal, which
shows what every member of a group does, when the row of the member says that it writes. Alone, a member's text streams
to the terminal itself.
"""

from __future__ import annotations

import math
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.figure import Figure, Measures
from benchmarks.timing import percentile
from benchmarks.world import PERSON, TEAMCHAT, World, member, world

MEDIAN_MS, P99_MS = 30.0, 60.0
P99_OF_THREE_MS = 100.0  # the first texts wait while the other two members start: docs/performance.md
RUNS, QUICK_RUNS = 6, 2
STEPS = 10  # of an agent, each with a text
NAMES = ("max", "sarah", "carol")
STAMP = re.compile(rb"at(\d+\.\d{6})\.")
STYLE = re.compile(rb"\x1b\[[0-9;]*m")
ROW = re.compile(rb"\S (max|sarah|carol) +(\S+)[^\r]*\r")
AGENT = """
import json, random, sys, time
sys.stdin.read()
def tell(**event):
    sys.stdout.write(json.dumps(event) + "\\n")
    sys.stdout.flush()
def delta(text):
    inner = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    tell(type="stream_event", event=inner, parent_tool_use_id=None)
def said(kind, block):
    tell(type=kind, message={"content": [block]})
tell(type="system", subtype="init", model="m", session_id="s")
for step in range({steps}):
    said("assistant", {"type": "tool_use", "id": f"t{step}", "name": "Bash", "input": {"command": f"step-{step}"}})
    time.sleep(random.uniform(0.05, 0.15))
    said("user", {"type": "tool_result", "tool_use_id": f"t{step}", "content": ""})
    for piece in range(6):
        if piece == 0:
            stamp = f"at{time.time():.6f}."
            open("{stamps}", "a").write(stamp)
        delta(stamp if piece == 0 else f" piece {piece} of it")
        time.sleep(0.02)
tell(type="result", subtype="success", is_error=False, num_turns=1, result="It is done.")
"""


class Rows(msgspec.Struct):
    """What the terminal shows of the members of a group. `writing` has when a row was drawn that says `writing`."""

    writing: dict[bytes, list[float]] = {}
    rest: bytes = b""

    def take(self, data: bytes, at: float) -> None:
        whole, end, self.rest = (self.rest + data).rpartition(b"\r")
        for name, does in ROW.findall(STYLE.sub(b"", whole + end)):
            if does == b"writing":
                self.writing.setdefault(name, []).append(at)


def clock(name: str, stamps: Path) -> str:
    """The lines of a team file for a member that notes its times in the folder `stamps`."""
    agent = AGENT.replace("{stamps}", str(stamps / name)).replace("{steps}", str(STEPS))
    return member(name, [sys.executable, "-I", "-S", "-c", agent], like="claude")


def started(here: World, names: Sequence[str], *args: str, terminal: bool) -> tuple[subprocess.Popen[bytes], int]:
    """A `send` to the members, and the descriptor from which its output is read."""
    argv = [*TEAMCHAT, "send", "--new", *args, f"[NEXT: {' + '.join(names)}] Go"]
    ours, theirs = os.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        argv, cwd=here.folder, env=dict(here.env), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    return process, ours


def by_stamps(here: World, names: Sequence[str], *args: str, terminal: bool = False) -> list[float]:
    """The seconds by which each first piece was late itself; without end for one that was not seen."""
    process, output = started(here, names, *args, terminal=terminal)
    late: dict[bytes, float] = {}
    rest = b""
    while data := read(output):
        now = time.time()
        rest = (rest + data)[-65536:]
        for stamp in STAMP.findall(rest):
            late.setdefault(stamp, now - float(stamp))
    ended(process, output)
    return [*late.values(), *[math.inf] * (len(names) * STEPS - len(late))]


def by_rows(here: World, stamps: Path) -> list[float]:
    """The seconds by which the row of each member of a group said late that it writes."""
    for file in stamps.iterdir():
        file.unlink()
    process, output = started(here, NAMES, terminal=True)
    rows = Rows()
    while data := read(output):
        rows.take(data, time.time())
    ended(process, output)
    late: list[float] = []
    for name in NAMES:
        written = [float(stamp) for stamp in STAMP.findall((stamps / name).read_bytes())]
        seen = rows.writing.get(name.encode(), [])
        late += [next((at - stamp for at in seen if at > stamp), math.inf) for stamp in written]
    return late


def read(output: int) -> bytes:
    select.select([output], [], [])
    try:
        return os.read(output, 1 << 20)
    except OSError:  # the terminal is closed
        return b""


def ended(process: subprocess.Popen[bytes], output: int) -> None:
    os.close(output)
    if process.wait():
        raise RuntimeError(f"send ended with {process.returncode}")


def lateness(where: str, runs: int, late: Callable[[], list[float]], p99_ms: float) -> Iterator[Figure]:
    """The median and the 99th percentile over so many runs."""
    times = [1000 * seconds for _ in range(runs) for seconds in late()]
    for what, percent, bound in (("median", 50, MEDIAN_MS), ("p99", 99, p99_ms)):
        yield Figure(name=f"{where}, {what}", unit="ms", value=percentile(times, percent), bound=bound)


def measures(quick: bool) -> Measures:
    runs = QUICK_RUNS if quick else RUNS
    with world() as here:
        stamps = here.folder.parent / "stamps"
        stamps.mkdir()
        here.team(PERSON + "".join(clock(name, stamps) for name in NAMES))
        three = "three at once, --json --stream"
        streamed = partial(by_stamps, here, NAMES, "--json", "--stream")
        yield three, partial(lateness, three, runs, streamed, P99_OF_THREE_MS)
        rows = "three at once, a terminal"
        yield rows, partial(lateness, rows, runs, partial(by_rows, here, stamps), P99_OF_THREE_MS)
        alone = "one alone, a terminal"
        yield alone, partial(lateness, alone, 2 * runs, partial(by_stamps, here, NAMES[:1], terminal=True), P99_MS)
