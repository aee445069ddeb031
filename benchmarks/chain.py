"""What memory saves: ten turns between a writer and a reviewer who look at the same files.

The real CLIs ask a scripted model on loopback, which has a file read whenever its text is not in what the model gets.
So a turn that begins anew reads again, and one that goes on does not. What counts is all that the model is sent; the
floor is one plain session of the same CLI, in which the same model says the same by itself.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.real_clis import of_each_cli
from teamchat.core.agents import AGENT_TYPES
from teamchat.runners.agent_events import VendorSession
from teamchat.runners.base import Job, Vendor
from tests.real import clis
from tests.real.model.replies import Reply, Request, ToolUse
from tests.real.model.server import ModelServer
from tests.real.model.table import MODELS

TURNS = 10
FILES = ("spec.md", "code.py")
LINE = "{name} line {number}: what a member has to know before it can write or review anything."
LINES = 80  # of each file: 7 KB
WORDS = 160  # of each answer: 1 KB
MOST = 1.3
LATEST_S = 5  # of a minute, at which a run of Gemini begins


def said(number: int) -> str:
    """Words of no meaning; Gemini takes a text that repeats itself for a loop and ends the turn."""
    letters = random.Random(number)  # noqa: S311 (no secret)
    return " ".join("".join(letters.choices("aeilnorst", k=6)) for _ in range(WORDS))


def read(vendor: Vendor, name: str) -> ToolUse:
    asked: dict[Vendor, ToolUse] = {
        "claude": ToolUse("Read", {"file_path": name}),
        "codex": ToolUse("exec_command", {"cmd": f"cat {name}"}),
        "gemini": ToolUse("read_file", {"file_path": name}),
    }
    return asked[vendor]


@dataclass
class Script:
    """The model: reads what it has not got, then says its part, and calls the other one until all is said."""

    vendor: Vendor
    chain: bool
    reads: list[str] = field(default_factory=list)
    sent: int = 0
    turn: int = 0

    def __call__(self, request: Request) -> Reply:
        self.sent += len(request.raw)
        missing = [name for name in FILES if LINE.format(name=name, number=LINES).encode() not in request.raw]
        if missing:
            self.reads += missing
            return Reply(tools=tuple(read(self.vendor, name) for name in missing))
        self.turn += 1
        other = "" if self.turn == TURNS or not self.chain else f"\n[NEXT: {('reviewer', 'writer')[self.turn % 2 - 1]}]"
        return Reply(f"Turn {self.turn}: {said(self.turn)}.{other}")


@contextmanager
def world(programs: str) -> Iterator[tuple[ModelServer, Path, dict[str, str]]]:
    """A model, a folder with the files, and the environment of a fresh user."""
    with tempfile.TemporaryDirectory() as name, ModelServer() as server:
        home, work = Path(name) / "home", Path(name) / "work"
        home.mkdir()
        work.mkdir()
        for file in FILES:
            lines = (LINE.format(name=file, number=number) for number in range(1, LINES + 1))
            (work / file).write_text("\n".join(lines) + "\n")
        yield server, work, {**clis.environment(home, server.url, programs), "TEAMCHAT_HOME": f"{name}/state"}


def chained(vendor: Vendor, memory: str, programs: str) -> Script:
    """The chain in teamchat, with two members of that vendor."""
    script = Script(vendor, chain=True)
    with world(programs) as (server, work, env):
        server.script(vendor, script)
        if (vendor, memory) == ("gemini", "resume"):
            wait_for_a_new_minute()
        members = (
            f'[[members]]\nname = "{name}"\nagent = "{vendor}"\nmodel = "{MODELS[vendor]}"\nmemory = "{memory}"\n'
            f'system_instruction = "You are the {name}."\n'
            for name in ("writer", "reviewer")
        )
        (work / "teamchat.toml").write_text("".join(members))
        argv = [sys.executable, "-m", "teamchat", "send", "--json", "--to", "writer", "Write it, as spec.md says."]
        done = subprocess.run(
            argv, cwd=work, env=env | {"PYTHONPATH": str(Path.cwd())}, stdin=subprocess.DEVNULL, capture_output=True,
            check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if (lines[-1]["code"], lines[-1]["turns"], script.turn) != (0, TURNS, TURNS):
            failed = [line for line in lines if line.get("ok") is False or line["type"] in ("note", "warning", "retry")]
            raise RuntimeError(f"{script.turn} of {TURNS} turns, {lines[-1]}, {failed}, {done.stderr.decode()}")
    return script


def wait_for_a_new_minute() -> None:
    """Wait for a new minute: in another minute a session of Gemini repeats what tools returned (0.61.0)."""
    while time.time() % 60 > LATEST_S:
        time.sleep(0.1)


def plain(vendor: Vendor, programs: str) -> Script:
    """The same said in one session of the CLI by itself, which a person asks to go on."""
    script = Script(vendor, chain=False)
    with world(programs) as (server, work, env):
        server.script(vendor, script)
        session = None
        if vendor == "gemini":
            wait_for_a_new_minute()
        for number in range(1, TURNS + 1):
            asked = "Write it, as spec.md says." if number == 1 else ("Write on.", "Review it.")[number % 2 - 1]
            session = turn(vendor, asked, session, work, env)
        assert script.turn == TURNS, script
    return script


def turn(vendor: Vendor, asked: str, session: str | None, work: Path, env: Mapping[str, str]) -> str:
    """A turn of the CLI alone, with the flags that a member has; its session."""
    runner = AGENT_TYPES[vendor].runner
    with tempfile.TemporaryDirectory() as scratch:
        job = Job((vendor,), work, Path(scratch), model=MODELS[vendor], memory="resume", resumes=session, env=env)
        command = runner.command(job)
        command.write_files()
        done = clis.run(command.argv, asked.encode(), work, {**env, **command.env}, 120)
    assert done.exit_code == 0, done.stderr
    events = (event for line in done.stdout.split("\n") for event in runner.parser().feed(line.encode()))
    return next(event.id for event in events if isinstance(event, VendorSession))


def measures(_quick: bool) -> Measures:
    yield from of_each_cli("{}", compared)


def compared(vendor: Vendor, programs: str) -> Iterator[Figure]:
    """What the model is sent, and how often it read a file again that it had read before."""
    floor = plain(vendor, programs)
    for kind in ("resume", "fresh"):
        script = chained(vendor, kind, programs)
        again = len(script.reads) - 2 * len(FILES)
        bound = MOST if kind == "resume" else None
        yield Figure(
            name=f"{vendor}, {kind}", unit="KB", value=script.sent / 1000, floor=floor.sent / 1000,
            floor_is="plain session", bound=bound, note=f"{len(script.reads)} files read",
        )  # fmt: skip
        yield Figure(name=f"{vendor}, {kind}, read again", unit="files", value=again, bound=bound and 0)
