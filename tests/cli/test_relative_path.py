"""A PATH with relative folders in it runs no program of the folder that one stands in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.installed import program
from tests.program import cli

HERE = Path()


@pytest.mark.parametrize("command", [("doctor",), ("send", "Hi")], ids=" ".join)
def test_no_program_of_the_repository_runs(world: Path, command: tuple[str, ...]) -> None:
    canary = world / "ran"
    (HERE / "bin").mkdir()
    for name in ("claude", "codex", "gemini", "node", "git"):
        for folder in (HERE, HERE / "bin"):
            program(folder / name, f"touch '{canary}'; echo 1.0.0")
    done = cli(*command, env={"PATH": f".::bin:../work/bin:{os.environ['PATH']}:."})
    assert done.code == 11, done.out + done.err
    assert not canary.exists()


def test_where_no_folder_is_left_the_systems_own_count(world: Path) -> None:
    program(HERE / "claude", f"touch '{world / 'ran'}'; echo 1.0.0")
    assert cli("doctor", env={"PATH": "."}).code == 11
    assert not (world / "ran").exists()
