"""`run until`: what follows from any results, in any order, with anybody who changes files meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.check import CheckStatus
from teamchat.core.engine.decide import decide
from teamchat.core.engine.events import (
    Action,
    CheckBegan,
    CheckEnded,
    CheckNotRun,
    Deliver,
    Event,
    GroupDelivered,
    GroupRan,
    HumanAsked,
    HumanSpoke,
    Idle,
    MemberAnswered,
    Paused,
    Recovered,
    Resumed,
    RunCheck,
    RunGroup,
    RunTurn,
    Stuck,
    TurnBegan,
    TurnEnded,
    TurnFailed,
)
from teamchat.core.engine.processes.until import GOES, UNTIL, turns
from teamchat.core.engine.processes.until_reading import read_review
from teamchat.core.engine.processes.until_report import report, result
from teamchat.core.engine.state import Route, RouteStatus, Rules, State
from teamchat.core.engine.workflow import (
    Checked,
    Fault,
    Finding,
    Kind,
    Process,
    ProcessCheck,
    Review,
    ReviewFinding,
    Tried,
)
from teamchat.core.routing.requests import RouteRequest

RULES = Rules(("sarah", "carol", "max", "kim"), ("kai",), max_turns=1000)
FOUND = ReviewFinding("It does not stop.", "app.py", 12, "high")


@dataclass
class World:
    """What members, checks and others do, one drawn number after the other; the files are a number, too."""

    draws: Iterator[int]
    edits: bool = True
    state: State = field(default_factory=lambda: State(RULES))
    tree: int = 0
    message: int = 0
    check: int = 0
    green: str = ""
    seen: list[Action] = field(default_factory=list)
    turns: int = 0
    waiting_ends: list[TurnEnded] = field(default_factory=list)
    ended: Action = field(default_factory=Idle)

    def draw(self, below: int) -> int:
        return next(self.draws, 0) % below

    def somebody_edits(self) -> None:
        if self.edits and self.draw(12) == 11:
            self.tree += 1

    def tell(self, event: Event) -> None:
        self.state, actions = decide(self.state, event)
        self.seen += actions
        self.ended = actions[-1] if actions else self.ended

    def said(self) -> str:
        self.message += 1
        return f"msg-{self.message}"

    def begin(self, process: Process) -> None:
        self.tell(HumanSpoke(1.0, self.said(), "kai", process=process))
        self.go_on()

    def go_on(self) -> None:
        """Do what is wanted until nothing is."""
        for _ in range(500):
            match self.ended:
                case RunTurn(route=route):
                    self.turn(route)
                case RunGroup(routes=routes):
                    self.group(routes)
                case RunCheck(route=route):
                    self.run_check(route)
                case _:
                    return
        raise AssertionError("it does not end")

    def turn(self, route: Route) -> None:
        self.somebody_edits()
        self.tell(TurnBegan(1.0, route.number, self.state.answers(route)))
        self.turns += 1
        if self.draw(15) == 14:
            self.tell(TurnEnded(1.0, route.number, None))
            return
        finding, requests = self.reply(route)
        self.tell(TurnEnded(1.0, route.number, self.said(), requests, speaker=route.target, finding=finding, new=False))
        if self.draw(15) == 14 and self.state.process and not self.state.process.over:
            self.tell(HumanSpoke(1.0, self.said(), "kai"))

    def group(self, routes: tuple[Route, ...]) -> None:
        ends = []
        failed = []
        for route in routes:
            self.somebody_edits()
            self.tell(TurnBegan(1.0, route.number, self.state.answers(route)))
            self.turns += 1
            if self.draw(15) == 14:
                failed.append(route.number)
                continue
            finding, requests = self.reply(route)
            end = TurnEnded(1.0, route.number, self.said(), requests, speaker=route.target, finding=finding, new=False)
            self.tell(MemberAnswered(1.0, route.number, self.message))
            ends.append(end)
        self.waiting_ends += ends
        self.tell(GroupRan(1.0, tuple(failed)))
        self.deliver()

    def deliver(self) -> None:
        if isinstance(self.ended, Deliver):
            numbers = {route.number for route in self.ended.routes}
            ends = tuple(end for end in self.waiting_ends if end.route in numbers)
            self.waiting_ends = [end for end in self.waiting_ends if end.route not in numbers]
            self.tell(GroupDelivered(1.0, ends))

    def reply(self, route: Route) -> tuple[Finding | None, tuple[RouteRequest, ...]]:
        before = f"t{self.tree}"
        if route.part and route.part.role == "doer":
            self.tree += self.draw(3) > 0
            asks = (RouteRequest("kai"),) if self.draw(15) == 14 else ()
            return Tried(before, f"t{self.tree}", asks), asks
        if route.part and route.part.role == "planner":
            return None, ()
        self.somebody_edits()
        kind = self.draw(4)
        after = f"t{self.tree}"
        if kind == 3:
            return Fault("it is prose"), ()
        return Review(kind > 0, () if kind else (FOUND,), before=before, after=after), ()

    def run_check(self, route: Route) -> None:
        assert route.part
        self.somebody_edits()
        self.tell(CheckBegan(1.0, route.number))
        self.check += 1
        before, files = f"t{self.tree}", tuple[str, ...]()
        kind = self.draw(10)
        if kind == 9:
            self.tree += 1
            files = ("out.txt",)
        after = f"t{self.tree}"
        status: CheckStatus = "red" if kind in (1, 2, 3) else "green"
        touched = ("tests/test_a.py",) if kind == 3 else ()
        failing = f"f{self.draw(3)}" if status == "red" else ""
        if route.part.fresh:  # of the tree that the others are green on
            before = after = self.green
        if kind == 8:
            missing = Checked(route.part.check, self.check, "not_run", "exit code 127", before, after)
            self.tell(CheckEnded(1.0, route.number, missing, "missing"))
            return
        self.green = before if status == "green" else self.green
        found = Checked(route.part.check, self.check, status, "", before, after, files, "", touched)
        told = replace(found, failing=failing, count=self.check, attempt=route.part.attempt)
        self.tell(CheckEnded(1.0, route.number, told))


def process(checks: int = 1, review: tuple[str, ...] = ("carol",), rounds: int = 3, **more: object) -> Process:
    listed = tuple(ProcessCheck(f"c{number}", (f"c{number - 1}",) if number else ()) for number in range(checks))
    made = Process(Kind.UNTIL, ("sarah", *review), "sarah", do="sarah", checks=listed, review=review, rounds=rounds)
    return replace(made, **more)


def verified(of: Process, tree: str) -> bool:
    """Whether since the doer's last turn all checks were green at last, and enough reviewers passed, on that tree."""
    last = max(place for place, done in enumerate(of.done) if done.part.role == "doer")
    since = of.done[last:]
    green = {}
    for done in since:
        if isinstance(done.finding, Checked):
            same = {done.finding.before, done.finding.after} == {tree}
            green[done.part.check, done.part.fresh] = done.finding.status == "green" and same
    passed = {
        done.part.seat: done.finding.passed and {done.finding.before, done.finding.after} == {tree}
        for done in since
        if isinstance(done.finding, Review)
    }
    wanted = {(one.name, fresh): True for one in of.checks for fresh in ((False, True) if one.fresh else (False,))}
    return green == wanted and sum(passed.values()) >= (of.quorum or len(of.review))


