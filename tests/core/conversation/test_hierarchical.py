"""A hierarchical process: the lead hands out work, and every reply goes back to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.engine.processes.hierarchical import HierarchicalReport
from teamchat.core.engine.workflow import Kind, Process
from teamchat.core.errors import ExitCode, UsageError
from tests.core.fake_conversation import Fails, Stage, team_of

MEMBERS = ("max", "sarah", "carol")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, dict.fromkeys(MEMBERS, "plain")))


LED = Process(Kind.HIERARCHICAL, MEMBERS, "max")


def test_every_reply_goes_back_to_the_lead_until_it_calls_nobody(stage: Stage) -> None:
    stage.says = {"max": ["Review it. [NEXT: sarah, carol]", "Now again. [NEXT: sarah]", "It is done."]}
    ended = stage.run_process("Build it", LED)
    assert stage.spoke == ["max", "sarah", "carol", "max", "sarah", "max"]
    assert (ended.code, ended.text) == (ExitCode.DONE, "It is done.")


def test_a_lead_that_calls_nobody_ends_it_at_once(stage: Stage) -> None:
    stage.run_process("Build it", LED)
    assert stage.spoke == ["max"]


def test_members_called_together_speak_at_the_same_time(stage: Stage) -> None:
    stage.says = {"max": ["Review it. [NEXT: sarah + carol]", "Done."], "sarah": ["looks good"]}
    stage.run_process("Build it", LED)
    assert stage.spoke == ["max", "sarah", "carol", "max"]
    assert "looks good" not in stage.prompts[2]
    assert "looks good" in stage.prompts[3]


def test_urgent_calls_come_first(stage: Stage) -> None:
    stage.says = {"max": ["[NEXT: sarah] [NEXT: carol !P1] both of you", "Done."]}
    stage.run_process("Build it", LED)
    assert stage.spoke == ["max", "carol", "sarah", "max"]


def test_a_member_cannot_call_another_one_and_the_user_is_told(stage: Stage) -> None:
    stage.says = {"max": ["Do it. [NEXT: sarah]", "Done."], "sarah": ["carol should. [NEXT: carol]"]}
    stage.run_process("Build it", LED)
    assert stage.spoke == ["max", "sarah", "max"]
    assert "carol, whom sarah calls in msg-3, is not called (the process decides who speaks)" in stage.warnings


def test_a_member_that_the_process_excludes_is_not_called(stage: Stage) -> None:
    stage.says = {"max": ["Do it. [NEXT: sarah] [NEXT: carol]", "Done."]}
    stage.run_process("Build it", replace(LED, members=("max", "sarah"), excluded=("carol",)))
    assert stage.spoke == ["max", "sarah", "max"]
    assert "carol, whom max calls in msg-2, is not called (the process decides who speaks)" in stage.warnings


def test_the_lead_is_told_how_to_hand_over_and_the_members_are_not(stage: Stage) -> None:
    stage.says = {"max": ["Do it. [NEXT: sarah]", "Done."]}
    stage.run_process("Build it", LED)
    lead, worker, _ = stage.prompts
    assert "To hand over" in lead
    assert "You lead this task" in lead
    assert "To hand over" not in worker
    assert "max leads this task and called you in msg-2" in worker


def test_a_person_whom_the_lead_calls_is_asked_and_the_answer_goes_back_to_the_lead(stage: Stage) -> None:
    stage.says = {"max": ["Which database? [NEXT: kailai]", "Done with that."]}
    asked = stage.run_process("Build it", LED)
    assert (asked.code, asked.waiting_for) == (ExitCode.HUMAN_ASKED, "kailai")
    ended = stage.send("postgres")
    assert ended.code is ExitCode.DONE
    assert isinstance(ended.process, HierarchicalReport)
    assert stage.spoke == ["max", "max"]
    assert "postgres" in stage.prompts[1]


def test_another_process_waits_for_the_answer_of_a_person_who_is_asked(stage: Stage) -> None:
    stage.says = {"max": ["Which database? [NEXT: kailai]"]}
    stage.run_process("Build it", LED)
    with pytest.raises(
        UsageError, match="the hierarchical process of msg-1 is not over; answer it, or drop it"
    ) as raised:
        stage.run_process("Test it", LED)
    assert raised.value.hint == "teamchat send 'Your answer'\nteamchat resume --drop"


def test_a_person_who_answers_and_calls_somebody_is_obeyed_before_the_lead(stage: Stage) -> None:
    stage.says = {"max": ["Which database? [NEXT: kailai]", "Done."]}
    stage.run_process("Build it", LED)
    stage.send("[NEXT: carol] What do you think?")
    assert stage.spoke == ["max", "carol", "max"]


def test_a_failed_member_is_held_and_its_reply_goes_to_the_lead_after_a_resume(stage: Stage) -> None:
    stage.says = {"max": ["Do it. [NEXT: sarah + carol]", "Done."]}
    stage.answers = lambda launch: Fails() if launch.identity.member == "carol" and len(stage.spoke) == 3 else None
    assert stage.run_process("Build it", LED).code is ExitCode.GROUP_PARTLY_FAILED
    assert stage.queue == ["carol held"]
    ended = stage.resume()
    assert (ended.code, stage.spoke) == (ExitCode.DONE, ["max", "sarah", "carol", "carol", "max"])
    assert isinstance(ended.process, HierarchicalReport)
    assert [reply.member for reply in ended.process.handouts[0].replies] == ["sarah", "carol"]


def test_a_lead_that_only_calls_a_misspelt_name_is_asked_once_more(stage: Stage) -> None:
    stage.says = {"max": ["Do it. [NEXT: sara]", "Do it. [NEXT: sarah]", "Done."]}
    ended = stage.run_process("Build it", LED)
    assert (ended.code, stage.spoke) == (ExitCode.DONE, ["max", "max", "sarah", "max"])
    assert "[NEXT: sara] calls nobody whom it can call" in stage.prompts[1]
    assert "Your last reply called nobody" not in stage.prompts[3]


def test_a_lead_that_only_calls_itself_again_is_on_hold(stage: Stage) -> None:
    stage.says = {"max": ["Me. [NEXT: max]", "Me. [NEXT: max]", "Done."]}
    ended = stage.run_process("Build it", LED)
    assert (ended.code, stage.queue) == (ExitCode.MEMBER_FAILED, ["max held"])
    assert ended.reason == "max calls nobody who is there"
    assert stage.resume().code is ExitCode.DONE


def test_a_lead_that_never_ends_is_paused_by_the_guard_on_turns(stage: Stage) -> None:
    words = ["ape", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay", "koi", "lynx", "mole"]
    stage.answers = lambda launch: words[len(stage.spoke)] * 9 + " [NEXT: sarah]" * (launch.identity.member == "max")
    ended = stage.run_process("Build it", LED)
    assert ended.code is ExitCode.GUARD
    assert ended.turns == stage.team.limits.turns


def test_members_that_say_nothing_new_are_paused_by_the_loop_guard(stage: Stage) -> None:
    stage.answers = lambda launch: "more" + " [NEXT: sarah]" * (launch.identity.member == "max")
    ended = stage.run_process("Build it", LED)
    assert ended.code is ExitCode.GUARD
    assert ended.turns < stage.team.limits.turns
