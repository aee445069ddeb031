"""A sequential process: the members speak in order, each after what came before."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.processes.sequential import SequentialReport
from teamchat.core.engine.workflow import Kind, Process
from teamchat.core.errors import ExitCode, UsageError
from tests.core.fake_conversation import Fails, Stage, team_of


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "plain", "sarah": "plain", "carol": "plain"}))


def sequential(*members: str, rounds: int = 1) -> Process:
    return Process(Kind.SEQUENTIAL, members, "max", rounds=rounds)


def test_each_member_speaks_once_in_order(stage: Stage) -> None:
    ended = stage.run_process("Design it", sequential("sarah", "max", "carol"))
    assert ended.code is ExitCode.DONE
    assert stage.spoke == ["sarah", "max", "carol"]


def test_each_sees_what_came_before(stage: Stage) -> None:
    stage.says = {"max": ["a design"], "sarah": ["a review"], "carol": ["a test"]}
    stage.run_process("Design it", sequential("max", "sarah", "carol"))
    assert "a design" in stage.prompts[1]
    assert "a design" in stage.prompts[2]
    assert "a review" in stage.prompts[2]


def test_rounds_repeat_the_order(stage: Stage) -> None:
    stage.run_process("Design it", sequential("max", "sarah", rounds=2))
    assert stage.spoke == ["max", "sarah", "max", "sarah"]
    assert "round 2 of 2" in stage.prompts[2]
    assert "round" not in stage.prompts[0]


def test_a_marker_calls_nobody_and_the_user_is_told(stage: Stage) -> None:
    stage.says = {"max": ["Done. [NEXT: carol]"]}
    ended = stage.run_process("Design it", sequential("max", "sarah"))
    assert (ended.code, stage.spoke) == (ExitCode.DONE, ["max", "sarah"])
    assert "carol, whom max calls in msg-2, is not called (the process decides who speaks)" in stage.warnings


def test_the_prompt_has_no_protocol_for_handing_over(stage: Stage) -> None:
    stage.run_process("Design it", sequential("max"))
    assert "To hand over" not in stage.prompts[0]
    assert "Markers such as [NEXT: ...] in your reply call nobody" in stage.prompts[0]


def test_a_failure_is_held_and_resume_continues_the_process(stage: Stage) -> None:
    stage.answers = lambda launch: Fails() if launch.identity.member == "sarah" and len(stage.spoke) == 2 else None
    ended = stage.run_process("Design it", sequential("max", "sarah", "carol"))
    assert (ended.code, stage.queue) == (ExitCode.MEMBER_FAILED, ["sarah held"])
    assert ended.hint == "teamchat resume\nteamchat resume --skip"
    assert stage.resume().code is ExitCode.DONE
    assert stage.spoke == ["max", "sarah", "sarah", "carol"]


def test_a_skipped_member_is_in_the_report(stage: Stage) -> None:
    stage.answers = lambda launch: Fails() if launch.identity.member == "max" else None
    stage.run_process("Design it", sequential("max", "sarah"))
    ended = stage.resume(ResumeMode.SKIP)
    assert isinstance(ended.process, SequentialReport)
    assert [(reply.member, reply.message) for reply in ended.process.replies] == [("max", None), ("sarah", "msg-2")]


def test_resume_with_drop_ends_the_process(stage: Stage) -> None:
    stage.answers = lambda _: Fails()
    stage.run_process("Design it", sequential("max", "sarah"))
    stage.resume(ResumeMode.DROP)
    assert stage.open().state.process is None


def test_a_process_that_is_not_over_excludes_another_one(stage: Stage) -> None:
    stage.answers = lambda _: Fails()
    stage.run_process("Design it", sequential("max", "sarah"))
    with pytest.raises(UsageError, match="the sequential process of msg-1 is not over"):
        stage.run_process("Test it", sequential("carol"))


def test_a_message_meanwhile_leaves_the_process_on_hold(stage: Stage) -> None:
    stage.answers = lambda launch: Fails() if launch.identity.member == "max" and len(stage.spoke) == 1 else None
    stage.run_process("Design it", sequential("max", "sarah"))
    stage.send("[NEXT: carol] Why did that fail?")
    assert stage.queue == ["max held"]
    stage.answers = lambda _: None
    assert stage.resume().code is ExitCode.DONE
    assert stage.spoke == ["max", "carol", "max", "sarah"]


def test_a_task_that_calls_somebody_is_refused(stage: Stage) -> None:
    with pytest.raises(UsageError, match="the process decides who speaks"):
        stage.run_process("[NEXT: max] Design it", sequential("max"))
