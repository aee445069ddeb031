"""`teamchat learn`: lessons are kept, listed, forgotten, and told to members."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import actors, notes, objects, refused, rows, steady
from tests.program import Result, run_here
from tests.scripted_team import crew

NOTHING = notes("there are no lessons yet; add one: teamchat learn 'Run make lint before you commit'")


def test_lessons_are_kept_listed_and_forgotten(world: Path) -> None:
    crew(world, {"max": ["Hi."]})
    assert run_here("learn") == Result(0, "", NOTHING)
    assert run_here("learn", "Run make lint") == Result(0, "", notes("lesson 1 is learned"))
    run_here("send", "Hi")
    assert run_here("learn", "Never\n push") == Result(0, "", notes("lesson 2 is learned"))
    assert run_here("learn", "Never push") == Result(0, "", notes("lesson 2 already exists"))
    assert steady(run_here("learn")) == Result(0, "2  WHEN  s1  Never push\n1  WHEN  -  Run make lint\n", "")
    assert run_here("learn", "--delete", "2") == Result(0, "", notes("lesson 2 is deleted"))
    (listed,) = objects(run_here("learn", "--json"))
    assert (listed["type"], listed["number"], listed["text"], listed["session"]) == ("lesson", 1, "Run make lint", None)


def test_a_member_is_told_what_was_learned(world: Path) -> None:
    made = crew(world, {"max": ["Hi."]})
    run_here("learn", "Run make lint")
    run_here("send", "Hi")
    assert "Run make lint\n" in made.prompts("max")[0]
    assert "  experience lesson 1\n" in run_here("show").out


def test_experience_can_be_switched_off() -> None:
    actors({"max": []}, team="[experience]\nenabled = false")
    run_here("learn", "Run make lint")
    assert "make lint" not in run_here("send", "--dry-run", "Hi").out


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        ([""], 2, "the lesson is empty"),
        (["x", "--delete", "1"], 2, "--delete takes no text"),
        (["--delete", "1"], 4, "there is no lesson 1"),
        (["--delete", "999999999"], 4, "there is no lesson 999999999"),
        (["x", "--session", "none"], 4, "there is no session 'none' (sessions: none yet)"),
    ],
)
def test_what_can_not_be_learned_is_one_line(world: Path, args: list[str], code: int, error: str) -> None:
    crew(world, {"max": []})
    run_here("learn")
    before = rows()
    ran = run_here("learn", *args)
    assert (ran.code, refused(ran)) == (code, error)
    assert rows() == before


def test_bare_words_are_the_lesson(world: Path) -> None:
    crew(world, {"max": []})
    assert run_here("learn", "Run", "make lint").code == 0
    assert steady(run_here("learn")).out == "1  WHEN  -  Run make lint\n"
