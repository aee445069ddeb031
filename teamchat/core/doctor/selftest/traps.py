"""What a CLI must ignore in a read turn: a project's settings and `.env`, and the user's MCP servers.

Whatever acts makes a file of its own, or is in what the model receives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from teamchat.core.agents import CLIS
from teamchat.runners.selftest import SelfTest


class Traps(Struct, frozen=True):
    """The folder in which each sprung trap leaves a file."""

    folder: Path

    @property
    def project(self) -> bool:
        return (self.folder / "project").exists()

    @property
    def servers(self) -> bool:
        return (self.folder / "server").exists()


@contextmanager
def trapped(folder: Path, work: Path, home: Path, test: SelfTest) -> Iterator[Traps]:
    """Set the traps for one turn, in the workspace and in the user's settings. Sprung traps leave files in `folder`."""
    folder.mkdir()
    told = ["touch", str(folder / "project")]  # of all vendors: a CLI may read another one's
    files = {path: text for row in CLIS for path, text in row.self_test.traps(work, told).items()}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    users = home / test.settings
    before = users.read_text() if users.exists() else None
    users.parent.mkdir(parents=True, exist_ok=True)
    users.write_text(test.with_server(before, ["touch", str(folder / "server")]))
    try:
        yield Traps(folder)
    finally:
        for path in files:
            path.unlink()
        users.unlink() if before is None else users.write_text(before)
