"""A quorum of reviewers and of votes: what is decided without those who give no answer."""

from __future__ import annotations

from itertools import product

import pytest

from teamchat.core.engine.decide import decide
from teamchat.core.engine.events import (
    Action,
    Deliver,
    Event,
    GroupDelivered,
    GroupFailed,
    GroupRan,
    HumanSpoke,
    MemberAnswered,
    RunGroup,
    RunTurn,
    TurnBegan,
    TurnEnded,
)  # fmt: skip
from teamchat.core.engine.processes.until import UNTIL, undecided
from teamchat.core.engine.processes.until_report import report, result
from teamchat.core.engine.processes.vote import VOTE
from teamchat.core.engine.processes.vote import report as vote_report
from teamchat.core.engine.state import Rules, State
from teamchat.core.engine.workflow import Ballot, Finding, Kind, Process, Review, ReviewFinding, Tried

REVIEWERS = ("carol", "max", "kim")
RULES = Rules(("sarah", *REVIEWERS), ("kai",), max_turns=1000)
FOUND = ReviewFinding("It does not stop.", "app.py", 12, "high")


class Told:
    """The engine, told one event after the other."""

    def __init__(self, process: Process) -> None:
        self.state, self.actions = State(RULES), tuple[Action, ...]()
        self.number = 0
        self(HumanSpoke(1.0, self.said(), "kai", process=process))

    def __call__(self, event: Event) -> Action:
        self.state, self.actions = decide(self.state, event)
        return self.last

    @property
    def last(self) -> Action:
        return self.actions[-1]

    @property
    def process(self) -> Process:
        assert self.state.process
        return self.state.process

    def said(self) -> str:
        self.number += 1
        return f"msg-{self.number}"

    def turn(self, finding: Finding) -> None:
        assert isinstance(self.last, RunTurn)
        route = self.last.route
        self.state, _ = decide(self.state, TurnBegan(1.0, route.number, "msg-1"))
        self(TurnEnded(1.0, route.number, self.said(), speaker=route.target, finding=finding))

    def group(self, findings: dict[str, Finding | None], *, enough: bool = False) -> Action:
        """Those without a finding fail."""
        assert isinstance(self.last, RunGroup)
        routes = self.last.routes
        ends = [
            TurnEnded(1.0, route.number, self.said(), speaker=route.target, finding=findings[route.target])
            for route in routes
            if findings[route.target]
        ]
        for end in ends:
            self.state, _ = decide(self.state, MemberAnswered(1.0, end.route, end.route))
        failed = tuple(route.number for route in routes if not findings[route.target])
        self(GroupRan(1.0, failed, enough=enough))
        return self(GroupDelivered(1.0, tuple(ends))) if isinstance(self.last, Deliver) else self.last


def until(quorum: int | None, rounds: int = 1) -> Told:
    members = ("sarah", *REVIEWERS)
    told = Told(Process(Kind.UNTIL, members, "sarah", do="sarah", review=REVIEWERS, rounds=rounds, quorum=quorum))
    told.turn(Tried("t0", "t1"))
    return told


def reviews(pattern: tuple[str, ...]) -> dict[str, Finding | None]:
    made = {
        "PASS": Review(True, before="t1", after="t1"),
        "FAIL": Review(False, (FOUND,), before="t1", after="t1"),
        "missing": None,
    }
    return {name: made[one] for name, one in zip(REVIEWERS, pattern, strict=True)}


@pytest.mark.parametrize("pattern", [*product(("PASS", "FAIL", "missing"), repeat=3)], ids="-".join)
def test_what_two_of_three_reviewers_say_decides(pattern: tuple[str, ...]) -> None:
    told = until(quorum=2)
    last = told.group(reviews(pattern))
    passed, failed = pattern.count("PASS"), pattern.count("FAIL")
    if passed >= 2:
        assert (told.process.over, result(told.process)) == (True, "done")
        assert len(report(told.process).open_findings) == failed
    elif failed >= 2:
        assert (told.process.over, result(told.process)) == (True, "rejected")
        assert undecided(told.process)
    else:
        assert isinstance(last, GroupFailed)
        assert not told.process.over
        assert [route.target for route in told.state.held] == [
            name for name, one in zip(REVIEWERS, pattern, strict=True) if one == "missing"
        ]


@pytest.mark.parametrize("pattern", [*product(("PASS", "FAIL", "missing"), repeat=3)], ids="-".join)
def test_without_a_quorum_all_have_to_answer(pattern: tuple[str, ...]) -> None:
    told = until(quorum=None)
    last = told.group(reviews(pattern))
    if "missing" in pattern:
        assert isinstance(last, GroupFailed)
    else:
        assert result(told.process) == ("done" if set(pattern) == {"PASS"} else "rejected")


def test_two_that_fail_send_the_work_back_with_both_findings() -> None:
    told = until(quorum=2, rounds=2)
    last = told.group(reviews(("FAIL", "missing", "FAIL")))
    assert isinstance(last, RunTurn)
    assert last.route.target == "sarah"
    assert last.route.part
    assert len(last.route.part.reviews) == 2


def test_those_who_were_stopped_wait_for_nothing() -> None:
    told = until(quorum=2)
    told.group(reviews(("PASS", "missing", "PASS")), enough=True)
    assert result(told.process) == "done"
    assert told.state.queue == ()
    assert [review.passed for review in report(told.process).rounds[-1].reviews] == [True, True, None]


VOTERS = ("carol", "max", "kim")


def voted(quorum: int | None, *options: str | None) -> Told:
    told = Told(Process(Kind.VOTE, VOTERS, "carol", options=("a", "b"), quorum=quorum))
    ballots = {name: Ballot(option, "") if option else None for name, option in zip(VOTERS, options, strict=True)}
    told.group(dict(ballots))
    return told


@pytest.mark.parametrize("votes", [*product(("a", "b", None), repeat=3)], ids=str)
def test_a_vote_that_two_of_three_decide_is_over(votes: tuple[str | None, ...]) -> None:
    told = voted(2, *votes)
    cast = [vote for vote in votes if vote]
    if len(cast) == 3 or (len(cast) == 2 and cast[0] == cast[1]):
        assert told.process.over
        assert vote_report(told.process).winner == max(cast, key=cast.count)
        assert vote_report(told.process).missing == tuple(
            name for name, vote in zip(VOTERS, votes, strict=True) if vote is None
        )
    else:
        assert isinstance(told.last, GroupFailed)
        assert vote_report(told.process).winner is None


def test_without_a_quorum_a_vote_waits_for_all() -> None:
    assert isinstance(voted(None, "a", "a", None).last, GroupFailed)


def test_a_quorum_above_the_voices_is_refused() -> None:
    vote = Process(Kind.VOTE, VOTERS, "carol", options=("a", "b"), quorum=4)
    assert VOTE.check(vote) == "--quorum: expected at most the 3 members, got 4"
    of_until = Process(Kind.UNTIL, VOTERS, "sarah", do="sarah", review=REVIEWERS, quorum=4)
    assert UNTIL.check(of_until) == "--quorum: expected at most the 3 reviewers, got 4"
