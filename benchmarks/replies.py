"""What large outputs cost the commands that read them: memory in all, and how soon Ctrl-C is answered.

A reply has 16 MiB, which is the most by default; a turn with a longer one fails. The first Ctrl-C comes when the agent
has ended, and its reply is being read or stored. A line has to answer it within half a second, and a second Ctrl-C to
end the program within a second. The second one comes 0.6 s after the first, so that is the most that an answer takes.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.world import MEASURED, PERSON, ROOT, member, peak_mb
from teamchat.runners.longest import LONGEST_REPLY
from tests.fakes.scripted import spoken
from tests.runners.processes import agent

LINE = "A line of a long answer, in which nothing is meant.\n"
TEXTS = {
    "lines": LINE,
    "Latin letters": LINE.replace("A", "Ä"),
    "backticks and openings": "`a ``b ```c [NEXT ",
    "escapes": "\x1b]0;x\x07\x1bcx",
}
COMMANDS = ("send Go", "show --reply", "log --full msg-2", "send --new --json Go", "send --new --quiet Go")
MOST = 400
MOMENTS_S = (0.0, 0.2, 0.5)  # after the agent has ended
ANSWER_S, END_S, GAP_S = 0.5, 1.0, 0.6
BUSY = b"still busy"
INTERRUPTED, FAILED = 130, 1


@contextmanager
def team(output: str, like: str = "plain") -> Iterator[Path]:
    """A folder with a team whose agent writes this output."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "output").write_text(output)
        command = agent("say-file", str(folder / "output"))
        (folder / "teamchat.toml").write_text(PERSON + member("max", command, like))
        start(folder, "trust").wait()
        yield folder


def start(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "HOME": str(folder), "TEAMCHAT_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    argv, nowhere = (*MEASURED, *args), subprocess.DEVNULL
    return subprocess.Popen(argv, cwd=folder, env=env, stdin=nowhere, stdout=nowhere, stderr=subprocess.PIPE)


def peak(folder: Path, *args: str, code: int = 0) -> float:
    """The most MB that a command takes, which ends with that code."""
    process = start(folder, *args)
    _, errors = process.communicate()
    if process.returncode != code:
        raise RuntimeError(errors.decode())
    return peak_mb(folder)


def measures(_quick: bool) -> Measures:
    for kind, text in TEXTS.items():
        whole = text * (LONGEST_REPLY // len(text.encode()) - 1)
        yield kind, partial(memory, kind, whole)
        yield f"{kind}: Ctrl-C", partial(interrupts, kind, whole)
    yield "200 MB in lines", partial(memory, "200 MB in lines", LINE * (200_000_000 // len(LINE)), code=FAILED)
    yield "a line of 17 MB", partial(memory, "a line of 17 MB", long_line(), "codex")


def long_line() -> str:
    """What a Codex writes that reads a file of 17 MB and then says so."""
    call = {"id": "item_1", "type": "command_execution", "command": "cat large"}
    done = {**call, "aggregated_output": "x" * 17_000_000, "exit_code": 0, "status": "completed"}
    lines = [{"type": "item.started", "item": call}, {"type": "item.completed", "item": done}]
    return "".join(f"{json.dumps(line)}\n" for line in lines) + spoken("codex", "It is long.")


def memory(kind: str, output: str, like: str = "plain", code: int = 0) -> Iterator[Figure]:
    with team(output, like) as folder:
        for typed in COMMANDS if like == "plain" and not code else COMMANDS[:1]:
            taken = peak(folder, *typed.split(), code=code)
            yield Figure(name=f"{kind}: {typed}", unit="MB", value=taken, bound=MOST)


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


def interrupted(output: str, moment_s: float) -> tuple[float, float] | None:
    """The seconds from the first Ctrl-C to its answer, and from the second one to the end; None where it was done."""
    with team(output) as folder:
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


def interrupts(kind: str, output: str) -> Iterator[Figure]:
    """The slowest of all moments at which the send was not done yet."""
    took = [times for moment in MOMENTS_S if (times := interrupted(output, moment))]
    if not took:
        return  # every send was done before Ctrl-C
    answer, end = map(max, zip(*took, strict=True))
    yield Figure(name=f"{kind}: Ctrl-C, answer", unit="s", value=answer, bound=ANSWER_S)
    yield Figure(name=f"{kind}: Ctrl-C, end", unit="s", value=end, bound=END_S)
