"""`teamchat run`: a process is found, checked before anything is stored, followed, recorded and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.cli.helpers import notes, objects, queue, refused, said, select, steady, turn
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew

REVIEW = """
[processes.review]
kind = "sequential"
members = ["sarah", "max"]
rounds = 2
prompt = "Be strict."
"""


@pytest.fixture
def made(world: Path) -> Crew:
    return crew(world, {"max": ["One.", "Three."], "sarah": ["Two.", "Four."]}, team={"lead": "max"})


def stored() -> list[tuple[object, ...]]:
    return select("SELECT name FROM sessions") if store_file(Path.cwd()).exists() else []


def naming(made: Crew) -> None:
    """Add the process `review` to the team file."""
    made.file.write_text(made.file.read_text() + REVIEW)
    trust_store().grant(load(made.file))


@pytest.mark.usefixtures("made")
def test_the_members_work_on_the_task() -> None:
    ran = run_here("run", "sequential", "Design", "it")
    said_first, said_then = turn("max", 1), turn("sarah", 2)
    assert steady(ran) == Result(
        0, "max:\nOne.\n\nsarah:\nTwo.\n\n", notes("session s1 begins", *said_first, *said_then)
    )
    assert said() == [("kailai", "Design it"), ("max", "One."), ("sarah", "Two.")]


def test_a_process_of_the_team_file_has_its_members_rounds_and_prompt(made: Crew) -> None:
    naming(made)
    ran = run_here("run", "review", "--quiet", "Design it")
    assert (ran.code, ran.out) == (0, "Three.\n")
    assert [name for name, _ in said()] == ["kailai", "sarah", "max", "sarah", "max"]
    assert all("Be strict." in prompt for prompt in made.prompts("sarah"))


def test_a_named_process_needs_no_trust(made: Crew) -> None:
    made.file.write_text(made.file.read_text() + REVIEW)
    assert run_here("run", "review", "--quiet", "Design it").code == 0


def test_members_may_be_named_one_by_one(made: Crew) -> None:
    assert run_here("run", "sequential", "--quiet", "--members", "sarah", "--members", "max", "Design it").code == 0
    assert (len(made.prompts("max")), len(made.prompts("sarah"))) == (1, 1)


def test_the_task_may_be_piped(made: Crew) -> None:
    assert run_here("run", "sequential", "--quiet", "-", stdin="Design it").code == 0
    assert "Design it" in made.prompts("max")[0]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("sequentiel", "x"), 4, "there is no process 'sequentiel': did you mean 'sequential'?"),
        (("sequential", "--members", "mx", "x"), 4, "--members: nobody is called 'mx': did you mean max?"),
        (("sequential", "--members", "kailai", "x"), 2, "--members: kailai is a person; only AI members take part"),
        (("sequential", "--members", ",", "x"), 2, "--members names nobody"),
        (
            ("sequential", "--judge", "max", "x"),
            2,
            "sequential does not take --judge; it takes --members and --rounds",
        ),
        (("sequential", "--options", "a,,b", "x"), 2, "--options 'a,,b': expected options with a comma"),
        (("sequential",), 2, "there is nothing to send"),
        (("sequential", "--as", "nobody", "x"), 4, "no person 'nobody' in team 'crew'"),
        (
            ("sequential", "[NEXT: max] x"),
            2,
            "the process decides who speaks; remove the [NEXT: ...] markers, or put them in quotes",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_before_anything_is_stored(words: tuple[str, ...], code: int, message: str) -> None:
    ran = run_here("run", *words)
    assert (ran.code, refused(ran).startswith(message)) == (code, True), ran.err
    assert stored() == []


@pytest.mark.usefixtures("made")
def test_a_missing_process_is_named() -> None:
    ran = run_here("run")
    assert (ran.code, refused(ran)) == (2, "missing argument 'PROCESS'")
    assert "teamchat run --help" in ran.err


@pytest.mark.usefixtures("made")
def test_a_limit_that_pauses_the_process_is_said_before_it_begins() -> None:
    ran = run_here("run", "sequential", "--turns", "1", "x")
    assert ran.code == 7
    told = "sequential takes 2 turns; --turns (1) pauses it: teamchat resume continues"
    assert ran.err.splitlines()[1] == f"· {told}"
    assert queue() == [("sarah", "held")]


@pytest.mark.usefixtures("made")
def test_resume_continues_a_process_and_another_one_may_not_begin_before() -> None:
    run_here("run", "sequential", "--turns", "1", "x")
    ran = run_here("run", "sequential", "y")
    assert (ran.code, refused(ran)) == (2, "the sequential process of msg-1 is not over; continue it, or drop it")
    assert run_here("resume", "--quiet").code == 0
    assert [name for name, _ in said()] == ["kailai", "max", "sarah"]
    assert run_here("run", "sequential", "--quiet", "y").code == 0


def test_a_dry_run_shows_the_process_and_runs_nothing(made: Crew) -> None:
    naming(made)
    ran = run_here("run", "review", "--dry-run", "Design it")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("review: sarah, then max in 2 rounds\nspeaking: sarah\n")
    assert "sarah would run: " in ran.out
    assert "Be strict." in ran.out
    assert made.prompts("sarah") == []
    assert stored() == []


@pytest.mark.usefixtures("made")
def test_a_recorded_process_replays_the_same(tmp_path: Path) -> None:
    file = tmp_path / "run.cassette"
    assert run_here("run", "sequential", "--rounds", "2", "--record", str(file), "Design it").code == 0
    ran = run_here("replay", str(file), "--speed", "0", "--verify")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("$ teamchat run sequential --members max,sarah --rounds 2 'Design it'\n")


@pytest.mark.usefixtures("made")
def test_json_has_the_result_of_the_process() -> None:
    *_, result = objects(run_here("run", "sequential", "--json", "x"))
    assert result["process"] == {
        "kind": "sequential",
        "rounds": 1,
        "replies": [
            {"member": "max", "round": 1, "message": "msg-2"},
            {"member": "sarah", "round": 1, "message": "msg-3"},
        ],
    }


@pytest.mark.usefixtures("made")
def test_json_tells_the_part_of_each_turn_and_how_the_process_moves() -> None:
    lines = objects(run_here("run", "sequential", "--rounds", "2", "--json", "x"))
    parts = [line["part"] for line in lines if line["type"] == "turn_started"]
    assert parts == [{"role": "member", "number": number, "of": 2} for number in (1, 1, 2, 2)]
    assert [line["part"] for line in lines if line["type"] == "queued"] == parts
    assert [line["part"] for line in lines if line["type"] == "turn_finished"] == parts
    moved = [(line["over"], line["request"], line["name"]) for line in lines if line["type"] == "process"]
    assert moved == [*[(False, "msg-1", None)] * 4, (True, "msg-1", None)]


@pytest.mark.usefixtures("made")
def test_a_pipe_is_told_the_part_of_each_turn() -> None:
    ran = run_here("run", "sequential", "--rounds", "2", "--members", "max", "x")
    begins = [line for line in ran.err.splitlines() if " begins (" in line]
    assert begins == ["· max begins (turn 1, round 1 of 2)", "· max begins (turn 2, round 2 of 2)"]


@pytest.mark.usefixtures("made")
def test_a_receipt_says_the_part_of_its_turn() -> None:
    run_here("run", "sequential", "--quiet", "--rounds", "2", "x")
    assert "  why       member of a sequential process, round 2 of 2\n" in run_here("show", "3").out


def test_a_vote_tells_its_result_at_the_end(world: Path) -> None:
    votes = {"max": ['{"option": "yes", "reason": "It works."}'], "sarah": ["I do not know."] * 2}
    crew(world, votes)
    ran = run_here("run", "vote", "--options", "yes, no", "Ship?")
    assert ran.code == 0
    assert ran.err.splitlines()[-3:-1] == ["· vote: yes wins (yes 1, no 0)", "·   max votes yes: It works."]


@pytest.mark.usefixtures("made")
def test_status_says_which_process_is_on_hold_and_how_it_continues() -> None:
    run_here("run", "sequential", "--turns", "1", "--quiet", "x")
    assert run_here("status").err == notes(
        "held: sarah, member of a sequential process, for msg-1",
        "the sequential process of msg-1 is on hold",
        "try: teamchat resume",
        "try: teamchat resume --drop",
    )
    run_here("resume", "--quiet")
    assert run_here("status").err == ""


def test_a_member_with_several_parts_on_hold_is_named_once(world: Path) -> None:
    crew(world, {"max": ['["One", "Two", "Three"]'], "sarah": []}, team={"lead": "max"})
    ran = run_here("run", "mapreduce", "--quiet", "--turns", "1", "Port it")
    assert (ran.code, "; held: sarah (3)\n" in ran.err) == (7, True), ran.err
