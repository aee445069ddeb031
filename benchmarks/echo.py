"""How long a key takes to be echoed in `teamchat chat` while a reply of 1 MB streams.

The program runs at a real pseudo-terminal with an agent that streams prose and code. A key is pressed, and the time is
taken until the screen has it. The same is measured at a prompt where nothing runs, for comparison.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect

from benchmarks.figure import Figure, Measures
from benchmarks.timing import percentile
from benchmarks.world import PERSON, member

BOUND_MS = 50
KEYS, KILOBYTES = 300, 1000
PROSE = "The quick brown fox jumps over the lazy dog, and **nobody** minds. "
CODE = "```python\ndef slug(title: str) -> str:\n    return '-'.join(title.lower().split())\n```\n\n"
AGENT = """
import sys, time
sys.stdin.read()
text = sys.argv[1] * 5 + "\\n\\n" + sys.argv[2]
pieces = int(sys.argv[3]) * 1000 // len(text.encode())
print(json_of({"type": "system", "subtype": "init", "model": "m", "session_id": "s"}), flush=True)
whole = []
for _ in range(pieces):
    whole.append(text)
    for at in range(0, len(text), 40):
        delta = {"type": "text_delta", "text": text[at:at + 40]}
        print(json_of({"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}}), flush=True)
    time.sleep(float(sys.argv[4]) / pieces)
said = "".join(whole)
print(json_of({"type": "assistant", "message": {"content": [{"type": "text", "text": said}]}}), flush=True)
usage = {"input_tokens": 1, "output_tokens": 1}
print(json_of({"type": "result", "subtype": "success", "is_error": False, "result": said, "usage": usage}), flush=True)
"""
STREAMS_S = 20.0
LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"  # which the reply has not


def measures(_quick: bool) -> Measures:
    yield "echo of a key", echo


def echo() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        child = chat(Path(folder), KILOBYTES)
        try:
            idle = echoes(child, KEYS // 3)
            child.send("\x15@max go\r")
            child.expect("max-agent")
            busy = echoes(child, KEYS)
        finally:
            child.close(force=True)
    name, floor_is = "echo of a key while 1 MB streams", "nothing runs"
    yield Figure(name=name, unit="ms", value=statistics.median(busy), floor=statistics.median(idle), floor_is=floor_is)
    yield Figure(
        name=f"{name}, p99", unit="ms", value=percentile(busy, 99), floor=percentile(idle, 99), floor_is=floor_is,
        bound=BOUND_MS, by="value",
    )  # fmt: skip


def chat(folder: Path, kilobytes: int) -> pexpect.spawn:
    """The program at its prompt, with a team of one agent that streams."""
    program = folder / "agent.py"
    program.write_text("from json import dumps as json_of\n" + AGENT)
    command = [sys.executable, str(program), PROSE, CODE, str(kilobytes), str(STREAMS_S)]
    work = folder / "work"
    work.mkdir()
    (work / "teamchat.toml").write_text(PERSON + member("max", command, "claude"))
    env = {**os.environ, "TEAMCHAT_HOME": str(folder / "home"), "HOME": str(folder), "TERM": "xterm-256color"}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "teamchat", "chat", "--trust"],
        cwd=work,
        env=env,
        dimensions=(40, 100),
        encoding="utf-8",
        timeout=30,
    )
    child.delaybeforesend = None
    child.expect("Ctrl-D")
    return child


def echoes(child: pexpect.spawn, keys: int) -> list[float]:
    """Press keys at a typist's pace, each a letter that differs from the last. Milliseconds until each is echoed."""
    times: list[float] = []
    drain(child, 0.3)
    for number in range(keys):
        if number % len(LETTERS) == 0:
            child.send("\x15")
            drain(child, 0.2)
        letter = LETTERS[number % len(LETTERS)]
        began = time.perf_counter()
        child.send(letter)
        child.expect_exact(letter)
        times.append((time.perf_counter() - began) * 1000)
        drain(child, 0.04)
    return times


def drain(child: pexpect.spawn, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            child.read_nonblocking(64 * 1024, left)
        except pexpect.TIMEOUT:
            return
