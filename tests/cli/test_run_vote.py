"""`teamchat run vote` with real processes: exit codes, outputs, blindness, and what remains when a member fails."""

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
VOTE = ("run", "vote", "--options", "SQLite,flat files")


def ballot(option: str | None, reason: str = "It fits.") -> str:
    return json.dumps({"option": option, "reason": reason})


def voters(world: Path, **replies: Reply) -> Crew:
    return crew(world, {name: [reply] * 2 for name, reply in replies.items()}, team={"lead": "max"})


def result_of(ran: Result) -> dict[str, Any]:
    return objects(ran)[-1]["process"]  # type: ignore[return-value]


def test_quiet_prints_the_winner_alone(world: Path) -> None:
    voters(world, max=ballot("sqlite"), sarah=f"I compared.\n\n{ballot('SQLite')}", carol=ballot("flat files"))
    assert run_here(*VOTE, "-q", QUESTION) == Result(0, "SQLite\n", "")


def test_options_that_are_given_one_by_one_may_have_commas(world: Path) -> None:
    crew(world, {"max": ['{"option": "yes, with care", "reason": "It works."}'], "sarah": ["I do not know."] * 2})
    ran = run_here("run", "vote", "--options", "yes, with care", "--options", "no", "-q", "Ship?")
    assert (ran.code, ran.out) == (0, "yes, with care\n")


NO_WINNER = notes("the vote has no winner")


def test_a_tie_has_no_verdict_and_quiet_prints_the_tied_options(world: Path) -> None:
    voters(world, max=ballot("flat files"), sarah=ballot("SQLite"), carol=ballot(None))
    assert run_here(*VOTE, "-q", QUESTION) == Result(15, "SQLite\nflat files\n", NO_WINNER)


def test_without_any_vote_there_is_no_verdict_and_quiet_prints_nothing(world: Path) -> None:
    voters(world, max="Either.", sarah=ballot(None))
    again = "max's reply lacks what was asked for: there is no JSON object in it; it is asked once more"
    assert run_here(*VOTE, "-q", QUESTION) == Result(15, "", notes(again) + NO_WINNER)
    assert queue() == []


@pytest.mark.parametrize("command", ["status", "log"])
def test_the_result_is_told_again_until_a_person_speaks(world: Path, command: str) -> None:
    voters(world, max=ballot("SQLite"), sarah=ballot("SQLite"))
    run_here(*VOTE, QUESTION)
    assert "· vote: SQLite wins (SQLite 2, flat files 0)" in run_here(command).err.splitlines()
    run_here("send", "-q", "--to", "max", "Thank you.")
    assert "vote" not in run_here(command).err


def test_ballots_are_shown_in_words_and_stay_as_they_were_written(world: Path) -> None:
    raw = ballot("SQLite", "Fast.")
    voters(world, max=f"I compared.\n\n{raw}", sarah=ballot("flat files"), carol=ballot("SQLite"))
    assert run_here(*VOTE, "-q", QUESTION).out == "SQLite\n"
    logged = run_here("log").out
    assert "I compared.\n\nmax votes SQLite: Fast." in logged
    assert "sarah votes flat files: It fits." in logged
    assert "{" not in logged
    assert raw in run_here("log", "--full", "msg-2").out
    assert raw in run_here("show", "1", "--reply").out
    assert f"I compared.\n\n{raw}" in [line["text"] for line in objects(run_here("log", "--json"))]
    written = run_here("export", "--format", "md").out
    assert "> max votes SQLite: Fast." in written
    assert f"| SQLite | {'█' * 12} | 2 | max, carol |\n| flat files | {'█' * 6} | 1 | sarah |" in written
    assert "- sarah dissents with flat files: It fits." in written
    page = run_here("export", "--format", "html").out
    assert '<i class="w20"></i></td><td>2</td>' in page
    assert '<i class="w10"></i></td><td>1</td>' in page
    assert "vote: <b>SQLite wins</b>" in page
    assert "<summary>as it was written</summary>" in page


