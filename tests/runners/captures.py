"""What the real CLIs printed, recorded at pinned versions against a scripted model server (`tests/captures`)."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from teamchat.runners.agent_events import AgentEvent
from teamchat.runners.base import EventParser, Runner, Verdict
from teamchat.runners.child.supervisor import LineFramer
from teamchat.runners.claude.runner import ClaudeRunner
from teamchat.runners.codex.runner import CodexRunner
from teamchat.runners.gemini.runner import GeminiRunner
from teamchat.runners.opencode.runner import OpencodeRunner

Cli = Literal["claude", "codex", "gemini", "opencode"]
FOLDER = Path(__file__).parent.parent / "captures"
RUNNERS: dict[Cli, Runner] = {
    "claude": ClaudeRunner(),
    "codex": CodexRunner(),
    "gemini": GeminiRunner(),
    "opencode": OpencodeRunner(),
}


@dataclass(frozen=True, slots=True)
class Capture:
    name: str
    argv: tuple[str, ...]
    exit_code: int
    timed_out: bool
    stdout: bytes
    stderr: bytes


@cache
def captures(cli: Cli) -> dict[str, Capture]:
    rows = [json.loads(row) for row in lzma.decompress((FOLDER / f"{cli}.jsonl.xz").read_bytes()).splitlines()]
    return {
        row["name"]: Capture(
            row["name"],
            tuple(row["argv"]),
            row["exit_code"],
            row["timed_out"],
            row["stdout"].encode(),
            row["stderr"].encode(),
        )
        for row in rows
    }


def lines(data: bytes) -> list[bytes]:
    framer = LineFramer()
    return [*framer.push(data), *framer.flush()]


def play(
    parser: EventParser, stdout: list[bytes], stderr: list[bytes], exit_code: int
) -> tuple[list[AgentEvent], Verdict]:
    """All events and the verdict; stderr comes first, as retries and denials do."""
    events = [event for line in stderr for event in parser.feed_stderr(line)]
    events += [event for line in stdout for event in parser.feed(line)]
    return events, parser.finish(exit_code, b"\n".join(stderr).decode(errors="replace"))


def replay(cli: Cli, name: str) -> tuple[list[AgentEvent], Verdict]:
    found = captures(cli)[name]
    return play(RUNNERS[cli].parser(), lines(found.stdout), lines(found.stderr), found.exit_code)
