"""A project whose opencode configuration could run code gets no turn, unless it is meant to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.runners.base import Access, Job
from teamchat.runners.opencode.project import NAMES
from teamchat.runners.opencode.runner import OpencodeRunner

RUNNER = OpencodeRunner()


def env_of(cwd: Path, home: Path, *, project_settings: bool = False) -> dict[str, str]:
    """The environment of a turn in that folder."""
    job = Job(("opencode",), cwd, Path("/scratch"), env={"HOME": str(home)}, project_settings=project_settings)
    return {"HOME": str(home), "PWD": str(cwd), **RUNNER.command(job).env}


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "part"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("access", ["read", "edit", "full"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("above", [False, True])
def test_what_may_name_plugins_refuses_every_access(
    cwd: Path, tmp_path: Path, name: str, access: Access, *, above: bool
) -> None:
    file = (cwd.parent if above else cwd) / name
    file.parent.mkdir(exist_ok=True)
    file.mkdir()
    refusal = RUNNER.refusal(access, env_of(cwd, tmp_path / "home"))
    assert refusal == (f"opencode runs the plugins that {file} names, with any options; set project_settings = true")
    assert RUNNER.refusal(access, env_of(cwd, tmp_path / "home", project_settings=True)) is None


def test_a_link_that_leads_nowhere_yet_counts(cwd: Path, tmp_path: Path) -> None:
    (cwd / "opencode.json").symlink_to(tmp_path / "later.json")
    assert RUNNER.refusal("read", env_of(cwd, tmp_path / "home")) is not None


def test_the_folder_behind_a_link_counts(cwd: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(cwd)
    (cwd.parent / "opencode.jsonc").touch()
    assert RUNNER.refusal("read", env_of(link, tmp_path / "home")) is not None


@pytest.mark.parametrize("name", ["AGENTS.md", ".opencode/agent/a.md", ".opencode/command/c.md", ".opencode/tool/t.ts"])
def test_what_names_no_plugin_does_not(cwd: Path, tmp_path: Path, name: str) -> None:
    (cwd / name).parent.mkdir(parents=True, exist_ok=True)
    (cwd / name).touch()
    assert RUNNER.refusal("read", env_of(cwd, tmp_path / "home")) is None


@pytest.mark.parametrize("name", NAMES)
def test_what_lies_in_the_home_folder_is_the_users_own(cwd: Path, name: str) -> None:
    home = cwd.parent
    (home / name).parent.mkdir(exist_ok=True)
    (home / name).touch()
    assert RUNNER.refusal("full", env_of(cwd, home)) is None


def test_without_a_folder_nothing_is_looked_for(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cwd)
    (cwd / "opencode.json").touch()
    assert RUNNER.refusal("full", dict(os.environ)) is None


def test_a_projects_own_things_stay_off_unless_they_are_wanted(cwd: Path) -> None:
    job = Job(("opencode",), cwd, Path("/scratch"))
    switches = {"OPENCODE_DISABLE_PROJECT_CONFIG": "1", "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1"}
    assert switches.items() <= RUNNER.command(job).env.items()
    assert not switches.keys() & RUNNER.command(replace(job, project_settings=True)).env.keys()
