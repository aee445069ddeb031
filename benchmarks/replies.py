"""What a large reply costs `teamchat send`, from the agent to the pipe: memory, and how soon Ctrl-C is answered.

Memory is the peak over that of the same command with a short reply, and its floor is the reply's size. The first Ctrl-C
comes when the agent has ended, and its reply is being read or stored. A line has to answer it within half a second, and
a second Ctrl-C to end the program within a second. The second one comes 0.6 s after the first, so that is the most that
an answer takes.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.world import PERSON, ROOT, member
from tests.runners.processes import agent

MEASURED = ROOT / "tests" / "fakes" / "measured.py"
LINE = "A line of a long answer, in which nothing is meant.\n"
TEXTS = {
    "lines": LINE,
    "one line": LINE.replace("\n", "|"),
    "Latin letters": LINE.replace("A", "Ä"),
    "backticks and openings": "`a ``b ```c [NEXT ",
    "escapes": "\x1b]0;x\x07\x1bcx",
}
COMMANDS = ("send Go", "show --reply", "log --full msg-2", "send --new --json Go", "send --new --quiet Go")
MOST = 2.0
MEGABYTES = 200
INTERRUPTED_MEGABYTES = 150
MOMENTS_S = (0.0, 0.5, 1.5)  # after the agent has ended
ANSWER_S, END_S, GAP_S = 0.5, 1.0, 0.6
BUSY = b"still busy"
INTERRUPTED = 130


@contextmanager
def team(*steps: str) -> Iterator[Path]:
    """A folder with a team whose agent does these steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "teamchat.toml").write_text(PERSON + member("max", agent(*steps)))
        start(folder, "trust").wait()
        yield folder


def start(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "HOME": str(folder), "TEAMCHAT_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    nowhere = subprocess.DEVNULL
    argv = [sys.executable, str(MEASURED), *args]
    return subprocess.Popen(argv, cwd=folder, env=env, stdin=nowhere, stdout=nowhere, stderr=subprocess.PIPE)


def peak(folder: Path, *args: str) -> int:
    """The most bytes that a command takes."""
    process = start(folder, *args)
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors.decode())
    return int((folder / "peak").read_text())


def measures(_quick: bool) -> Measures:
    with team("reply", "Short.") as folder:
        idle = {typed: peak(folder, *typed.split()) for typed in COMMANDS}
    for kind, text in TEXTS.items():
        yield kind, partial(memory, kind, text, idle)
        yield f"{kind}: Ctrl-C", partial(interrupts, kind, text)


def memory(kind: str, text: str, idle: Mapping[str, int]) -> Iterator[Figure]:
    with team("again", text, str(MEGABYTES)) as folder:
        for typed in COMMANDS:
            taken = (peak(folder, *typed.split()) - idle[typed]) / 1e6
            name = f"{kind}: {typed}"
            yield Figure(name=name, unit="MB", value=taken, floor=MEGABYTES, floor_is="the reply", bound=MOST)


def reads_output(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has the agent's output open."""
    for file in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            if file.readlink().name == "stdout":
                return True
    return False


def answer_s(process: subprocess.Popen[bytes]) -> float:
    """The seconds until a line answers the first Ctrl-C, at most until the second one is due."""
    assert process.stderr is not None
    began, said = time.monotonic(), b""
    until = began + GAP_S
    while BUSY not in said and select.select([process.stderr], [], [], max(0.0, until - time.monotonic()))[0]:
        said += os.read(process.stderr.fileno(), 4096)
        if process.poll() is not None:
            break
    took = time.monotonic() - began
    time.sleep(max(0.0, until - time.monotonic()))
    return took


def interrupted(text: str, megabytes: int, moment_s: float) -> tuple[float, float] | None:
    """The seconds from the first Ctrl-C to its answer, and from the second one to the end; None where it was done."""
    with team("again", text, str(megabytes)) as folder:
        process = start(folder, "send", "Go")
        for begun in (True, False):
            while reads_output(process) is not begun:
                time.sleep(0.005)
        time.sleep(moment_s)
        process.send_signal(signal.SIGINT)
        answered = answer_s(process)
        second = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait()
        return (answered, time.monotonic() - second) if process.returncode == INTERRUPTED else None


def interrupts(kind: str, text: str) -> Iterator[Figure]:
    """The slowest of all moments at which the send was not done yet."""
    took = [times for moment in MOMENTS_S if (times := interrupted(text, INTERRUPTED_MEGABYTES, moment))]
    if not took:
        raise RuntimeError("every send was done before Ctrl-C: the reply is too small for this machine")
    answer, end = map(max, zip(*took, strict=True))
    yield Figure(name=f"{kind}: Ctrl-C, answer", unit="s", value=answer, bound=ANSWER_S)
    yield Figure(name=f"{kind}: Ctrl-C, end", unit="s", value=end, bound=END_S)
