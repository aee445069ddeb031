"""`teamchat log`: the checks between the turns where they ran."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import open_store
from teamchat.core.store.checks import checks_of, mark_checks_undone
from tests.cli.checked import checked_crew, repository, until
from tests.cli.helpers import objects
from tests.cli.test_terminal import at_terminal
from tests.program import run_here

SECONDS = re.compile(r"\d+\.\d s")


def shown(*options: str) -> list[str]:
    """The first line of everything that is printed."""
    lines = SECONDS.sub("N s", run_here("log", *options).out).split("\n\n")
    return [line.split("\n")[0] for line in lines if line]


@pytest.fixture
def talk(world: Path) -> None:
    """A red check between two turns, a green one behind the second, and a message of a person behind it."""
    checked_crew(world, {"tests": "test -e done.txt || { echo no; touch done.txt; exit 1; }"})
    repository()
    assert until("tests", rounds=2).code == 0
    assert run_here("send", "[TEAM_TASK: Rest]").code == 0


TALK = [
    "msg-1 kailai:",
    "msg-2 max (turn 1):",
    "check tests: red, exit code 1 · N s · check-1",
    "msg-3 max (turn 2):",
    "check tests: green · N s · check-2",
    "msg-4 kailai:",
]


@pytest.mark.usefixtures("talk")
def test_each_check_is_where_it_ran() -> None:
    assert [line.replace(" -> max", "") for line in shown()] == TALK


@pytest.mark.usefixtures("talk")
@pytest.mark.parametrize(("number", "first"), [(1, 5), (2, 3), (3, 1), (4, 0), (9, 0)])
def test_the_last_messages_have_the_checks_behind_the_first_of_them(number: int, first: int) -> None:
    assert len(shown("-n", str(number))) == len(TALK) - first


@pytest.mark.usefixtures("talk")
def test_json_has_the_fields_of_the_run() -> None:
    lines = objects(run_here("log", "--json"))
    assert [line["type"] for line in lines] == [
        "message", "message", "check_finished", "message", "check_finished", "message",
    ]  # fmt: skip
    red = lines[2]
    assert (red["check"], red["status"], red["exit_code"], red["hidden"]) == ("check-1", "red", 1, False)


@pytest.mark.usefixtures("talk")
def test_undone_checks_are_shown_with_all() -> None:
    assert run_here("undo", "2", "--yes").code == 0
    with open_store(Path.cwd()) as db, db.transaction():
        mark_checks_undone(db, checks_of(db, 1, after=1), undo=1)
    assert not [line for line in shown() if "check-2" in line]
    assert "check tests: green · N s · check-2, undone" in shown("--all")
    hidden = {line["check"]: line["hidden"] for line in objects(run_here("log", "--all", "--json")) if "check" in line}
    assert hidden == {"check-1": False, "check-2": True}
    assert [line["check"] for line in objects(run_here("log", "--json")) if "check" in line] == ["check-1"]


@pytest.mark.usefixtures("talk")
def test_a_terminal_has_them_as_the_live_view() -> None:
    seen = SECONDS.sub("N s", at_terminal("log", kind="xterm-256color").out)
    assert "✗ check tests: red, exit code 1 · N s · check-1" in seen
    assert "✓ check tests: green · N s · check-2" in seen
