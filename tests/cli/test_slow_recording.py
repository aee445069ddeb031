"""A person reads what a turn waits for where recording its files takes long."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.helpers import objects
from tests.core.checkpoint.worktree import WorkTree
from tests.program import ended, start
from tests.screens import screen
from tests.shell_team import repository, shell

WORDS = "recording the files"


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return repository(tmp_path / "unused")


@pytest.fixture
def slow_git(tmp_path: Path) -> dict[str, str]:
    """An environment whose git compares files once there is a file `go`, which it removes."""
    program = tmp_path / "slow" / "git"
    program.parent.mkdir()
    go = program.with_name("go")
    waits = f"while [ ! -e {go} ]; do sleep 0.05; done; rm {go}"
    program.write_text(f'#!/bin/sh\n[ "$1" = diff-files ] && {{ {waits}; }}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    return {"GO": str(go), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("command", [("send", "Go"), ("chat", "--new")])
def test_the_line_of_a_member_says_that_its_files_are_recorded(
    tree: WorkTree, slow_git: dict[str, str], command: tuple[str, ...]
) -> None:
    shell(max="echo new > made; sleep 0.3")
    with screen(*command, columns=120, env=slow_git) as shown:
        if command[0] == "chat":
            shown.until(lambda text: "›" in text)
            shown.child.send("Go\r")
        shown.until(lambda text: WORDS in text)  # before its agent starts
        assert not (tree.top / "made").exists()
        Path(slow_git["GO"]).touch()
        shown.until(lambda _: (tree.top / "made").exists())
        shown.until(lambda text: WORDS in text)  # and after its end
        Path(slow_git["GO"]).touch()
        shown.until(lambda text: "Done" in text and WORDS not in text)


@pytest.mark.usefixtures("tree")
def test_a_script_reads_nothing_of_it(slow_git: dict[str, str]) -> None:
    shell(max="true")
    with start("send", "--json", "--stream", "Go", env={**os.environ, **slow_git}) as process:
        while process.poll() is None:
            time.sleep(1.3)
            Path(slow_git["GO"]).touch()
        sent = ended(process)
    assert (sent.code, WORDS in sent.err) == (0, False)
    assert "recording_files" not in {line["type"] for line in objects(sent)}
