"""`teamchat run debate` with real processes: exit codes, outputs, blindness, and what remains when a member fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import notes, objects, queue, refused, said
from tests.program import Result, cli, run_here, start
from tests.runners.processes import eventually
from tests.scripted_team import Crew, Reply, crew

QUESTION = "Where do we store it?"
DEBATE = ("run", "debate", "--rounds", "1", "--members", "max,sarah")
SYNTHESIS = 'In SQLite.\n\n## Dissent\n\nsarah.\n\n{"agree": ["max"], "dissent": {"sarah": "Files are simpler."}}'


def answer(word: str, *, changed: bool | None = None) -> str:
    return f"{word}\n" + json.dumps({"position": word.lower()} | ({} if changed is None else {"changed": changed}))


def debaters(world: Path, *, sarah: tuple[Reply, ...] = (), kai: tuple[Reply, ...] = (SYNTHESIS,)) -> Crew:
    """max and sarah debate, and kai leads."""
    replies = {
        "max": (answer("BLIND-ONE"), answer("LATER-ONE", changed=False)),
        "sarah": sarah or (answer("BLIND-TWO"), answer("LATER-TWO", changed=True)),
        "kai": kai,
    }
    return crew(world, replies, team={"lead": "kai"})


def result_of(ran: Result) -> dict[str, Any]:
    return objects(ran)[-1]["process"]  # type: ignore[return-value]


def test_quiet_prints_the_synthesis_without_its_json(world: Path) -> None:
    debaters(world)
    assert run_here(*DEBATE, "-q", QUESTION) == Result(0, "In SQLite.\n\n## Dissent\n\nsarah.\n", "")
    assert said()[-1] == ("kai", SYNTHESIS)


def test_json_has_positions_changes_of_mind_agreement_and_dissent(world: Path) -> None:
    debaters(world)
    ran = run_here(*DEBATE, "--json", QUESTION)
    assert ran.code == 0
    assert objects(ran)[-1]["text"] == "In SQLite.\n\n## Dissent\n\nsarah."
    result = result_of(ran)
    assert [
        tuple(answer[key] for key in ("member", "round", "message", "position", "changed"))
        for answer in result["answers"]
    ] == [
        ("max", 0, "msg-2", "blind-one", None),
        ("sarah", 0, "msg-3", "blind-two", None),
        ("max", 1, "msg-4", "later-one", False),
        ("sarah", 1, "msg-5", "later-two", True),
    ]
    assert result["changes"] == [{"member": "sarah", "round": 1, "before": "blind-two", "after": "later-two"}]
    assert (result["synthesis"], result["agree"], result["agreement"]) == ("msg-6", ["max"], 0.5)
    assert (result["dissent"], result["missing"]) == ({"sarah": "Files are simpler."}, [])


def test_the_first_answers_are_blind_and_the_later_ones_are_without_names(world: Path) -> None:
    made = debaters(world)
    run_here(*DEBATE, "-q", QUESTION)
    for name, own, other in (("max", "ONE", "TWO"), ("sarah", "TWO", "ONE")):
        blind, later = made.prompts(name)
        assert "BLIND" not in blind
        assert f"your answer: BLIND-{own}" in later.replace(" -> all", "")
        assert f"answer A: BLIND-{other}" in later.replace(" -> all", "")
    [last] = made.prompts("kai")
    assert "max: LATER-ONE" in last.replace(" -> all", "")
    assert "BLIND" not in last


def test_a_member_that_fails_is_held_and_answers_blind_on_resume(world: Path) -> None:
    made = debaters(world, sarah=({"exit": 1},))
    ran = run_here(*DEBATE, "-q", QUESTION)
    assert (ran.code, ran.out, queue()) == (6, "", [("sarah", "held")])
    made.say("sarah", {"exit": 1}, answer("BLIND-TWO"), answer("LATER-TWO"))
    ran = run_here("resume", "-q")
    assert (ran.code, ran.out[:10]) == (0, "In SQLite.")
    failed, blind, later = made.prompts("sarah")
    assert ["BLIND" in prompt for prompt in (failed, blind, later)] == [False, False, True]
    assert len(made.prompts("max")) == 2


def test_a_member_that_is_always_skipped_is_missing(world: Path) -> None:
    made = debaters(world, sarah=({"exit": 1}, {"exit": 1}))
    assert run_here(*DEBATE, "-q", QUESTION).code == 6
    assert run_here("resume", "--skip", "-q").code == 6
    ran = run_here("resume", "--skip", "--json")
    assert (ran.code, result_of(ran)["missing"]) == (0, ["sarah"])
    assert [found["message"] for found in result_of(ran)["answers"]] == ["msg-2", None, "msg-3", None]
    assert "The last answer of each member (max)" in made.prompts("kai")[0]


def test_a_debate_that_was_killed_asks_nobody_twice(world: Path) -> None:
    made = debaters(world, kai=({"say": "", "hang": 600},))
    with start(*DEBATE, "-q", QUESTION) as process:
        assert eventually((made.scripts / "kai.hangs").exists)
        process.kill()
    made.say("kai", "", SYNTHESIS)
    ran = cli("resume", "-q")
    assert (ran.code, ran.out[:10]) == (0, "In SQLite.")
    assert [len(made.prompts(name)) for name in ("max", "sarah", "kai")] == [2, 2, 2]
    assert [name for name, _ in said()] == ["kailai", "max", "sarah", "max", "sarah", "kai"]


def test_a_round_that_is_undone_is_held_again_and_the_debate_continues_behind_it(world: Path) -> None:
    made = debaters(world)
    run_here(*DEBATE, "-q", QUESTION)
    ran = run_here("undo", "4", "--yes")  # the second round, and the synthesis behind it
    assert (ran.code, queue()) == (0, [("max", "held"), ("sarah", "held")])
    assert [name for name, _ in said()] == ["kailai", "max", "sarah"]
    made.say("max", "", "", answer("AGAIN-ONE", changed=True))
    made.say("sarah", "", "", answer("AGAIN-TWO", changed=False))
    made.say("kai", "", SYNTHESIS)
    ran = run_here("resume", "--json")
    assert (ran.code, queue()) == (0, [])
    assert [found["changed"] for found in result_of(ran)["answers"]] == [None, None, True, False]
    assert "AGAIN-TWO" in made.prompts("kai")[1]


def test_a_run_whose_turns_are_bounded_pauses_and_continues(world: Path) -> None:
    debaters(world)
    ran = run_here(*DEBATE, "-q", "--turns", "2", QUESTION)
    assert (ran.code, ran.out) == (7, "")
    ran = run_here("resume", "-q")
    assert (ran.code, ran.out[:10]) == (0, "In SQLite.")


def test_without_the_form_the_agreement_is_unknown_and_a_note_says_so(world: Path) -> None:
    debaters(world, kai=("All of them like SQLite.",))
    ran = run_here(*DEBATE, "--json", QUESTION)
    assert (ran.code, objects(ran)[-1]["text"]) == (0, "All of them like SQLite.")
    result = result_of(ran)
    assert (result["agree"], result["agreement"], result["dissent"]) == (None, None, None)
    told = [line["text"] for line in objects(ran) if line["type"] == "warning"]
    why = "kai's reply lacks what was asked for: there is no JSON object in it"
    assert told == [f"{why}; the synthesis counts, and who agrees with it stays unknown"]


def test_a_recorded_debate_replays_the_same(world: Path) -> None:
    debaters(world)
    assert run_here(*DEBATE, "-q", "--record", "debate.cassette", QUESTION).code == 0
    ran = run_here("replay", "debate.cassette", "--verify", "--speed", "0")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        (("--members", "max"), "debate: it needs at least 2 members"),
        (("--options", "a,b"), "debate does not take --options"),
    ],
)
def test_a_debate_that_cannot_begin_is_refused_before_anything_is_stored(
    world: Path, args: tuple[str, ...], wrong: str
) -> None:
    made = debaters(world)
    ran = run_here("run", "debate", *args, QUESTION)
    assert (ran.code, refused(ran).startswith(wrong)) == (2, True), ran.err
    assert made.prompts("max") == []


def test_the_synthesis_can_have_a_verdict_before_its_json(world: Path) -> None:
    debaters(world, kai=('## Dissent\n\nNone.\n\nVerdict: FAIL\n\n{"agree": ["max", "sarah"], "dissent": {}}',))
    ran = run_here(*DEBATE, "-q", "--verdict", "PASS,FAIL", QUESTION)
    assert (ran.code, ran.err) == (14, notes("the verdict is FAIL"))
