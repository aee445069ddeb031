"""What reading the JSON lines of an agent costs: time beside `json.loads`.

The streams have the shapes of Claude, Codex and Gemini: text in small pieces, tool calls with their results, an answer.
The bounds are for the three together, which have a third of the bytes each. Codex alone is over them, because each of
its lines is an event that is stored and printed. The floor is a loop of `json.loads` over the same lines, in a process
of its own, which writes nothing: the time that the disk takes to keep the events moves the figure by a tenth. The time
of a `send` whose agent answers at once is subtracted.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.world import PERSON, TEAMCHAT, World, member, world

MEGABYTE = 1_000_000
MEGABYTES, QUICK_MEGABYTES = 200, 20
REPEATS = 2
MODES = {"send": (), "send --json --stream": ("--json", "--stream")}
BOUND = 3.0
SESSION = "5e551017-0000-4000-8000-000000000001"
WORDS = ("The", " parser", " reads", " one", " line", " at", " a", " time", " and", ' "keeps"', " what", " it\n", " –")
OUTPUT = "".join(f"teamchat/core/text/words.py:{line}: def words(text: str) -> list[str]:\n" for line in range(60))
PIECES = 40  # of a text
FLOOR = """
import json, sys, time
began = time.perf_counter()
with open(sys.argv[1], "rb") as lines:
    for line in lines:
        json.loads(line)
