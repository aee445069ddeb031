"""What `.github/` runs is there, and what an issue is asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.program import ROOT

WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_targets_of_make_that_are_there(workflow: Path) -> None:
    for run in re.findall(r"run: make (.*)", workflow.read_text(encoding="utf-8")):
        for target in run.split():
            assert "=" in target or f"\n{target}: " in MAKEFILE, target


def test_the_three_workflows_are_there() -> None:
    assert [path.stem for path in WORKFLOWS] == ["newest", "release", "tests"]


def test_the_tests_run_on_both_systems_from_the_oldest_python_on() -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    (oldest,) = re.findall(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert f'python: ["{oldest}", ' in text
    assert "os: [ubuntu-latest, macos-latest]" in text


def test_no_workflow_names_an_address_or_a_stored_token() -> None:
    for workflow in WORKFLOWS:
        text = workflow.read_text(encoding="utf-8")
        assert "://" not in text
        assert "secrets." not in text
        assert set(re.findall(r"uses: ([\w-]+)/", text)) <= {"actions", "pypa"}


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_an_issue_is_asked_for_what_doctor_says(name: str) -> None:
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8")
    assert "Output of `teamchat doctor`" in text
