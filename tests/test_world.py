"""What the other tests rely on: no test reaches the user's own things."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.program import cli, run_here


@pytest.fixture(scope="module", autouse=True)
def users_own_variables() -> Iterator[None]:
    """What may be set on a developer's machine; a module's fixture is there before a test's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "CLAUDECODE", "TEAMCHAT_SESSION"):
            patch.setenv(name, "the user's own")
        yield


def test_no_key_of_the_user_is_left() -> None:
    assert "the user's own" not in os.environ.values()


def test_a_test_stands_in_an_empty_folder_of_its_own(world: Path) -> None:
    assert Path.cwd() == world / "work"
    assert list(Path.cwd().iterdir()) == []
    assert Path.home() == world / "home"
    assert tempfile.gettempdir() == str(world / "tmp")


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_no_real_agent_is_found(agent: str) -> None:
    assert shutil.which(agent) is None


def test_programs_of_the_system_are_found() -> None:
    assert shutil.which("sh")
    assert shutil.which("git")


def test_both_ways_of_running_the_program_say_the_same() -> None:
    assert run_here("--version") == cli("--version")
    assert run_here("nonsense") == cli("nonsense")
