"""What a large turn takes of memory, as ratios against floors measured in the same run: `make bench`.

The floor of an answer is a bare Python that reads the same output from a file and keeps the text; the floor of stderr
is a turn that writes nothing there. An answer of 1 GB is ended at the limit of a turn's output, where its floor stops
reading. `benchmarks/memory.py MEGABYTES` says how much is written to stdout (250).
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
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
KEEP_TEXT = "import sys; text = open(sys.argv[1], encoding='utf-8').read()"
KEEP_START = "import sys; text = open(sys.argv[1], encoding='utf-8').read(256 * 1024**2)"
KEEP_RESULT = """
import json, sys
for line in open(sys.argv[1], "rb"): event = json.loads(line)
text = event["result"]
"""
PEAK = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)"


def floor(keep: str, write: str) -> int:
    """The peak in MiB of a program that reads all that `write` writes and keeps the text."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([sys.executable, "-c", write], stdout=file, check=True)
        done = subprocess.run([sys.executable, "-c", keep + PEAK, file.name], capture_output=True, check=True)
    return int(done.stdout)


def peak(like: str, write: str) -> int:
    """The peak in MiB of a turn whose agent runs `write`, in a process of its own."""
    argv = [sys.executable, __file__, like, write]
    return int(subprocess.run(argv, cwd=ROOT, capture_output=True, check=True).stdout)


def turn(like: str, write: str) -> None:
    sys.path.insert(0, str(ROOT))
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
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)


def main(megabytes: int) -> None:
    lines = WRITE_LINES % (PIECE.strip(), megabytes, "stdout")
    claude = WRITE_CLAUDE % (PIECE, megabytes // 4)  # each text comes as deltas, as a block and as the result
    gigabyte = WRITE_LINES % (PIECE.strip(), 1000, "stdout")
    noise = WRITE_LINES % (PIECE.strip(), min(megabytes, 100), "stderr")
    rows = (
        ("an answer on a pipe", peak("pipe", lines), floor(KEEP_TEXT, lines)),
        ("an answer of claude, in pieces of 100 bytes", peak("claude", claude), floor(KEEP_RESULT, claude)),
        ("1 GB on a pipe, ended at 256 MiB", peak("pipe", gigabyte), floor(KEEP_START, gigabyte)),
        ("100 MB of noise on stderr", peak("pipe", noise), peak("pipe", WRITE_LINES % ("", 0, "stderr"))),
    )
    print(f"{megabytes} MB of output:")
    for name, most, least in rows:
        print(f"{name:<45} {most:6d} MiB  {most / least:4.2f} x {least} MiB")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        turn(*sys.argv[1:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) == 2 else 250)
