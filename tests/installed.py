"""Agent CLIs that are installed, as far as `--version` goes: tiny programs on a PATH of the test's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SAYS = {"claude": "2.1.197 (Claude Code)", "codex": "codex-cli 0.169.0", "gemini": "0.61.0"}


def install(world: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Path:
    """Put programs of these names first on PATH, which say the tested version; returns their folder."""
    folder = world / "bin"
    folder.mkdir(exist_ok=True)
    for name in names:
        program(folder / name, f"echo '{SAYS[name]}'")
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), os.environ["PATH"])))
    return folder


def program(path: Path, script: str) -> Path:
    """A shell script that can be run."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
