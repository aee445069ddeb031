"""The script that Codex finds as git: it fails at Codex's own `git status`, and is git for everything else."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from teamchat.runners.base import Command
from teamchat.runners.codex.git import without_filters

OWN = ("-c", "safe.bareRepository=explicit", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


def git(folder: Path, path: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": path}
    return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def path(tmp_path: Path) -> str:
    assert shutil.which("git")
    variables, files = without_filters(tmp_path / "a scratch", {"PATH": os.environ["PATH"]})
    Command(("codex",), files=files).write_files()
    assert variables == {"PATH": f"{tmp_path / 'a scratch' / '.codex' / 'bin'}:{os.environ['PATH']}"}
    return variables["PATH"]


def test_a_filter_of_the_repository_runs_in_no_call_of_codex_itself(tmp_path: Path, path: str) -> None:
    folder, ran = tmp_path / "repository", tmp_path / "ran"
    folder.mkdir()
    for words in (("init", "--quiet"), ("config", "filter.evil.process", f"touch '{ran}'")):
        assert git(folder, path, *words).returncode == 0
    (folder / ".gitattributes").write_text("* filter=evil\n")
    (folder / "file").write_text("text")
    asked = git(folder, path, *OWN, "status", "--porcelain")
    assert (asked.returncode, asked.stdout) == (128, "")
    assert git(folder, path, *OWN, "rev-parse", "--git-dir").stdout == ".git\n"
    assert not ran.exists()
    assert "file" in git(folder, path, "status", "--porcelain").stdout  # of a tool, which is in the sandbox


def test_where_no_git_is_nothing_is_added(tmp_path: Path) -> None:
    assert without_filters(tmp_path, {"PATH": str(tmp_path)}) == ({}, {})
