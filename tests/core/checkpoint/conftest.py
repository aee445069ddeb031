from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.checkpoint.worktree import WorkTree


@pytest.fixture(autouse=True)
def _a_configuration_of_the_tests_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gitconfig"
    file.write_text("[user]\n\tname = kai\n\temail = kai@example.org\n[init]\n\tdefaultBranch = main\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(file))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    """A repository of one commit with two files."""
    files = {"notes.txt": b"first\nsecond\n", "src/app.py": b"print()\n"}
    return WorkTree.committed(tmp_path / "work", tmp_path / "state", files)


@pytest.fixture
def git_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The commands of git that were run since it was asked last."""
    log, program = tmp_path / "git.log", tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    def since() -> list[str]:
        told = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return told

    return since
