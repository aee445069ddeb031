"""What a Python program gets from `import teamchat`, and the example that runs a conversation with it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import teamchat
from tests.program import ROOT

EXAMPLE = ROOT / "examples" / "python" / "conversation.py"
PAGE = ROOT / "docs" / "howto" / "python.md"


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.usefixtures("world")
def test_the_example_runs_and_prints_what_the_page_shows() -> None:
    ran = python(str(EXAMPLE))
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert blocks("text") == [f"$ python conversation.py\n{ran.stdout}"]


def test_the_page_shows_the_example() -> None:
    assert blocks("python") == [EXAMPLE.read_text(encoding="utf-8")]


def test_the_example_tells_an_error_in_one_line(world: Path) -> None:
    (world / "work" / "conversation.db").write_text("no store\n" * 1000)
    ran = python(str(EXAMPLE))
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert re.fullmatch(r".* \(exit code 13\)\n", ran.stderr)


@pytest.mark.parametrize("name", teamchat.__all__)
def test_each_name_is_there_and_on_the_page(name: str) -> None:
    assert getattr(teamchat, name) is not None
    assert name in dir(teamchat)
    assert re.search(rf"`(await )?(.*\W)?{name}\b", PAGE.read_text(encoding="utf-8"))


def test_errors_are_those_that_a_coordinator_raises() -> None:
    assert issubclass(teamchat.errors.UsageError, teamchat.errors.TeamchatError)


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match=r"^module 'teamchat' has no attribute 'Nobody'$"):
        teamchat.Nobody  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import teamchat; print(*sorted(set(sys.modules) - before))"
    assert python("-c", code).stdout == "__future__ teamchat\n"


def test_a_manager_of_its_own_needs_no_store() -> None:
    manager = teamchat.ContextManager(context_window_size=0)
    manager.set_team_task("Explain the haiku")
    assert teamchat.CODEX.assemble(manager.get_context_for_agent()).prompt == "[TEAM_TASK]\nExplain the haiku"
