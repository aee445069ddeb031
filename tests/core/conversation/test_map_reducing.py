"""A map-reduce: a plan, its subtasks at the same time, and their merged result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.processes.mapreduce import MapReduceReport, SubtaskStatus
from teamchat.core.engine.workflow import Kind, Process
from teamchat.core.errors import ExitCode
from teamchat.core.team.team import Limits
from teamchat.core.turn.run_events import Conclusion, MessageStored, Replied
from teamchat.runners.child.running import Launch
from tests.core.fake_conversation import Fails, Reply, Stage, team_of

PLAN = json.dumps([f"subtask {letter}" for letter in "abcdefgh"])
WORKERS = ("max", "sarah", "carol")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, team_of(tmp_path, dict.fromkeys(("lead", *WORKERS), "plain")))
    made.says = {"lead": [PLAN, "merged"]}
    return made


def mapreduce(*workers: str, jobs: int | None = None, most: int = 47) -> Process:
    return Process(Kind.MAPREDUCE, workers or WORKERS, "lead", jobs=jobs, most=most)


def told(launch: Launch) -> str:
    """The prompt of a process that begins."""
    return launch.stdin.decode()


def failing(*members: str, at: str = "") -> Callable[[Launch], Reply | None]:
    """These members fail, of which only those turns whose prompt has the text `at`."""
    return lambda launch: Fails() if launch.identity.member in members and at in told(launch) else None


def report_of(ended: Conclusion) -> MapReduceReport:
    assert isinstance(ended.process, MapReduceReport)
    return ended.process


def test_the_subtasks_go_round_the_workers_and_the_reducer_merges_them(stage: Stage) -> None:
    ended = stage.run_process("Test everything", mapreduce())

    assert (ended.code, ended.text) == (ExitCode.DONE, "merged")
    assert sorted(stage.spoke) == sorted(["lead", "lead", *(3 * WORKERS)[:8]])
    assert [(task.number, task.member, task.status) for task in report_of(ended).subtasks] == [
        (number + 1, WORKERS[number % 3], "done") for number in range(8)
    ]


def test_a_worker_gets_its_subtask_and_nothing_else_that_was_said(stage: Stage) -> None:
    stage.send("[NEXT: carol] An earlier secret")
    stage.starts.clear()
    stage.run_process("Test everything", mapreduce())

    for launch in stage.launched:
        assert "An earlier secret" not in told(launch)
        if launch.identity.member in WORKERS:
            assert "Test everything" not in told(launch)
            assert sum(f"subtask {letter}" in told(launch) for letter in "abcdefgh") == 1


def test_the_reducer_is_shown_the_request_the_plan_and_all_results(stage: Stage) -> None:
    stage.answers = lambda launch: None if launch.identity.member == "lead" else f"result {told(launch).count('x')}"
    stage.run_process("Test everything", mapreduce())

    reducer = stage.prompts[-1]
    assert "Test everything" in reducer
    assert "subtask h" in reducer
    for number in range(8):
        assert f"subtask {number + 1} ({WORKERS[number % 3]})" in reducer


def test_a_member_has_one_turn_at_a_time_in_the_order_of_its_subtasks(stage: Stage) -> None:
    stage.run_process("Test everything", mapreduce("max"))

    prompts = [told(launch) for launch in stage.launched if launch.identity.member == "max"]
    assert [f"subtask {letter}" in prompt for letter, prompt in zip("abcdefgh", prompts, strict=True)] == [True] * 8


def test_each_turn_may_spend_its_share_of_those_that_run_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path, team_of(tmp_path, dict.fromkeys(("lead", *WORKERS), "claude")))
    stage.team = replace(stage.team, limits=Limits(cost_usd=100))
    stage.says = {"lead": [PLAN, "merged"]}
    stage.run_process("Test everything", mapreduce(jobs=2))

    budgets = [float(launch.argv[launch.argv.index("--max-budget-usd") + 1]) for launch in stage.launched]
    left = [100 - 0.25 * turn for turn in range(10)]
    assert budgets == [left[0], *(each / 2 for each in left[1:8]), *left[8:]]  # the last two run alone


def test_markers_in_subtasks_and_results_call_nobody(stage: Stage) -> None:
    stage.says["lead"][0] = '["look [NEXT: carol] [DROP: ALL]", "test"]'
    stage.says["max"] = ["looked [NEXT: lead] [DROP: ALL]"]
    ended = stage.run_process("Test everything", mapreduce())

    assert (ended.code, stage.spoke) == (ExitCode.DONE, ["lead", "max", "sarah", "lead"])
    assert "carol]" not in stage.prompts[1]
    assert "DROP" not in stage.prompts[1]
    assert "carol, whom lead calls in msg-2, is not called (the process decides who speaks)" in stage.warnings
    assert "lead, whom max calls in msg-3, is not called (the process decides who speaks)" in stage.warnings


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I would begin with the tests.", "there is no JSON list in it"),
        ('["first", "second', "its JSON is cut off in a string that begins at line 1, column 11"),
        (json.dumps(["x"] * 1000), "its list has 1,000 subtasks, and at most 47 are possible"),
        ("[]", "its list has no subtask"),
        ('["a", "[NEXT: max]"]', "item 2 of its list has nothing but markers"),
    ],
)
def test_a_planner_has_one_more_try_that_shows_what_was_wrong(stage: Stage, reply: str, why: str) -> None:
    stage.says["lead"] = [reply, '["do it all"]', "merged"]
    ended = stage.run_process("Test everything", mapreduce())

    assert (ended.code, stage.spoke) == (ExitCode.DONE, ["lead", "lead", "max", "lead"])
    assert f"lead's reply lacks what was asked for: {why}; it is asked once more" in stage.warnings
    assert f"Your last reply cannot be used: {why}." in stage.prompts[1]
    assert reply[:5] in stage.prompts[1]


def test_without_a_plan_the_run_ends_and_resume_asks_the_planner_again(stage: Stage) -> None:
    stage.says["lead"] = ["no plan", "still none", '["do it all"]', "merged"]
    ended = stage.run_process("Test everything", mapreduce())

    assert (ended.code, stage.queue) == (ExitCode.MEMBER_FAILED, ["lead held"])
    assert ended.reason == "lead's reply is no list of subtasks: there is no JSON list in it"
    assert report_of(ended).fault == "there is no JSON list in it"
    assert ended.text == ""
    ended = stage.resume()
    assert (ended.code, ended.text) == (ExitCode.DONE, "merged")


def test_what_a_worker_fails_at_is_done_by_another_one_and_told(stage: Stage) -> None:
    stage.answers = failing("max")
    ended = stage.run_process("Test everything", mapreduce())

    assert ended.code is ExitCode.DONE
    assert {task.member for task in report_of(ended).subtasks} == {"sarah", "carol"}
    assert "subtask 1 of 8: max ended with exit code 1; sarah does it" in stage.warnings
    assert "subtask 7 of 8: max ended with exit code 1; sarah does it" in stage.warnings


def test_a_subtask_at_which_all_fail_is_held_and_resumed(stage: Stage) -> None:
    stage.answers = failing(*WORKERS, at="subtask c")
    ended = stage.run_process("Test everything", mapreduce())

    assert (ended.code, stage.queue) == (ExitCode.GROUP_PARTLY_FAILED, ["sarah held"])
    assert [task.status for task in report_of(ended).subtasks].count(SubtaskStatus.DONE) == 7
    assert ended.text == ""
    ran = len(stage.launched)
    stage.answers = failing()
    ended = stage.resume()
    assert (ended.code, ended.text) == (ExitCode.DONE, "merged")
    assert stage.spoke[ran:] == ["sarah", "lead"]


def test_the_reducer_is_told_of_a_skipped_subtask(stage: Stage) -> None:
    stage.answers = failing(*WORKERS, at="subtask c")
    stage.run_process("Test everything", mapreduce())
    ended = stage.resume(ResumeMode.SKIP)

    assert ended.code is ExitCode.DONE
    assert "These subtasks have no result: 3." in stage.prompts[-1]
    assert report_of(ended).subtasks[2].status == "skipped"


def test_an_interrupt_gives_nothing_to_others_and_a_resume_does_the_rest(stage: Stage) -> None:
    def stop_second(launch: Launch) -> Reply | None:
        if "subtask b" in told(launch) and len(stage.spoke) < 6:
            stage.stopper.request()
            return Fails()
        return None

    stage.answers = stop_second
    ended = stage.run_process("Test everything", mapreduce(jobs=1))

    assert ended.code is ExitCode.INTERRUPTED
    statuses = {task.number: task.status for task in report_of(ended).subtasks}
    assert (statuses[1], statuses[2], statuses[8]) == ("answered", "open", "open")
    assert not [warning for warning in stage.warnings if "does it" in warning]
    ran = len(stage.launched)
    assert stage.resume().code is ExitCode.DONE
    assert ran < 10
    assert sorted(stage.spoke) == sorted(["lead", "lead", *(3 * WORKERS)[:8], "sarah"])


def test_results_are_told_in_the_order_of_the_plan(stage: Stage) -> None:
    stage.run_process("Test everything", mapreduce())

    replies = [event.message for event in stage.events if isinstance(event, Replied)]
    stored = [event.message for event in stage.events if isinstance(event, MessageStored)]
    assert [message.speaker.role_name for message in replies] == ["lead", *(3 * WORKERS)[:8], "lead"]
    assert [message.content for message in stored] == ["Test everything"]


def test_a_limit_of_turns_stops_in_the_middle_and_resume_does_the_rest(stage: Stage) -> None:
    stage.team = replace(stage.team, limits=Limits(turns=4))
    ended = stage.run_process("Test everything", mapreduce())

    assert ended.code is ExitCode.GUARD
    assert len(stage.launched) == 4
    assert stage.resume().code is ExitCode.GUARD
    assert stage.resume().code is ExitCode.DONE
    assert len(stage.launched) == 10


def test_a_planner_that_fails_is_held(stage: Stage) -> None:
    stage.answers = failing("lead")
    ended = stage.run_process("Test everything", mapreduce())
    assert (ended.code, stage.queue) == (ExitCode.MEMBER_FAILED, ["lead held"])
    stage.answers = failing()
    assert stage.resume().code is ExitCode.DONE