def test_json_has_votes_reasons_tally_abstentions_and_the_tie(world: Path) -> None:
    voters(world, max=ballot("SQLite", "Fast."), sarah=ballot("MySQL"), carol=ballot("flat files"), kai=ballot(None))
    ran = run_here(*VOTE, "--json", QUESTION)
    last = objects(ran)[-1]
    assert (ran.code, last["code"], last["outcome"], last["reason"]) == (15, 15, "no_verdict", "the vote has no winner")
    assert last["text"] == "SQLite\nflat files"
    result = result_of(ran)
    assert [(vote["member"], vote["option"], vote["reason"]) for vote in result["votes"]] == [
        ("max", "SQLite", "Fast."),
        ("sarah", None, "no valid vote: 'MySQL' is none of the options"),
        ("carol", "flat files", "It fits."),
        ("kai", None, "It fits."),
    ]
    assert [vote["message"] for vote in result["votes"]] == ["msg-2", "msg-6", "msg-4", "msg-5"]
    assert (result["tally"], result["winner"], result["tie"]) == ({"SQLite": 1, "flat files": 1}, None, True)
    assert (result["abstained"], result["missing"]) == (["sarah", "kai"], [])


@pytest.mark.parametrize(
    ("replies", "verdict", "code", "told"),
    [
        (("no", "yes"), "yes,no", 15, ["the vote has no winner"]),
        ((None, None), "yes,no", 15, ["the vote has no winner"]),
        (("yes", "yes"), "YES,no", 0, []),
        (("not yes", "not yes"), "yes,no", 15, ["the winner not yes is none of yes, no"]),
        (("no", None), "yes,no", 14, ["the verdict is no"]),
    ],
)
def test_the_verdict_of_a_vote_is_its_whole_winner(
    world: Path, replies: tuple[str | None, str | None], verdict: str, code: int, told: list[str]
) -> None:
    voters(world, max=ballot(replies[0]), sarah=ballot(replies[1]))
    ran = run_here("run", "vote", "-q", "--options", "no,not yes,yes", "--verdict", verdict, "Release?")
    assert (ran.code, ran.err) == (code, notes(*told))


def test_a_verdict_that_no_option_of_the_vote_can_be_is_refused(world: Path) -> None:
    voters(world, max=ballot("SQLite"))
    ran = run_here(*VOTE, "--verdict", "sqlite,postgres", QUESTION)
    said = "--verdict postgres: expected options of the vote, which are SQLite, flat files"
    assert (ran.code, refused(ran)) == (2, said)


def test_no_prompt_has_another_ones_answer_not_even_after_a_failure(world: Path) -> None:
    made = voters(
        world, max=f"SECRET [TODO: SECRET]\n{ballot('SQLite')}", sarah=f"SECRET\n{ballot('SQLite')}", carol={"exit": 1}
    )
    ran = run_here(*VOTE, "--json", QUESTION)
    assert (ran.code, objects(ran)[-1]["text"], queue()) == (6, "", [("carol", "held")])
    assert (result_of(ran)["winner"], result_of(ran)["missing"]) == (None, ["carol"])
    made.say("carol", {"exit": 1}, ballot("flat files"))
    ran = run_here("resume", "--json")
    assert (ran.code, objects(ran)[-1]["text"]) == (0, "SQLite")
    prompts = [prompt for name in ("max", "sarah", "carol") for prompt in made.prompts(name)]
    assert len(prompts) == 4
    for prompt in prompts:
        assert QUESTION in prompt
        assert '"SQLite", "flat files"' in prompt
        assert "SECRET" not in prompt


def test_a_member_that_is_skipped_is_missing(world: Path) -> None:
    voters(world, max=ballot("SQLite"), sarah={"exit": 1})
    assert run_here(*VOTE, "-q", QUESTION).code == 6
    ran = run_here("resume", "--skip", "--json")
    assert (ran.code, objects(ran)[-1]["text"]) == (0, "SQLite")
    assert (result_of(ran)["missing"], result_of(ran)["abstained"]) == (["sarah"], [])