shapes = st.tuples(st.integers(0, 3), st.sampled_from([(), ("carol",), ("carol", "max")]), st.integers(1, 4)).filter(
    lambda shape: shape[0] or shape[1]
)
kinds = st.builds(
    lambda tries, counts, fresh: {"tries": tries, "counts": counts, "fresh": fresh, "protects": True},
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)
mores = st.builds(
    lambda planner, quorum: {"planner": planner, "quorum": quorum},
    st.sampled_from(["", "kim"]),
    st.sampled_from([None, 1]),
)


@given(shapes, st.lists(st.integers(0, 1000), max_size=200), st.booleans(), kinds, mores)
def test_whatever_happens_it_ends_only_with_what_was_verified(
    shape: tuple[int, tuple[str, ...], int], draws: list[int], edits: bool, kind: dict[str, Any], more: dict[str, Any]
) -> None:
    checks, review, rounds = shape
    more = more if review else {**more, "quorum": None}
    world = World(iter(draws), edits)
    asked = process(checks, review, rounds, fallbacks={"carol": ("kim", "sarah")}, **more)
    world.begin(replace(asked, checks=tuple(replace(check, **kind) for check in asked.checks)))
    for _ in range(30):  # a person goes on with what is on hold, answers, or kills it
        match world.ended:
            case HumanAsked():
                world.tell(HumanSpoke(1.0, world.said(), "kai"))
            case Stuck() | CheckNotRun() | TurnFailed() | Paused():
                if world.draw(2):
                    world.tell(Recovered(1.0))
                world.tell(Resumed(1.0))
            case _ if world.state.held:
                world.tell(Resumed(1.0))
            case _:
                break
        world.go_on()
    made = world.state.process
    assert made
    last = report(made)
    assert len(last.rounds) <= last.most_rounds
    doer = [done for done in made.of("doer") if isinstance(done.finding, Tried) and not done.finding.asks]
    assert len(doer) <= rounds + sum(done.part.role == "person" for done in made.done)
    if not made.over:
        assert world.state.queue
        assert result(made) == "open"
        return
    open_ = UNTIL.undecided(made)
    match result(made):
        case "done":
            assert open_ is None
            assert verified(made, last.tree)
        case "red":
            assert open_
            assert open_.kind == "check_red"
            assert any(one.status == "red" for one in last.rounds[-1].checks)
        case "rejected":
            assert open_
            assert open_.kind == "review_failed"
            assert any(one.passed is False for one in last.rounds[-1].reviews)
        case other:
            raise AssertionError(other)


