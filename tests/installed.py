"""Agent CLIs that are installed, as far as `--version` goes: tiny programs on a PATH of the test's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.real.clis import PINNED

SAYS = {
    "claude": f"{PINNED['claude']} (Claude Code)",
    "codex": f"codex-cli {PINNED['codex']}",
    "gemini": PINNED["gemini"],
}


def install(world: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Path:
    """Put programs of these names first on PATH, which say the pinned version; returns their folder."""
    folder = world / "bin"
    folder.mkdir(exist_ok=True)
    for name in names:
        program(folder / name, f"echo '{SAYS[name]}'")
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), os.environ["PATH"])))
    return folder


KILLS_IN_TIME = """\
shift 3
"$@" &
until grep -qrs --include=stdout "Half of the answer" "$TEAMCHAT_HOME"; do
    kill -0 $! || exit 1
    /bin/sleep 0.05
done
kill -KILL $!
touch "$HOME/killed"
wait $!
"""


def kills_in_time(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `timeout -s KILL 5` kill whoever runs `examples/slow` in the middle of its answer, whenever that is.

    Its `sleep 6` lasts until then, and no longer.
    """
    folder = install(world, monkeypatch)
    program(folder / "timeout", KILLS_IN_TIME)
    program(folder / "sleep", '[ -e "$HOME/killed" ] || exec /bin/sleep 600')


def program(path: Path, script: str) -> Path:
    """A shell script that can be run."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