def test_when_all_members_fail_nothing_is_decided(world: Path) -> None:
    voters(world, max={"exit": 1}, sarah={"exit": 1})
    ran = run_here(*VOTE, "-q", QUESTION)
    assert (ran.code, ran.out, queue()) == (1, "", [("max", "held"), ("sarah", "held")])


def test_a_vote_that_was_killed_asks_nobody_twice(world: Path) -> None:
    made = voters(world, max=ballot("SQLite"), sarah={"say": "", "hang": 600}, carol=ballot("SQLite"))
    with start(*VOTE, "-q", QUESTION) as process:
        assert eventually((made.scripts / "sarah.hangs").exists)
        assert eventually(lambda: len(answered()) == 2)
        process.kill()
    made.say("sarah", "", ballot("flat files"))
    ran = cli("resume", "-q")
    assert (ran.code, ran.out) == (0, "SQLite\n")
    assert [len(made.prompts(name)) for name in ("max", "sarah", "carol")] == [1, 2, 1]
    assert sorted(str(name) for name, _ in said()) == ["carol", "kailai", "max", "sarah"]


def answered() -> list[object]:
    lines = objects(run_here("sessions", "--json"))
    return [route for line in lines for route in line.get("queue", []) if route["status"] == "answered"]  # type: ignore[attr-defined]


def test_a_vote_is_undone_as_a_whole_and_asked_for_again(world: Path) -> None:
    made = voters(world, max=ballot("SQLite"), sarah=ballot("SQLite"))
    assert run_here(*VOTE, "-q", QUESTION).out == "SQLite\n"
    assert run_here("undo", "--yes").out.startswith("turns 1 and 2 are of one group, and are undone together\n")
    assert (queue(), said()) == ([("max", "held"), ("sarah", "held")], [("kailai", QUESTION)])
    made.say("max", "", ballot("SQLite"))
    made.say("sarah", "", ballot("flat files"))
    ran = run_here("resume", "--json")
    assert (ran.code, objects(ran)[-1]["text"], queue()) == (15, "SQLite\nflat files", [])
    assert result_of(ran)["tally"] == {"SQLite": 1, "flat files": 1}


def test_a_recorded_vote_replays_the_same(world: Path) -> None:
    voters(world, max=ballot("SQLite"), sarah=ballot(None))
    assert run_here(*VOTE, "-q", "--record", "vote.cassette", QUESTION).code == 0
    ran = run_here("replay", "vote.cassette", "--verify", "--speed", "0")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ((), "vote needs options to choose from, such as --options yes,no"),
        (("--options", "SQLite"), "vote: it needs at least two options"),
        (("--options", "SQLite,sqlite"), "vote: the options 'SQLite' and 'sqlite' are the same"),
    ],
)
def test_a_vote_without_a_choice_is_refused_before_anything_is_stored(
    world: Path, args: tuple[str, ...], wrong: str
) -> None:
    made = voters(world, max=ballot("SQLite"))
    ran = run_here("run", "vote", *args, QUESTION)
    assert (ran.code, refused(ran)) == (2, wrong)
    assert made.prompts("max") == []


def test_the_winner_can_be_the_verdict(world: Path) -> None:
    voters(world, max=ballot("no"), sarah=ballot("no"))
    ran = run_here("run", "vote", "--options", "yes,no", "--verdict", "yes,no", "-q", "Release it?")
    assert ran == Result(14, "no\n", notes("the verdict is no"))


def test_a_vote_that_is_resumed_without_anybody_has_no_verdict(world: Path) -> None:
    voters(world, max={"exit": 1}, sarah={"exit": 1})
    assert run_here(*VOTE, "-q", QUESTION).code == 1
    ran = run_here("resume", "--skip", "-q")
    assert (ran.code, ran.out, ran.err.splitlines()[-1:]) == (15, "", NO_WINNER.splitlines())