@given(shapes, st.lists(st.integers(0, 13), max_size=200), mores)
def test_its_turns_are_bounded_beforehand(
    shape: tuple[int, tuple[str, ...], int], draws: list[int], more: dict[str, Any]
) -> None:
    """Without failures, questions, fallbacks and others' edits: those are asked about first, or cost a turn each."""
    checks, review, rounds = shape
    world = World(iter([draw % 9 for draw in draws]), edits=False)
    asked = process(checks, review, rounds, **(more if review else {}))
    world.begin(asked)
    assert world.turns <= (turns(asked) or 0)


def test_a_red_check_goes_back_with_its_number_and_what_needs_it_does_not_run() -> None:
    world = World(iter([0, 0, 0, 0, 1]), edits=False)
    world.begin(process(3, (), 1))
    made = world.state.process
    assert made
    ran = [done.part.check for done in made.of("check")]
    assert ran == ["c0"]
    assert result(made) == "red"


def test_a_check_that_changes_files_runs_twice_and_then_holds_with_their_names() -> None:
    world = World(iter(()), edits=False)
    world.run_check = lambda route: _changing(world, route)  # type: ignore[method-assign]
    world.begin(process(1, ()))
    assert isinstance(world.ended, Stuck)
    assert "out.txt" in world.ended.reason
    assert ".gitignore" in world.ended.reason
    made = world.state.process
    assert made
    assert [done.part.go for done in made.of("check")] == list(range(1, GOES + 1))
    assert [route.status for route in world.state.queue] == [RouteStatus.HELD]


def _changing(world: World, route: Route) -> None:
    assert route.part
    world.check += 1
    before, world.tree = f"t{world.tree}", world.tree + 1
    found = Checked(route.part.check, world.check, "green", "", before, f"t{world.tree}", ("out.txt",))
    world.tell(CheckEnded(1.0, route.number, found))


