"""Map-reduce in the engine: which plans count, and that each subtask is done exactly once, whatever happens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.assemblers.parts import FRAMEWORK, KNOWLEDGE, LESSONS
from teamchat.core.engine.events import (
    Deliver,
    GroupDelivered,
    GroupRan,
    HumanSpoke,
    Idle,
    MemberAnswered,
    Paused,
    Reassigned,
    ResumeMode,
    RunGroup,
    RunTurn,
    Stuck,
    TurnBegan,
    TurnEnded,
)
from teamchat.core.engine.processes.mapreduce import MAPREDUCE, MapReduceReport
from teamchat.core.engine.processes.table import STRATEGIES
from teamchat.core.engine.state import Route, RouteStatus, Rules
from teamchat.core.engine.workflow import Fault, Finding, Kind, Part, Plan, Process
from tests.core.engine.driver import HUMANS, Talk
from tests.trials import trials

WORKERS = ("w1", "w2", "w3", "w4")
RULES = Rules(("lead", *WORKERS), HUMANS, "lead")
GOOD = '["first", "second", "third"]'


def mapreduce(workers: tuple[str, ...] = WORKERS, most: int = 47, jobs: int | None = None) -> Process:
    return Process(Kind.MAPREDUCE, workers, "lead", most=most, jobs=jobs)


@dataclass
class MapReduce(Talk):
    """Runs a map-reduce. `plans` are the planner's replies in order, of which the last one repeats itself.

    `failing` says whether the turn of a route fails. `ran` has the turns that began, and `worked` those of the workers
    that have a reply, by the numbers of their subtasks.
    """

    rules: Rules = RULES
    plans: tuple[str, ...] = (GOOD,)
    failing: Callable[[Route], bool] = lambda _: False
    ran: list[Route] = field(default_factory=list)
    worked: list[int] = field(default_factory=list)

    def begin(self, process: Process) -> MapReduce:
        self.take(HumanSpoke(self.now, self._message(), "kailai", process=process))
        return self

    def go(self) -> MapReduce:
        """Run until nobody is to speak."""
        while isinstance(self.ending, RunTurn | RunGroup | Deliver):
            self.next()
        return self

    def next(self) -> None:
        match self.ending:
            case RunTurn(route=route):
                self.turn(route)
            case RunGroup():
                self.group()
            case Deliver(routes=routes):
                ends = tuple(TurnEnded(self.now, route.number, self._message()) for route in routes)
                self.take(GroupDelivered(self.now, ends))

    def turn(self, route: Route) -> None:
        self.begun(route)
        if self.failing(route):
            self.take(TurnEnded(self.now, route.number, None))
            return
        self.note(route)
        self.take(TurnEnded(self.now, route.number, self._message(), finding=self.read(route)))

    def group(self, *, upto: int | None = None) -> None:
        """Run the members of a group to their ends; with `upto` only the first ones, and then the program dies."""
        routes = self.running_all
        for route in routes[:upto]:
            self.begun(route)
            if not self.failing(route):
                self.note(route)
                self.take(MemberAnswered(self.now, route.number, len(self.ran)))
        if upto is None:
            self.take(GroupRan(self.now, tuple(route.number for route in self.running_all)))
        else:
            self.recover()

    def begun(self, route: Route) -> None:
        self.ran.append(route)
        self.take(TurnBegan(self.now, route.number, self.state.answers(route)))

    def note(self, route: Route) -> None:
        if part_of(route).role == "worker":
            self.worked.append(part_of(route).number)

    def read(self, route: Route) -> Finding | None:
        plan = self.plans[min(self.roles.count("planner"), len(self.plans)) - 1]
        return MAPREDUCE.read(self.process, part_of(route), plan, ())

    @property
    def roles(self) -> list[str]:
        return [part_of(route).role for route in self.ran]

    @property
    def process(self) -> Process:
        assert self.state.process is not None
        return self.state.process

    @property
    def report(self) -> MapReduceReport:
        report = STRATEGIES[Kind.MAPREDUCE].report(self.process)
        assert isinstance(report, MapReduceReport)
        return report

    @property
    def reduced(self) -> Part:
        return next(part_of(route) for route in reversed(self.ran) if part_of(route).role == "reducer")


def part_of(route: Route) -> Part:
    assert route.part is not None
    return route.part


def plan_of(text: str, most: int = 47) -> Finding | None:
    return MAPREDUCE.read(mapreduce(), Part("mapreduce", "planner", total=most), text, ())


# --- plans


def test_a_plan_is_a_json_list_of_subtasks() -> None:
    assert plan_of(GOOD) == Plan(("first", "second", "third"))


def test_a_plan_may_have_as_many_subtasks_as_are_possible() -> None:
    assert plan_of('["a", "b", "c"]', most=3) == Plan(("a", "b", "c"))
    assert plan_of('["a", "b", "c"]', most=2) == Fault("its list has 3 subtasks, and at most 2 are possible")


def test_a_plan_has_no_more_characters_than_the_store_keeps_with_every_turn() -> None:
    assert plan_of(json.dumps(["a" * 999_999, "b"])) == Plan(("a" * 999_999, "b"))
    told = "its subtasks have 1,000,001 characters, and at most 1,000,000 are possible"
    assert plan_of(json.dumps(["a" * 999_999, "bb"])) == Fault(told)


def test_equal_subtasks_are_done_as_often_as_they_are_in_the_list() -> None:
    assert plan_of('["a", "a"]') == Plan(("a", "a"))


def test_markers_are_taken_out_of_subtasks() -> None:
    assert plan_of('["a [NEXT: w1]", "[DROP: ALL] b", "see `[NEXT: w2]`"]') == Plan(("a", "b", "see `[NEXT: w2]`"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I would first look at the code, then test it.", "there is no JSON list in it"),
        ('["first", "second", "th', "its JSON is cut off in a string that begins at line 1, column 21"),
        ('{"subtasks": ["a"]}', "its JSON is not a list"),
        ("[]", "its list has no subtask"),
        (json.dumps(["a"] * 1000), "its list has 1,000 subtasks, and at most 47 are possible"),
        ('["a", {"task": "b"}]', "item 2 of its list is not a string"),
        ('["a", ["b"]]', "item 2 of its list is not a string"),
        ('["a", " \\n"]', "item 2 of its list is empty"),
        ('["a", "[NEXT: w1] [NEXT: w2]"]', "item 2 of its list has nothing but markers"),
        ('["...", "..."]', "item 1 of its list has no letter or digit"),
        ('["a", "…"]', "item 2 of its list has no letter or digit"),
        ('["a", "- [NEXT: w1]"]', "item 2 of its list has nothing but markers"),
    ],
)
def test_another_reply_is_no_plan(text: str, why: str) -> None:
    assert plan_of(text) == Fault(why)


def test_only_the_planner_is_read() -> None:
    assert MAPREDUCE.read(mapreduce(), Part("mapreduce", "worker", 1, 2), GOOD, ()) is None


@pytest.mark.parametrize(
    ("process", "problem"),
    [
        (mapreduce(()), "it needs a worker"),
        (mapreduce(("w1", "w2", "w1")), "w1 is named twice as a worker"),
        (mapreduce(most=0), "it needs at least 4 turns (limits.turns)"),
        (mapreduce(("w1",), most=1), None),
    ],
)
def test_what_cannot_begin_is_said(process: Process, problem: str | None) -> None:
    assert MAPREDUCE.check(process) == problem


# --- the course of a map-reduce


def test_the_planner_splits_the_workers_work_and_the_reducer_merges() -> None:
    talk = MapReduce().begin(mapreduce(("w1", "w2"))).go()

    assert [(route.target, part_of(route).role, part_of(route).instead) for route in talk.ran] == [
        ("lead", "planner", ""),
        ("w1", "worker", "first"),
        ("w2", "worker", "second"),
        ("w1", "worker", "third"),
        ("lead", "reducer", ""),
    ]
    assert talk.process.over
    assert [(task.number, task.status, task.member) for task in talk.report.subtasks] == [
        (1, "done", "w1"),
        (2, "done", "w2"),
        (3, "done", "w1"),
    ]
    assert talk.report.message == "msg-6"


def test_planner_and_reducer_may_be_named() -> None:
    talk = MapReduce().begin(replace(mapreduce(("w1",)), planner="w2", reducer="w3")).go()

    assert (talk.ran[0].target, talk.ran[-1].target) == ("w2", "w3")


def test_all_workers_run_in_one_group_with_the_jobs_of_the_process() -> None:
    talk = MapReduce().begin(mapreduce(jobs=2))
    talk.next()

    assert isinstance(talk.ending, RunGroup)
    assert (len(talk.ending.routes), talk.ending.jobs) == (3, 2)


def test_a_worker_sees_only_its_subtask_and_nobody_the_history() -> None:
    talk = MapReduce().begin(mapreduce()).go()

    for part in map(part_of, talk.ran):
        assert (part.history, part.continues, part.handover) == (False, False, False)
        if part.role == "worker":
            assert (part.layers, part.shows, part.task) == ((FRAMEWORK, KNOWLEDGE), (), False)
        else:
            assert part.layers == (FRAMEWORK, LESSONS, KNOWLEDGE)


def test_the_reducer_gets_the_plan_and_every_result_with_its_worker() -> None:
    talk = MapReduce().begin(mapreduce()).go()

    assert talk.reduced.labels == ("the plan", "subtask 1 (w1)", "subtask 2 (w2)", "subtask 3 (w3)")
    assert talk.reduced.shows == ("msg-2", "msg-3", "msg-4", "msg-5")
    assert talk.reduced.fault == ""


def test_a_planner_may_repair_its_plan_once_and_sees_what_was_wrong() -> None:
    talk = MapReduce(plans=("Let us begin.", GOOD)).begin(mapreduce()).go()

    repair = part_of(talk.ran[1])
    assert (repair.role, repair.fault, repair.shows) == ("planner", "there is no JSON list in it", ("msg-2",))
    assert talk.process.over
    assert len(talk.worked) == 3


def test_planner_and_reducer_answer_the_request_and_workers_the_plan() -> None:
    talk = MapReduce(plans=("Let us begin.", GOOD)).begin(mapreduce()).go()

    assert [(part_of(route).role, route.as_of, route.by) for route in talk.ran] == [
        ("planner", "msg-1", "kailai"),
        ("planner", "msg-1", "kailai"),
        *[("worker", "msg-3", "lead")] * 3,
        ("reducer", "msg-1", "kailai"),
    ]


def test_a_planner_that_never_has_a_plan_is_on_hold_and_a_resume_asks_again() -> None:
    talk = MapReduce(plans=("no", "no", "no", GOOD)).begin(mapreduce()).go()

    assert isinstance(talk.ending, Stuck)
    assert talk.ending.reason == "lead's reply is no list of subtasks: there is no JSON list in it"
    assert talk.queue == ["lead held"]
    talk.resume().go()
    assert isinstance(talk.ending, Stuck)
    talk.resume().go()
    assert talk.process.over
    assert talk.roles.count("planner") == 4


def test_without_a_plan_a_skipped_planner_ends_the_process() -> None:
    talk = MapReduce(plans=("no",)).begin(mapreduce()).go()
    talk.resume(ResumeMode.SKIP).go()

    assert talk.process.over
    assert (talk.roles, talk.report.subtasks, talk.report.message) == (["planner", "planner"], (), None)


def test_a_subtask_that_fails_goes_to_the_other_workers_one_after_another() -> None:
    talk = MapReduce(failing=lambda route: route.target in ("w1", "w2")).begin(mapreduce(("w1", "w2", "w3"))).go()

    assert [route.target for route in talk.ran if part_of(route).number == 1] == ["w1", "w2", "w3"]
    assert sorted(talk.worked) == [1, 2, 3]
    assert {task.member for task in talk.report.subtasks} == {"w3"}


def test_what_one_worker_fails_at_is_shared_among_the_others() -> None:
    plan = json.dumps([str(number) for number in range(12)])
    talk = MapReduce(plans=(plan,), failing=lambda route: route.target == "w1").begin(mapreduce()).go()

    assert [route.target for route in talk.ran if part_of(route).number in (1, 5, 9)] == [
        *("w1", "w1", "w1"),
        *("w2", "w3", "w4"),
    ]


def test_it_is_told_who_does_a_subtask_instead() -> None:
    talk = MapReduce(failing=lambda route: route.target == "w1").begin(mapreduce(("w1", "w2")))
    talk.next()
    talk.next()

    given = [action for action in talk.actions if isinstance(action, Reassigned)]
    assert [(action.failed, action.route.target, part_of(action.route).number) for action in given] == [
        ("w1", "w2", 1),
        ("w1", "w2", 3),
    ]


def test_a_subtask_that_fails_everywhere_is_on_hold_and_a_resume_tries_it() -> None:
    talk = MapReduce(failing=lambda route: part_of(route).number == 2).begin(mapreduce(("w1", "w2"))).go()

    assert talk.queue == ["w1 held"]
    talk.failing = lambda _: False
    talk.resume().go()
    assert talk.process.over
    assert sorted(talk.worked) == [1, 2, 3]
    assert talk.reduced.fault == ""


def test_the_reducer_is_told_of_a_subtask_that_was_skipped() -> None:
    talk = MapReduce(failing=lambda route: part_of(route).number == 2).begin(mapreduce(("w1", "w2"))).go()
    talk.resume(ResumeMode.SKIP).go()

    assert talk.process.over
    assert (talk.reduced.fault, talk.reduced.total) == ("2", 3)
    assert talk.reduced.labels == ("the plan", "subtask 1 (w1)", "subtask 3 (w1)")
    assert [task.status for task in talk.report.subtasks] == ["done", "skipped", "done"]


def test_without_any_result_there_is_nothing_to_merge() -> None:
    talk = MapReduce(plans=('["only"]',), failing=lambda route: part_of(route).role == "worker").begin(mapreduce()).go()
    talk.resume(ResumeMode.SKIP).go()

    assert talk.process.over
    assert "reducer" not in talk.roles


def test_a_guard_stops_in_the_middle_and_a_resume_does_only_the_rest() -> None:
    talk = MapReduce(Rules(RULES.ai, HUMANS, "lead", max_turns=3), plans=('["a", "b", "c", "d"]',)).begin(mapreduce())
    talk.go()

    assert isinstance(talk.ending, Paused)
    assert talk.worked == [1, 2]
    talk.resume().go()
    assert talk.worked == [1, 2, 3, 4]


# --- whatever happens

plans = st.integers(1, 12).map(lambda number: json.dumps([f"task {index}" for index in range(number)]))
bad_plans = st.sampled_from(
    ("prose", '["half', "[]", json.dumps(["x"] * 99), '["[NEXT: w1]"]', '["a", 1]', '["a", ""]')
)


@settings(max_examples=trials(150), deadline=None)
@given(st.integers(1, 4), st.integers(1, 9), st.lists(bad_plans, max_size=4), plans, st.data())
def test_every_subtask_is_done_exactly_once_or_reported_and_no_guard_is_exceeded(
    workers: int, turns: int, bad: list[str], plan: str, data: st.DataObject
) -> None:
    chaos = iter(range(40))  # then nothing fails any more
    happens = st.sampled_from(("goes", "goes", "fails"))
    rules = Rules(RULES.ai, HUMANS, "lead", max_turns=turns)
    talk = MapReduce(rules, plans=(*bad, plan))
    talk.failing = lambda _: next(chaos, None) is not None and data.draw(happens) == "fails"
    talk.begin(mapreduce(WORKERS[:workers]))

    while not talk.process.over:
        if isinstance(talk.ending, RunGroup) and next(chaos, None) is not None and data.draw(st.booleans()):
            talk.group(upto=data.draw(st.integers(0, len(talk.running_all))))
        elif isinstance(talk.ending, RunTurn | RunGroup | Deliver):
            talk.next()
        else:
            skips = next(chaos, None) is not None and data.draw(st.sampled_from((False, False, True)))
            talk.resume(ResumeMode.SKIP if skips else ResumeMode.RETRY)
        assert talk.state.turns <= turns

    assert isinstance(talk.ending, Idle)
    assert talk.state.queue == ()
    assert_each_subtask_is_accounted_for(talk)


def assert_each_subtask_is_accounted_for(talk: MapReduce) -> None:
    counted = Counter(talk.worked)
    done = [task for task in talk.report.subtasks if task.status == "done"]
    assert all(task.status != "open" for task in talk.report.subtasks)
    assert counted == Counter({task.number: 1 for task in done})
    assert all(task.message for task in done)
    if "reducer" in talk.roles:
        assert talk.reduced.shows[1:] == tuple(task.message for task in done)
        assert talk.reduced.fault.split(", ") == [
            str(task.number) for task in talk.report.subtasks if task.status == "skipped"
        ] or (talk.reduced.fault == "" and len(done) == len(talk.report.subtasks))


@settings(max_examples=trials(50), deadline=None)
@given(st.integers(1, 4), plans, st.sets(st.tuples(st.integers(1, 12), st.sampled_from(WORKERS))))
def test_the_same_replies_and_failures_run_the_same_turns(workers: int, plan: str, fails: set[tuple[int, str]]) -> None:
    one, other = (
        MapReduce(plans=(plan,), failing=lambda route: (part_of(route).number, route.target) in fails)
        .begin(mapreduce(WORKERS[:workers]))
        .go()
        for _ in range(2)
    )

    assert one.ran == other.ran
    assert one.state == other.state
    held = {part_of(route).number for route in one.state.queue if route.status is RouteStatus.HELD}
    assert held == {
        number
        for number in range(1, len(json.loads(plan)) + 1)
        if all((number, worker) in fails for worker in WORKERS[:workers])
    }