print(time.perf_counter() - began)
"""


def in_json(event: dict[str, object]) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def claude_step(number: int) -> Iterator[dict[str, object]]:
    """A request that says something and calls a tool, and the tool's result."""
    words = [WORDS[(number + at) % len(WORDS)] for at in range(PIECES)]
    tool = f"toolu_{number:020}"
    call: dict[str, object] = {
        "type": "tool_use",
        "id": tool,
        "name": "Bash",
        "input": {"command": f"grep -n words part-{number}.py"},
    }
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 812, "cache_read_input_tokens": 15_000 + number}
    message = {"model": "claude-opus", "id": f"msg_{number:020}", "type": "message", "role": "assistant"}
    of = {"session_id": SESSION, "parent_tool_use_id": None}

    def streamed(event: dict[str, object]) -> dict[str, object]:
        return {"type": "stream_event", "event": event, **of, "uuid": f"{number:08}-0000-4000-8000-000000000002"}

    def said(block: dict[str, object]) -> dict[str, object]:
        whole = {**message, "content": [block], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        return {"type": "assistant", "message": whole, **of, "uuid": f"{number:08}-0000-4000-8000-000000000003"}

    begun = {**message, "content": [], "usage": {**usage, "output_tokens": 1}}
    yield streamed({"type": "message_start", "message": begun})
    yield streamed({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for word in words:
        delta = {"type": "text_delta", "text": word}
        yield streamed({"type": "content_block_delta", "index": 0, "delta": delta})
    yield said({"type": "text", "text": "".join(words)})
    yield streamed({"type": "content_block_stop", "index": 0})
    yield streamed({"type": "content_block_start", "index": 1, "content_block": {**call, "input": {}}})
    for part in ('{"command":', ' "grep -n words', f' part-{number}.py"', "}"):
        delta = {"type": "input_json_delta", "partial_json": part}
        yield streamed({"type": "content_block_delta", "index": 1, "delta": delta})
    yield said(call)
    yield streamed({"type": "content_block_stop", "index": 1})
    spent = {**usage, "output_tokens": 60}
    yield streamed({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": spent})
    yield streamed({"type": "message_stop"})
    result = {"tool_use_id": tool, "type": "tool_result", "content": OUTPUT, "is_error": False}
    yield {
        "type": "user",
        "message": {"role": "user", "content": [result]},
        **of,
        "tool_use_result": {"stdout": OUTPUT},
    }


def claude_begin() -> Iterator[dict[str, object]]:
    tools = ["Bash", "Edit", "Read", "Write"]
    yield {"type": "system", "subtype": "init", "session_id": SESSION, "model": "claude-opus", "tools": tools}


def claude_end() -> Iterator[dict[str, object]]:
    usage = {"input_tokens": 11, "output_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3}
    of = {"session_id": SESSION, "parent_tool_use_id": None}
    answer = {"id": "msg_last", "role": "assistant", "content": [{"type": "text", "text": "Done."}], "usage": usage}
    yield {"type": "assistant", "message": answer, **of}
    result = {"result": "Done.", "total_cost_usd": 0.25, "usage": usage, "permission_denials": []}
    yield {"type": "result", "subtype": "success", "is_error": False, "num_turns": 9, **result, "session_id": SESSION}


def codex_step(number: int) -> Iterator[dict[str, object]]:
    """Something said, something thought, a command with its output, a changed file."""

    def item(at: int, kind: str, **fields: object) -> dict[str, object]:
        return {"id": f"item_{number * 4 + at}", "type": kind, **fields}

    command = {"command": f"/bin/bash -lc 'grep -n words part-{number}.py'"}
    text = "".join(WORDS[(number + at) % len(WORDS)] for at in range(PIECES))
    changes = [{"path": f"/work/part-{number % 100}.py", "kind": "update"}]
    yield {"type": "item.completed", "item": item(0, "reasoning", text=text)}
    yield {"type": "item.completed", "item": item(1, "agent_message", text=text)}
    begun = item(2, "command_execution", **command, aggregated_output="", exit_code=None, status="in_progress")
    yield {"type": "item.started", "item": begun}
    ended = item(2, "command_execution", **command, aggregated_output=OUTPUT, exit_code=0, status="completed")
    yield {"type": "item.completed", "item": ended}
    yield {"type": "item.started", "item": item(3, "file_change", changes=changes, status="in_progress")}
    yield {"type": "item.completed", "item": item(3, "file_change", changes=changes, status="completed")}


def codex_begin() -> Iterator[dict[str, object]]:
    yield {"type": "thread.started", "thread_id": SESSION}
    yield {"type": "turn.started"}


def codex_end() -> Iterator[dict[str, object]]:
    yield {"type": "item.completed", "item": {"id": "item_last", "type": "agent_message", "text": "Done."}}
    yield {"type": "turn.completed", "usage": {"input_tokens": 11, "cached_input_tokens": 3, "output_tokens": 7}}


def gemini_step(number: int) -> Iterator[dict[str, object]]:
    """A text in pieces, and a tool's call with its result."""
    at = {"timestamp": "2026-11-23T08:00:00.000Z"}
    for place in range(PIECES):
        word = WORDS[(number + place) % len(WORDS)]
        yield {"type": "message", **at, "role": "assistant", "content": word, "delta": True}
    tool = f"run_shell_command-{number:013}"
    given = {"command": f"grep -n words part-{number}.py"}
    yield {"type": "tool_use", **at, "tool_name": "run_shell_command", "tool_id": tool, "parameters": given}
    yield {"type": "tool_result", **at, "tool_id": tool, "status": "success", "output": OUTPUT}


def gemini_begin() -> Iterator[dict[str, object]]:
    yield {"type": "init", "session_id": SESSION, "model": "gemini-pro"}


def gemini_end() -> Iterator[dict[str, object]]:
    yield {"type": "message", "role": "assistant", "content": "Done.", "delta": True}
    stats = {"total_tokens": 18, "input_tokens": 11, "output_tokens": 7, "cached": 3, "tool_calls": 1}
    yield {"type": "result", "status": "success", "stats": stats}


Events = Iterator[dict[str, object]]
SHAPES: dict[str, tuple[Callable[[], Events], Callable[[int], Events], Callable[[], Events]]] = {
    "claude": (claude_begin, claude_step, claude_end),
    "codex": (codex_begin, codex_step, codex_end),
    "gemini": (gemini_begin, gemini_step, gemini_end),
}


def write_stream(path: Path, shape: str, size: int) -> None:
    """A file of so many bytes, and a few more: a whole turn."""
    begin, step, end = SHAPES[shape]
    with path.open("wb") as file:
        file.writelines(map(in_json, begin()))
        for number in itertools.count():
            if file.tell() >= size:
                break
            file.write(b"".join(map(in_json, step(number))))
        file.writelines(map(in_json, end()))


def floor_s(stream: Path) -> float:
    """The seconds that `json.loads` takes over the lines of a file."""
    return float(subprocess.run([sys.executable, "-c", FLOOR, str(stream)], capture_output=True, check=True).stdout)


def told_s(here: World, *args: str) -> float:
    """The seconds of a `send` in a new session, whose output is kept in a file."""
    printed = f"{here.folder.parent}/printed"
    send = [*TEAMCHAT, "send", "--new", *args, "Go"]
    return here.run(["sh", "-c", f'exec "$@" > {printed}', "-", *send]).wall_ms / 1000


def times(megabytes: int) -> Iterator[Figure]:
    floor, taken = 0.0, dict.fromkeys(MODES, 0.0)
    for shape in SHAPES:
        least, seconds = beside_floor(shape, megabytes * MEGABYTE // len(SHAPES))
        floor += least
        for mode in MODES:
            taken[mode] += seconds[mode]
            yield Figure(
                name=f"times, {shape}: {mode}", unit="s", value=seconds[mode], floor=least, floor_is="json.loads"
            )
    for mode in MODES:
        yield Figure(
            name=f"times, all: {mode}", unit="s", value=taken[mode], floor=floor, floor_is="json.loads", bound=BOUND
        )


def beside_floor(shape: str, size: int) -> tuple[float, dict[str, float]]:
    """The seconds that `json.loads` takes for a stream, and those of each mode, interleaved."""
    with world() as here:
        stream = here.folder.parent / "stream"
        here.team(PERSON + member("max", ["/bin/sh", "-c", f"cat {stream}", "-"], like=shape))
        write_stream(stream, shape, 0)
        idle = {mode: min(told_s(here, *args) for _ in range(3)) for mode, args in MODES.items()}
        write_stream(stream, shape, size)
        floors, taken = [floor_s(stream)], dict[str, list[float]]()
        for _ in range(REPEATS):
            for mode, args in MODES.items():
                taken.setdefault(mode, []).append(told_s(here, *args) - idle[mode])
                floors.append(floor_s(stream))
    return statistics.median(floors), {mode: statistics.median(seconds) for mode, seconds in taken.items()}


def measures(quick: bool) -> Measures:
    megabytes = QUICK_MEGABYTES if quick else MEGABYTES
    yield "times", partial(times, megabytes)
