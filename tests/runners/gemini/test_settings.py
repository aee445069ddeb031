"""The settings below the user's that each turn of Gemini has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.runners.base import Job
from teamchat.runners.gemini.runner import GeminiRunner
from teamchat.runners.gemini.settings import machines_defaults, only_roots, system_defaults

JOB = Job(("gemini",), Path("/work"), Path("/scratch"), env={"PATH": "/usr/bin:/bin"})
KEPT = {"general": {"sessionRetention": {"enabled": False}}}


def test_no_turn_cleans_up_sessions() -> None:
    assert json.loads(system_defaults(JOB, {})) == KEPT


@pytest.mark.parametrize("git", [None, Path("/state/git")])
def test_the_machines_own_defaults_stay(git: Path | None) -> None:
    theirs = {
        "ui": {"theme": "x"},
        "general": {"vimMode": True, "sessionRetention": {"enabled": True, "maxAge": "7d"}},
        "mcpServers": {"theirs": {"command": "x"}},
    }
    found = json.loads(system_defaults(replace(JOB, git=git), theirs))
    assert found["ui"] == theirs["ui"]
    assert found["general"] == {"vimMode": True, "sessionRetention": {"enabled": False, "maxAge": "7d"}}
    assert list(found["mcpServers"]) == (["theirs", "teamchat"] if git else ["theirs"])


@pytest.mark.parametrize("name", ["GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "GEMINI_CLI_SYSTEM_SETTINGS_PATH"])
def test_defaults_that_anyone_but_root_can_change_are_left_out(tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o777)
    file = tmp_path / "system-defaults.json"
    file.write_text('{"mcpServers": {"theirs": {"command": "x"}}}')
    assert machines_defaults({name: str(file)}) == {}


def test_a_file_of_the_system_is_roots_and_a_missing_one_nobodys(tmp_path: Path) -> None:
    assert only_roots(Path("/etc/passwd"))
    assert not only_roots(Path("/etc/passwd/below"))
    assert not only_roots(tmp_path / "missing")


def test_defaults_that_are_no_json_are_told(tmp_path: Path) -> None:
    file = tmp_path / "system-defaults.json"
    file.write_text("{")
    job = replace(JOB, env={"HOME": str(tmp_path), "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(file)})
    assert [found for found, _ in GeminiRunner().unreadable(job)] == [file]
