"""A user's whole world for the real CLIs: a home, a workspace, a store, and the scripted model behind it all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teamchat.core.files.folders import STORE_NAME
from teamchat.core.store.database import Database
from teamchat.core.store.turns import Turn, turns_of
from teamchat.runners.base import Vendor
from tests.forks import RUN, Program
from tests.real.model.replies import Request
from tests.real.model.server import ModelServer, prompt, system_text
from tests.real.model.table import MODELS

TIMEOUT_S = 180.0  # for what takes seconds where nothing else runs
PANEL = """
[team]
name = "panel"

[[members]]
name = "kailai"
type = "human"

[[members]]
name = "max"
agent = "claude"
model = "claude-opus-4-8"
system_instruction = "You are Max"

[[members]]
name = "sarah"
agent = "codex"
system_instruction = "You are Sarah"

[[members]]
name = "carol"
agent = "gemini"
model = "gemini-2.5-flash"
system_instruction = "You are Carol"
"""
MEMBERS: dict[Vendor, str] = {"claude": "max", "codex": "sarah", "gemini": "carol"}


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished run of teamchat."""

    code: int
    out: str
    err: str
    raw: bytes = b""

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.split("\n") if line]

    @property
    def result(self) -> dict[str, Any]:
        return self.events[-1]


@dataclass(slots=True)
class World:
    server: ModelServer
    env: Mapping[str, str]
    cwd: Path

    def team(self, text: str = PANEL) -> None:
        (self.cwd / "teamchat.toml").write_text(text, encoding="utf-8")

    def member(self, vendor: Vendor, extra: str = "", head: str = "") -> str:
        """A team of one real member and a person; its name."""
        name = MEMBERS.get(vendor, "max")
        person = '[[members]]\nname = "kailai"\ntype = "human"\n'
        member = f'[[members]]\nname = "{name}"\nagent = "{vendor}"\nmodel = "{MODELS[vendor]}"\n{extra}\n'
        self.team(f"[team]\n{head}\n{person}{member}")
        return name

    def start(self, *args: str, stdin: bytes | None = None) -> subprocess.Popen[bytes]:
        return Program(
            [*RUN, *args],
            cwd=self.cwd,
            env=dict(self.env),
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, *args: str, stdin: bytes | None = None) -> Ran:
        with self.start(*args, stdin=stdin) as process:
            out, err = process.communicate(stdin, timeout=TIMEOUT_S)
        return Ran(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"), out)

    def json(self, *args: str, stdin: bytes | None = None) -> Ran:
        ran = self(*args, "--json", stdin=stdin)
        assert ran.out, ran.err
        return ran

    def shown(self, turn: int, what: str = "--prompt") -> str:
        """What `show` says that turn was given."""
        return self("show", str(turn), what).raw.decode()

    def receipt(self, turn: int) -> dict[str, Any]:
        return self("show", str(turn), "--json").result

    @contextmanager
    def store(self) -> Iterator[Database]:
        """What teamchat has stored; quicker than to ask it."""
        (file,) = Path(self.env["TEAMCHAT_HOME"]).rglob(STORE_NAME)
        db = Database(file)
        try:
            yield db
        finally:
            db.close()

    @property
    def turns(self) -> list[Turn]:
        """The receipts of the first session."""
        with self.store() as db:
            return turns_of(db, 1)

    def last(self, vendor: Vendor) -> Request:
        return self.server.turns(vendor)[-1]

    def prompt(self, vendor: Vendor) -> str:
        """What that vendor's model was last asked."""
        return prompt(self.last(vendor))

    def system(self, vendor: Vendor) -> str:
        return system_text(self.last(vendor))


def wait_until(condition: Callable[[], object], seconds: float = TIMEOUT_S) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether that process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def tree(pid: int) -> set[int]:
    """All live descendants of a process."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and alive(int(entry.name)):
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found: set[int] = set()
    frontier = {pid}
    while frontier:
        frontier = {child for child, parent in parents.items() if parent in frontier} - found
        found |= frontier
    return found


def kill(process: subprocess.Popen[bytes]) -> None:
    """kill -9, as a user would."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
