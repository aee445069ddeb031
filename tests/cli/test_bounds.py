"""`--only` and `--turns`: what bounds the run of a hook or a CI job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import notes, objects, queue, said, steady, turn
from tests.program import Result, run_here
from tests.scripted_team import crew

HANDS_OVER = {"max": ["Looks good. [NEXT: sarah]", "Again. [NEXT: sarah]"], "sarah": ["I agree. [NEXT: max]"] * 3}


def test_with_only_the_called_member_answers_and_its_call_is_said_but_not_followed(world: Path) -> None:
    crew(world, HANDS_OVER)
    ran = run_here("send", "--only", "--to", "max", "Review")
    begin, end = turn("max", 1)
    assert steady(ran) == Result(
        0,
        "max:\nLooks good. [NEXT: sarah]\n\n",
        notes("session s1 begins", begin, end, "sarah, whom max calls in msg-2, is not called (--only)"),
    )
    assert queue() == []
    assert run_here("resume").err.splitlines()[1] == "teamchat: nothing is waiting in this conversation"


def test_with_only_every_called_member_answers_in_turn_and_at_once(world: Path) -> None:
    crew(world, {**HANDS_OVER, "carol": ["Fine. [NEXT: max]"]})
    ran = run_here("send", "--only", "--json", "--to", "max+sarah,carol", "Review")
    assert ran.code == 0
    assert [name for name, _ in said()] == ["kailai", "max", "sarah", "carol"]
    told = [line["text"] for line in objects(ran) if line["type"] == "warning"]
    assert told == [
        "sarah, whom max calls in msg-2, is not called (--only)",
        "max, whom sarah calls in msg-3, is not called (--only)",
        "max, whom carol calls in msg-4, is not called (--only)",
    ]


def test_with_only_a_question_to_a_person_is_asked_as_ever(world: Path) -> None:
    crew(world, {"max": ["Which branch? [NEXT: kailai, sarah]"], "sarah": []})
    ran = run_here("send", "--only", "-q", "--to", "max", "Review")
    assert (ran.code, ran.out) == (9, "Which branch?\n")
    assert queue() == [("kailai", "asked")]


def test_turns_of_the_run_leave_the_rest_on_hold_until_resume(world: Path) -> None:
    crew(world, HANDS_OVER)
    ran = run_here("send", "--quiet", "--turns", "1", "--to", "max", "Review")
    told = notes("paused: 1 turn since the last human message (--turns); held: sarah", "try: teamchat resume")
    assert ran == Result(7, "Looks good.\n", told)
    ran = run_here("resume", "--quiet", "--turns", "2")
    assert (ran.code, ran.out) == (7, "Again.\n")
    assert queue() == [("sarah", "held")]
    ran = run_here("resume", "--quiet", "--only")
    assert (ran.code, ran.out, queue()) == (0, "I agree.\n", [])


def test_turns_of_the_run_never_raise_the_limit_of_the_team(world: Path) -> None:
    crew(world, HANDS_OVER, limits={"turns": 1})
    ran = run_here("send", "--quiet", "--turns", "9", "--to", "max", "Review")
    assert (ran.code, "1 turn since the last human message (limits.turns)" in ran.err) == (7, True)


def test_a_paused_conversation_costs_nothing(world: Path) -> None:
    """No process of it is left, which is checked after each test, and no command but `resume` runs a turn."""
    made = crew(world, HANDS_OVER, limits={"turns": 1})
    assert run_here("send", "--to", "max", "Review").code == 7
    for looks in ("log", "status", "show", "sessions", "usage", "team", "doctor"):
        run_here(looks)
    assert (len(made.prompts("max")), len(made.prompts("sarah"))) == (1, 0)
    assert run_here("resume").code == 7
    assert len(made.prompts("sarah")) == 1


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_turns_are_a_positive_number(world: Path, number: str) -> None:
    crew(world, HANDS_OVER)
    assert run_here("send", "--turns", number, "--to", "max", "Review").code == 2


def test_a_dry_run_says_what_bounds_the_run(world: Path) -> None:
    crew(world, HANDS_OVER)
    ran = run_here("send", "--dry-run", "--only", "--turns", "2", "--to", "max", "Review")
    assert "guards: 2 turns and 60 minutes for this message\n" in ran.out
    assert "whom an answer calls is not called (--only)\n" in ran.out


def test_a_recording_has_the_bounds_of_each_run(world: Path) -> None:
    crew(world, HANDS_OVER)
    file = "bounded.cassette"
    assert run_here("send", "--record", file, "--turns", "1", "--to", "max", "Review").code == 7
    assert run_here("resume", "--record", file, "--only").code == 0
    ran = run_here("replay", file, "--verify", "--speed", "0")
    assert ran.code == 0, ran.out + ran.err
    shown = run_here("replay", file, "--speed", "0").out
    assert "$ teamchat send --to max --turns 1 Review" in shown
    assert "$ teamchat resume --only" in shown
