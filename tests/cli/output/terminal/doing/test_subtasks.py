"""The live progress of a map-reduce: a line for each subtask, within the width and height of the terminal."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from teamchat.cli.output.terminal.doing import WAITS, Doing, Subtasks
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.wrap import cells
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Done, Kind, Part, Plan, Process

PLAIN = Look(styles=False, colours=False)


def planned(*tasks: str, done: tuple[Done, ...] = ()) -> Subtasks:
    plan = Done(Part("mapreduce", "planner"), "max", "msg-2", Plan(tasks))
    process = Process(Kind.MAPREDUCE, ("sarah", "carol"), "max", planner="max", reducer="max", done=(plan, *done))
    return Subtasks(process)


def call(number: int, target: str) -> Route:
    return Route("msg-2", "max", "msg-1", 10 + number, target, part=Part("mapreduce", "worker", number, 3))


def finished(number: int, member: str, message: str | None = "msg-9") -> Done:
    return Done(Part("mapreduce", "worker", number, 3), member, message)


def lines(tree: Subtasks, doing: Mapping[int, Doing], width: int = 60, height: int = 20, now: float = 5.0) -> list[str]:
    return tree.lines(doing, now, width, height, PLAIN, lambda _: 1)


def test_each_subtask_has_a_line_with_who_does_it_and_how_far_it_is() -> None:
    tree = planned("Port the lexer", "Port the parser", "Port the tests")
    for number, member in ((1, "sarah"), (2, "carol"), (3, "sarah")):
        tree.called(call(number, member))
    answered = Doing("sarah", 1.0)
    answered.end(4.0, None, failed=False)
    doing = {11: answered, 12: Doing("carol", 2.0, what="thinking"), 13: Doing("sarah", 2.0, what=WAITS)}
    assert lines(tree, doing) == [
        "✓ max planned 3 subtasks, 1 is done",
        "✓ 1 sarah  Port the lexer                    0:03",
        "⠋ 2 carol  Port the parser                   thinking   0:03",
        "· 3 sarah  Port the tests",
        "· max merges the results",
    ]


def test_a_subtask_that_went_to_another_worker_says_who_failed() -> None:
    tree = planned("Port the lexer")
    tree.called(call(1, "sarah"))
    failed = Doing("sarah", 1.0)
    failed.end(4.0, None, failed=True)
    assert lines(tree, {11: failed})[1] == "✗ 1 sarah  Port the lexer                      failed   0:03"
    tree.called(call(1, "carol"))
    told = lines(tree, {11: Doing("carol", 4.0, what="thinking")}, width=80)[1]
    assert told.endswith("   sarah failed, thinking   0:01")


def test_a_resumed_one_shows_what_was_done_and_skipped_before() -> None:
    tree = planned("Port the lexer", "Port the parser", "Port the tests")
    tree.process = planned("Port the lexer", "Port the parser", "Port the tests", done=(finished(1, "carol"), finished(2, "sarah", None))).process  # fmt: skip # noqa: E501
    tree.called(call(3, "sarah"))
    assert lines(tree, {13: Doing("sarah", 4.0, what="thinking")})[:3] == [
        "✓ max planned 3 subtasks, 1 is done",
        "✓ 1 carol  Port the lexer",
        "- 2 sarah  Port the parser",
    ]


def test_what_was_answered_before_a_resume_or_a_watcher_came_is_done() -> None:
    tree = planned("Port the lexer", "Port the parser", "Port the tests")
    tree.moved(tree.process, [replace(call(1, "carol"), answer=7), call(2, "sarah"), call(3, "carol")])
    assert lines(tree, {12: Doing("sarah", 4.0)})[1:4] == [
        "✓ 1 carol  Port the lexer",
        "⠋ 2 sarah  Port the parser                   starting   0:01",
        "· 3 carol  Port the tests",
    ]


def test_while_the_results_are_merged_only_the_plan_is_left() -> None:
    tree = planned("Port the lexer", done=(finished(1, "carol"),))
    tree.called(call(1, "carol"))
    tree.called(Route("msg-1", "kai", "msg-1", 20, "max", part=Part("mapreduce", "reducer")))
    assert lines(tree, {20: Doing("max", 4.0)}) == ["✓ max planned 1 subtask, 1 is done"]


def test_nothing_is_shown_while_somebody_else_speaks() -> None:
    tree = planned("Port the lexer")
    tree.called(call(1, "carol"))
    assert lines(tree, {30: Doing("max", 4.0)}) == []


def test_there_is_nothing_before_the_plan_and_after_the_result() -> None:
    assert lines(Subtasks(Process(Kind.MAPREDUCE, ("sarah",), "max", planner="max", reducer="max")), {}) == []
    over = Done(Part("mapreduce", "reducer"), "max", "msg-10")
    assert lines(planned("Port the lexer", done=(finished(1, "carol"), over)), {}) == []


@pytest.mark.parametrize("height", [4, 6, 10, 53])
@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_no_line_is_too_wide_and_what_works_is_shown_first(width: int, height: int) -> None:
    tree = planned(*(f"Port module {number} of the parser to the new style" for number in range(1, 51)))
    for number in range(1, 51):
        tree.called(call(number, "sarah"))
    shown = lines(tree, {55: Doing("sarah", 1.0, what="running a command of many words")}, width, height)
    assert len(shown) <= height
    assert max(map(cells, shown)) <= width
    assert any(line.startswith("⠋ 45") for line in shown)


def test_many_are_counted_with_those_that_take_longest_and_by_host() -> None:
    tree = planned(*(f"Port module {number}" for number in range(1, 101)), done=(finished(1, "sarah"),))
    doing = {}
    for number in range(2, 12):
        tree.called(call(number, "sarah"))
        doing[10 + number] = Doing(
            "sarah", float(number), place=f"sarah#{number}", host="gpu2" if number % 2 else "gpu1"
        )
    doing[20].end(14.0, None, failed=False)
    doing[21].end(14.0, None, failed=True)
    assert lines(tree, doing, now=15.0, width=70) == [
        "✓ max planned 100 subtasks: 2 done, 8 running, 1 failed, 89 to do",
        "  gpu1: 4 running, 1 ended; gpu2: 4 running, 1 ended",
        "⠋ 2 sarah  Port module 2                         gpu1: starting   0:13",
        "⠋ 3 sarah  Port module 3                         gpu2: starting   0:12",
        "⠋ 4 sarah  Port module 4                         gpu1: starting   0:11",
        "· max merges the results",
    ]
    assert all(cells(line) <= 40 for line in lines(tree, doing, now=15.0, width=40))