def test_a_person_who_speaks_is_heard_by_the_doer_and_costs_no_round() -> None:
    world = World(iter(()), edits=False)
    state, actions = decide(State(RULES), HumanSpoke(1.0, "msg-1", "kai", process=process(1, (), 1)))
    world.state, world.message, world.ended = state, 1, actions[-1]
    assert isinstance(world.ended, RunTurn)
    route = world.ended.route
    world.tell(TurnBegan(1.0, route.number, "msg-1"))
    world.tell(TurnEnded(1.0, route.number, world.said(), speaker="sarah", finding=Tried("t0", "t1")))
    assert isinstance(world.ended, RunCheck)
    world.tell(HumanSpoke(1.0, "msg-3", "kai"))
    assert isinstance(world.ended, RunTurn)
    part = world.ended.route.part
    assert part
    assert (part.role, part.number, part.total) == ("doer", 2, 2)
    assert "msg-3" in part.fault


PASS = {"round": 2, "verdict": "PASS", "findings": []}
FAIL = {"round": 2, "verdict": "FAIL", "findings": [{"file": "a.py", "line": 3, "severity": "high", "text": "Wrong."}]}


@pytest.mark.parametrize(
    "said",
    [
        json.dumps(PASS),
        f"I looked at it.\n\n```json\n{json.dumps(PASS)}\n```",
        f"```\n{json.dumps(PASS)}\n```\n\nThat is all.",
        f"{json.dumps(PASS)}\n{json.dumps(PASS)}",
        json.dumps({"round": 2, "verdict": "PASS"}),
        json.dumps({"verdict": "PASS", "findings": []}),
    ],
)
def test_a_pass(said: str) -> None:
    assert read_review(said, 2) == Review(True)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("PASS", "no JSON object"),
        ("Looks good to me!", "no JSON object"),
        (json.dumps({**PASS, "round": 1}), '"round" is not 2'),
        (json.dumps({**PASS, "verdict": "pass"}), "neither"),
        (json.dumps({**PASS, "verdict": "PASS or FAIL"}), "neither"),
        (f"{json.dumps(FAIL)}\n{json.dumps(PASS)}", "two verdicts"),
        (f"{json.dumps(PASS)}\n\n```json\n{json.dumps(FAIL)}\n```", "two verdicts"),
        (json.dumps({**FAIL, "findings": []}), "without a finding"),
        (json.dumps({**FAIL, "findings": "all"}), "not a list"),
        (json.dumps({**FAIL, "findings": [{"file": "a.py"}]}), "finding 1"),
        (json.dumps({**FAIL, "findings": [3]}), "finding 1"),
    ],
)
def test_no_answer_that_counts(said: str, why: str) -> None:
    found = read_review(said, 2)
    assert isinstance(found, Fault)
    assert why in found.why


def test_findings_are_read_and_bounded() -> None:
    assert read_review(json.dumps(FAIL), 2) == Review(False, (ReviewFinding("Wrong.", "a.py", 3, "high"),))
    many = read_review(json.dumps({**FAIL, "findings": [f"Finding {number}" for number in range(10_000)]}), 2)
    assert isinstance(many, Review)
    assert (len(many.findings), many.more) == (200, 9_800)


@given(st.text())
def test_any_text_is_a_review_or_none(said: str) -> None:
    assert isinstance(read_review(said, 1), Review | Fault)


def test_a_check_that_is_on_hold_stays_when_a_person_speaks() -> None:
    world = World(iter([0, 0, 0, 0, 8]), edits=False)
    world.begin(process(1, (), 1))
    assert isinstance(world.ended, CheckNotRun)
    world.tell(HumanSpoke(1.0, world.said(), "kai"))
    assert [route.status for route in world.state.queue] == [RouteStatus.HELD]
