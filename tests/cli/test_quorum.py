"""A vote and reviews that enough members decide: with one that is down, and with one that is slow."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import select
from tests.cli.test_run_until import DONE, RIGHT, report, review, team, the_tests, tree, until
from tests.program import Result, run_here

__all__ = ["tree"]
DOWN = "echo 'no network' >&2; exit 1"
SLOW = "touch began; exec sleep 600"
WAITS = "until test -e began; do sleep 0.02; done"
AT_ONCE_S = 60.0  # a slow member takes ten times as long


def ballot(option: str) -> str:
    return f"echo '{json.dumps({'option': option, 'reason': 'It fits.'})}'"


def recorded(cassette: str) -> list[dict[str, Any]]:
    """The turns of a cassette."""
    lines = map(json.loads, Path(cassette).read_text().splitlines())
    return [line["turn"] for line in lines if "turn" in line]


def vote(*args: str) -> Result:
    return run_here("run", "vote", "--options", "a,b", "--members", "max,carol,kim", *args, "Which one?")


def statuses() -> dict[object, object]:
    return dict(select("SELECT member, status FROM turns"))  # type: ignore[arg-type]


def test_a_vote_that_two_of_three_decide_is_over_where_the_third_is_down() -> None:
    team({"max": [ballot("a")], "carol": [ballot("a")], "kim": [DOWN]})
    assert vote().code == 6
    ran = vote("--new", "--quorum", "2", "--json")
    assert ran.code == 0, ran.err
    done = report(ran)
    assert (done["winner"], done["missing"], done["quorum"]) == ("a", ["kim"], 2)


def test_a_vote_that_the_third_could_still_decide_waits_for_it() -> None:
    team({"max": [ballot("a")], "carol": [ballot("b")], "kim": [DOWN, ballot("b")]})
    assert vote("--quorum", "2").code == 6
    ran = run_here("resume")
    assert ran.code == 0, ran.err
    assert "b" in ran.out


def test_a_slow_member_is_stopped_once_it_can_change_nothing() -> None:
    team({"max": [f"{WAITS}; {ballot('a')}"], "carol": [f"{WAITS}; {ballot('a')}"], "kim": [SLOW]})
    began = time.monotonic()
    ran = vote("--quorum", "2")
    assert ran.code == 0, ran.err
    assert time.monotonic() - began < AT_ONCE_S
    assert statuses() == {"max": "done", "carol": "done", "kim": "stopped"}
    assert "kim was stopped; it is decided without kim" in ran.err
    assert "failed" not in ran.err
    assert "stopped   its process is decided without it" in run_here("show", "3").out


def test_reviews_pass_with_two_of_three_and_the_findings_of_the_third_stay_open() -> None:
    team(
        {
            "sarah": [f"{RIGHT}; {DONE}"],
            **{name: [review(1)] for name in ("carol", "kim")},
            "max": [review(1, "FAIL", "No comment.")],
        },
        the_tests(),
    )
    ran = until("--check", "tests", "--review", "carol,max,kim", "--quorum", "2", "--json")
    assert ran.code == 0, ran.err
    done = report(ran)
    assert (done["result"], done["quorum"]) == ("done", 2)
    assert [finding["text"] for finding in done["open_findings"]] == ["No comment."]


@pytest.mark.parametrize(("others", "code"), [("PASS", 0), ("FAIL", 17)])
def test_a_slow_reviewer_is_stopped_once_the_others_have_decided(others: str, code: int) -> None:
    said = f"{WAITS}; {review(1, others, *(['No.'] if code else []))}"
    team({"sarah": [f"{RIGHT}; {DONE}"], "carol": [said], "max": [said], "kim": [SLOW]}, the_tests())
    began = time.monotonic()
    ran = until("--check", "tests", "--review", "carol,max,kim", "--quorum", "2", "--rounds", "1")
    assert ran.code == code, ran.err
    assert time.monotonic() - began < AT_ONCE_S
    assert statuses()["kim"] == "stopped"


def test_reviews_that_the_third_could_still_decide_wait_for_it() -> None:
    replies = {"carol": [review(1)], "max": [review(1, "FAIL", "No.")], "kim": [DOWN, review(1)]}
    team({"sarah": [f"{RIGHT}; {DONE}"], **replies}, the_tests())
    args = ("--check", "tests", "--review", "carol,max,kim", "--quorum", "2", "--rounds", "1")
    assert until(*args).code == 6
    assert run_here("resume").code == 0


def test_a_recorded_vote_that_was_decided_early_plays_the_same() -> None:
    team({"max": [f"{WAITS}; {ballot('a')}"], "carol": [f"{WAITS}; {ballot('a')}"], "kim": [SLOW]})
    assert vote("--quorum", "2", "--record", "vote.cassette").code == 0
    assert {turn["member"]: turn["cut"] and turn["cut"]["kind"] for turn in recorded("vote.cassette")} == {
        "max": None, "carol": None, "kim": "stopped"
    }  # fmt: skip
    played = run_here("replay", "vote.cassette", "--speed", "0", "--verify")
    assert played.code == 0, played.err


def test_no_team_has_a_quorum_of_more_than_there_are() -> None:
    team({"max": [ballot("a")], "carol": [ballot("a")], "kim": [ballot("a")]})
    ran = vote("--quorum", "4")
    assert ran.code == 2
    assert "--quorum: expected at most the 3 members, got 4" in ran.err
    assert Path("began").exists() is False


def test_a_recorded_review_that_two_gave_at_once_plays_the_same() -> None:
    team({"sarah": [f"{RIGHT}; {DONE}"], "carol": [review(1)], "max": [review(1)]}, the_tests(command="true"))
    args = ("--check", "tests", "--review", "carol,max", "--quorum", "1", "--rounds", "2")
    for number in range(2):
        assert until("--new", *args, "--record", f"{number}.cassette").code == 0
        played = run_here("replay", f"{number}.cassette", "--speed", "0", "--verify")
        assert played.code == 0, (number, played.err)


def test_after_a_slow_reviewer_was_stopped_the_doer_goes_on() -> None:
    said = [f"{WAITS}; {review(1, 'FAIL', 'No.')}", review(2)]
    replies = {"sarah": [f"{RIGHT}; {DONE}", f"echo '# why' >> adder.py; {DONE}"], "carol": said, "max": said}
    team({**replies, "kim": [SLOW, review(2)]}, the_tests())
    ran = until("--check", "tests", "--review", "carol,max,kim", "--quorum", "2", "--rounds", "2")
    assert ran.code == 0, ran.err
    assert select("SELECT status FROM turns WHERE member = 'sarah'") == [("done",), ("done",)]


def test_a_doer_that_fails_after_reviews_that_were_decided_is_on_hold() -> None:
    said = [review(1, "FAIL", "No."), review(2)]
    team({"sarah": [f"{RIGHT}; {DONE}", DOWN, f"echo '# why' >> adder.py; {DONE}"], "carol": said, "max": said}, "")
    assert until("--review", "carol,max", "--quorum", "1", "--rounds", "2").code == 1
    assert run_here("resume").code == 0
