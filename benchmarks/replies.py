"""What a large reply costs `teamchat send`, from the agent to the pipe: memory, and how soon Ctrl-C is answered.

Memory is the peak over that of a send with a short reply, divided by the reply's size. The first Ctrl-C comes when the
agent has ended, and its reply is being read or stored: a line answers it within `ANSWER_S`, and a second one ends the
program within `END_S`. What is over its bound fails the run; the seconds are those of a quiet machine, and an answer in
`GAP_S` or more is none.

`python -m benchmarks.replies [MEGABYTES]` says how large the replies are (250, and 150 where Ctrl-C ends them).
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.runners.processes import agent

ROOT = Path(__file__).parent.parent
MEASURED = ROOT / "tests" / "fakes" / "measured.py"
LINE = "A line of a long answer, in which nothing is meant.\n"
TEXTS = {
    "lines": LINE,
    "one line": LINE.replace("\n", "|"),
    "Latin letters": LINE.replace("A", "Ä"),
    "backticks and openings": "`a ``b ```c [NEXT ",
    "escapes": "\x1b]0;x\x07\x1bc",
}
MOST = {
    "send Go": 2.0,
    "show --reply": 2.0,
    "log --full msg-2": 2.0,
    "send --new --json Go": 2.0,
    "send --new --quiet Go": 3.0,  # its markers are taken out of the whole
}
MOMENTS_S = (0.0, 0.5, 1.5)  # after the agent has ended
ANSWER_S, END_S, GAP_S = 0.5, 1.0, 0.6
BUSY = b"still busy"
INTERRUPTED = 130


@contextmanager
def team(*steps: str) -> Iterator[Path]:
    """A folder with a team whose agent does these steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "teamchat.toml").write_text(
            '[[members]]\nname = "kailai"\ntype = "human"\n\n[[members]]\nname = "max"\nagent = "fake"\n\n'
            f"[agents.fake]\ncommand = {json.dumps(agent(*steps))}\n"
        )
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
        raise SystemExit(errors.decode())
    return int((folder / "peak").read_text())


def memory(megabytes: int) -> bool:
    with team("reply", "Short.") as folder:
        idle = peak(folder, "send", "Go")
    print(f"{megabytes} MB of a reply, over the {idle >> 20} MiB of a short one:")
    good = True
    for kind, text in TEXTS.items():
        with team("again", text, str(megabytes)) as folder:
            for typed, most in MOST.items():
                times = (peak(folder, *typed.split()) - idle) / megabytes / 1e6
                good = good and times <= most
                print(f"{kind:<24} {typed:<24} {times:5.2f} x{'  <-' if times > most else ''}", flush=True)
    return good


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


def interrupts(megabytes: int) -> bool:
    print(f"Ctrl-C over {megabytes} MB of a reply, so many seconds after the agent's end:")
    good = True
    for kind, text in TEXTS.items():
        for moment_s in MOMENTS_S:
            took = interrupted(text, megabytes, moment_s)
            slow = took is not None and (took[0] > ANSWER_S or took[1] > END_S)
            good = good and not slow
            told = "done by then" if took is None else f"answered in {took[0]:.2f} s, ended in {took[1]:.2f} s"
            print(f"{kind:<24} {moment_s:3.1f} s  {told}{'  <-' if slow else ''}", flush=True)
    return good


def main(megabytes: int) -> int:
    results = memory(megabytes), interrupts(megabytes * 3 // 5)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) == 2 else 250))
