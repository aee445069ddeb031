from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import notes
from tests.program import Result, cli, run_here
from tests.scripted_team import Crew, crew


@pytest.fixture
def made(world: Path) -> Crew:
    made = crew(world, {"max": ["One.", "Two.", "Three."]})
    assert run_here("send", "Hi").code == 0
    return made


def test_members_are_told_of_it_until_it_is_taken_away(made: Crew) -> None:
    assert run_here("task", "Build  the\tlogin\npage").code == 0
    assert run_here("send", "Go").code == 0
    assert run_here("task", "--clear").code == 0
    assert run_here("send", "Go").code == 0
    assert ["Build  the\tlogin\npage" in prompt for prompt in made.prompts("max")] == [False, True, False]


def test_each_session_begins_with_the_task_of_the_team_file(world: Path) -> None:
    crew(world, {"max": ["One.", "Two."]}, team={"task": "Of the file"})
    for name in ("one", "two"):
        assert run_here("send", "--new", "--session", name, "Hi").code == 0
    assert run_here("task", "--session", "one", "Another").code == 0
    assert run_here("task", "--session", "one").out == "Another\n"
    assert run_here("task", "--session", "two").out == "Of the file\n"


@pytest.mark.usefixtures("made")
def test_a_long_one_is_cut_and_says_so() -> None:
    cut = "the task is longer than 5120 bytes, and was cut to its beginning"
    assert cli("task", "é" * 3000) == Result(0, "", notes("the task of session s1 is set", cut))
    assert run_here("task").out == "é" * 2560 + "\n"
    sent = cli("send", f"[TEAM_TASK: {'x' * 6000}] Go")
    assert f"· {cut}\n" in sent.err
    assert "ContextManager" not in sent.err
    assert run_here("task").out == "x" * 5120 + "\n"


def test_a_task_that_is_no_utf_8_is_kept_as_far_as_it_can_be(made: Crew) -> None:
    assert run_here("task", "a\udcffb") == Result(0, "", notes("the task of session s1 is set"))
    assert run_here("task").out == "a\ufffdb\n"
    assert made.file.exists()


@pytest.mark.usefixtures("made")
def test_bare_words_are_the_task() -> None:
    assert run_here("task", "Build", "the", "login page").code == 0
    assert run_here("task").out == "Build the login page\n"
