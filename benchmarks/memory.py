"""What a large turn takes of memory, without the command around it.

The floor of an answer on a pipe is its text, of which a turn of 1 GB keeps what is within the limit of its output. That
of Claude's answer is a bare Python that reads the same lines from a file, each with `json.loads`; that of stderr is a
turn that writes nothing there.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures, Unavailable
from benchmarks.world import ROOT
from teamchat.runners.process.running import MAX_OUTPUT_BYTES

MEGABYTES = 250
MOST = 2.0
PIECE = "word " * 20
WRITE_LINES = """
import sys
block = ("%s" + "\\n") * 10000
for _ in range(%d): sys.%s.write(block)
print("the end")
"""
WRITE_CLAUDE = """
import json, sys
piece, count = %r, %d * 10000
delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
line = json.dumps({"type": "stream_event", "event": delta}) + "\\n"
for _ in range(count // 1000): sys.stdout.write(line * 1000)
text = json.dumps(piece * count)
sys.stdout.write('{"type": "assistant", "message": {"content": [{"type": "text", "text": %%s}]}}\\n' %% text)
end = '{"type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "result": %%s}\\n'
sys.stdout.write(end %% text)
"""
KEEP_RESULT = """
import json, sys
for line in open(sys.argv[1], "rb"): event = json.loads(line)
text = event["result"]
"""
PEAK = "\nprint(open('/proc/self/status').read())"
HIGHEST = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)  # unlike `ru_maxrss` it has nothing of the parent's


def in_mib(status: str) -> int:
    """The most memory that a process took, of its `/proc/PID/status`."""
    found = HIGHEST.search(status)
    if not found:
        raise Unavailable("only Linux tells the most memory that a process took")
    return int(found[1]) >> 10


def floor(write: str) -> int:
    """The peak in MiB of a program that reads the lines that `write` writes and keeps the result."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([sys.executable, "-c", write], stdout=file, check=True)
        argv = [sys.executable, "-c", KEEP_RESULT + PEAK, file.name]
        done = subprocess.run(argv, capture_output=True, check=True)
    return in_mib(done.stdout.decode())


def peak(like: str, write: str) -> int:
    """The peak in MiB of a turn whose agent runs `write`, in a process of its own."""
    argv = [sys.executable, "-m", "benchmarks.memory", like, write]
    return int(subprocess.run(argv, cwd=ROOT, capture_output=True, check=True).stdout)


def turn(like: str, write: str) -> None:
    from teamchat.runners.claude.events import ClaudeEvents
    from teamchat.runners.pipe import PipeOutput
    from teamchat.runners.process.process import launch
    from teamchat.runners.process.running import Launch
    from teamchat.runners.process.supervisor import Clocks, Stopper, run_turn

    async def follow(folder: Path) -> None:
        what = Launch((sys.executable, "-c", write), folder, {}, b"", folder / "turn")
        parser = ClaudeEvents() if like == "claude" else PipeOutput()
        end = await run_turn(launch(what), parser, Clocks(3600, 3600, 3600), Stopper(), lambda _event: None)
        if end.failure and "more than" not in end.failure.reason:
            raise SystemExit(end.failure.reason)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(follow(Path(folder)))
    print(in_mib(Path("/proc/self/status").read_text()))


def measures(_quick: bool) -> Measures:
    lines = WRITE_LINES % (PIECE.strip(), MEGABYTES, "stdout")
    claude = WRITE_CLAUDE % (PIECE, MEGABYTES // 4)  # each text comes as deltas, as a block and as the result
    gigabyte = WRITE_LINES % (PIECE.strip(), 1000, "stdout")
    noise, silence = (WRITE_LINES % (piece, count, "stderr") for piece, count in ((PIECE.strip(), 100), ("", 0)))
    for name, like, write, floor_is, least in (
        ("250 MB on a pipe", "pipe", lines, "the text", lambda: MEGABYTES * 10_000 * len(PIECE) >> 20),
        ("250 MB of claude, in pieces of 100 bytes", "claude", claude, "bare Python", partial(floor, claude)),
        ("1 GB on a pipe, ended at 256 MiB", "pipe", gigabyte, "the text", lambda: MAX_OUTPUT_BYTES >> 20),
        ("100 MB on stderr", "pipe", noise, "nothing on stderr", partial(peak, "pipe", silence)),
    ):
        yield name, partial(beside, name, partial(peak, like, write), least, floor_is)


def beside(name: str, most: Callable[[], int], least: Callable[[], int], floor_is: str) -> Iterator[Figure]:
    yield Figure(name=name, unit="MiB", value=most(), floor=least(), floor_is=floor_is, bound=MOST)


if __name__ == "__main__":
    turn(*sys.argv[1:])
