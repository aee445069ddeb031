"""A folder with a team, a home and a store of its own, in which teamchat runs."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.timing import Took, run
from teamchat.cli.startup.workspace import store_file

ROOT = Path(__file__).parent.parent
TEAMCHAT = (sys.executable, "-m", "teamchat")
MEASURED = (sys.executable, str(ROOT / "tests" / "fakes" / "measured.py"))
"""teamchat, which leaves the most memory that it took in its folder, for `peak_mb`."""
PERSON = '[[members]]\nname = "kai"\ntype = "human"\n'


class World(msgspec.Struct, frozen=True):
    folder: Path
    env: Mapping[str, str]

    def enter(self) -> Path:
        """Make its state folder that of this process, too. The file of its store, which a command makes."""
        os.environ["TEAMCHAT_HOME"] = self.env["TEAMCHAT_HOME"]
        return store_file(self.folder)

    def team(self, text: str) -> None:
        """Write the team file, and trust it."""
        (self.folder / "teamchat.toml").write_text(text)
        self.teamchat("trust")

    def teamchat(self, *args: str, stdin: bytes = b"", codes: Sequence[int] = (0,)) -> Took:
        return self.run((*TEAMCHAT, *args), stdin, codes)

    def run(self, argv: Sequence[str], stdin: bytes = b"", codes: Sequence[int] = (0,)) -> Took:
        return run(argv, self.folder, self.env, stdin, codes)


def peak_mb(folder: Path) -> float:
    """The most memory that the last command of `MEASURED` in that folder took."""
    return int((folder / "peak").read_text()) / 1e6


@contextmanager
def world(team: str = "") -> Iterator[World]:
    with tempfile.TemporaryDirectory() as name:
        folder, home = Path(name) / "work", Path(name) / "home"
        folder.mkdir()
        home.mkdir()
        dropped = {name for name in os.environ if name.startswith("TEAMCHAT_")}
        dropped.add("PYTHONDONTWRITEBYTECODE")  # an installed program is compiled, as the packages of the floors are
        env = {name: value for name, value in os.environ.items() if name not in dropped}
        env |= {"HOME": str(home), "TEAMCHAT_HOME": f"{home}/state", "PYTHONPATH": str(ROOT)}
        made = World(folder, env | {"TERM": "xterm-256color"})
        if team:
            made.team(team)
        yield made


def member(name: str, command: Sequence[str], like: str = "") -> str:
    """The lines of a team file for a member whose agent is this command."""
    speaks = f'like = "{like}"\n' if like else ""
    head = f'[[members]]\nname = "{name}"\nagent = "{name}-agent"\n'
    return f"{head}[agents.{name}-agent]\ncommand = {json.dumps(list(command))}\n{speaks}"
