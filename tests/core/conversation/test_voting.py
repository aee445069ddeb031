"""A vote that the coordinator runs: blind prompts, the result, and what remains when a member fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.processes.vote import VoteReport
from teamchat.core.engine.workflow import Kind, Process
from teamchat.core.errors import AgentMissing, ExitCode, UsageError
from teamchat.core.turn.machine import ReadyTurn
from teamchat.core.turn.run_events import Conclusion
from tests.core.fake_conversation import Fails, Stage, team_of

OPTIONS = ("SQLite", "flat files")
VOTE = Process(Kind.VOTE, ("max", "sarah", "carol"), "max", options=OPTIONS)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "plain", "sarah": "plain", "carol": "plain"}))


def ballot(option: str | None, reason: str = "") -> str:
    return json.dumps({"option": option, "reason": reason})


def result_of(ended: Conclusion) -> VoteReport:
    assert isinstance(ended.process, VoteReport)
    return ended.process


def test_the_winner_is_the_text_of_the_run(stage: Stage) -> None:
    stage.says = {"max": [ballot("sqlite", "Fast.")], "sarah": [ballot("flat files")], "carol": [ballot("SQLite")]}
    ended = stage.run_process("Where do we store it?", VOTE)
    assert (ended.code, ended.text, ended.turns) == (ExitCode.DONE, "SQLite", 3)
    assert (result_of(ended).winner, result_of(ended).tally) == ("SQLite", {"SQLite": 2, "flat files": 1})
    assert result_of(ended).votes[0].reason == "Fast."


def test_a_tie_has_no_verdict_and_names_the_tied_options(stage: Stage) -> None:
    stage.says = {"max": [ballot("SQLite")], "sarah": [ballot("flat files")], "carol": [ballot(None)]}
    ended = stage.run_process("Where do we store it?", VOTE)
    assert (ended.code, ended.text) == (ExitCode.NO_VERDICT, "SQLite\nflat files")
    assert (result_of(ended).tie, result_of(ended).abstained) == (True, ("carol",))


def test_nobody_is_shown_what_another_one_answers(stage: Stage) -> None:
    stage.says = {name: [f"SECRET-{name} [TODO: SECRET-{name}]\n{ballot('SQLite')}"] for name in VOTE.members}
    stage.answers = lambda launch: Fails() if launch.identity.member == "carol" and len(stage.starts) < 4 else None
    assert stage.run_process("Where do we store it?", VOTE).code is ExitCode.GROUP_PARTLY_FAILED
    assert stage.resume().code is ExitCode.DONE  # when the others have said and noted something
    assert stage.spoke == ["max", "sarah", "carol", "carol"]
    assert [text for text in stage.prompts if "SECRET" in text] == []
    assert all("Where do we store it?" in text for text in stage.prompts)


def test_the_prompt_has_the_question_the_options_the_form_and_what_was_said_before(stage: Stage) -> None:
    stage.says = {"max": ["We have 10 GB."]}
    stage.send("[NEXT: max] How much is it?")
    stage.run_process("Where do we store it?", VOTE)
    for prompt in stage.prompts[1:]:
        assert "We have 10 GB." in prompt
        assert 'The options are "SQLite", "flat files".' in prompt
        assert '{"option": "OPTION", "reason": "REASON"}' in prompt
        assert "To hand over" not in prompt


def test_the_prompt_of_a_team_file_is_told_to_every_member(stage: Stage) -> None:
    vote = Process(Kind.VOTE, ("max", "sarah"), "max", options=OPTIONS, prompt="Think of {backups}.")
    stage.run_process("Where do we store it?", vote)
    assert all("Think of {backups}." in prompt for prompt in stage.prompts)


def test_without_the_form_a_member_abstains_and_the_run_is_done(stage: Stage) -> None:
    stage.says = {"max": ["SQLite, of course."] * 2, "sarah": ["Hm.", ballot("MySQL")], "carol": [ballot("SQLite")]}
    ended = stage.run_process("Where do we store it?", VOTE)
    assert stage.spoke == ["max", "sarah", "carol", "max", "sarah"]
    assert "Your last reply is quoted above. It has no valid vote: there is no JSON object in it." in stage.prompts[3]
    asked = "reply lacks what was asked for: there is no JSON object in it; it is asked once more"
    assert stage.warnings == [f"max's {asked}", f"sarah's {asked}"]
    assert (ended.code, ended.text) == (ExitCode.DONE, "SQLite")
    reasons = {vote.member: vote.reason for vote in result_of(ended).votes}
    assert reasons["max"] == "no valid vote: there is no JSON object in it"
    assert reasons["sarah"] == "no valid vote: 'MySQL' is none of the options"
    assert result_of(ended).abstained == ("max", "sarah")


def test_as_long_as_a_member_is_on_hold_nothing_is_decided(stage: Stage) -> None:
    stage.says = {name: [ballot("SQLite")] for name in VOTE.members}
    stage.answers = lambda launch: Fails() if launch.identity.member == "sarah" else None
    ended = stage.run_process("Where do we store it?", VOTE)
    assert (ended.code, ended.text, stage.queue) == (ExitCode.GROUP_PARTLY_FAILED, "", ["sarah held"])
    assert (result_of(ended).winner, result_of(ended).tally["SQLite"]) == (None, 2)
    assert result_of(ended).missing == ("sarah",)


def test_resume_asks_only_the_member_that_failed(stage: Stage) -> None:
    stage.says = {"max": [ballot("SQLite")], "sarah": [ballot("flat files")], "carol": [ballot("flat files")]}
    stage.answers = lambda launch: Fails() if launch.identity.member == "sarah" and len(stage.starts) < 4 else None
    stage.run_process("Where do we store it?", VOTE)
    ended = stage.resume()
    assert (ended.code, ended.text) == (ExitCode.DONE, "flat files")
    assert stage.spoke == ["max", "sarah", "carol", "sarah"]
    assert result_of(ended).missing == ()


def test_all_members_that_failed_are_skipped_at_once(stage: Stage) -> None:
    stage.says = {"carol": [ballot("SQLite")]}
    stage.answers = lambda launch: None if launch.identity.member == "carol" else Fails()
    assert stage.run_process("Where do we store it?", VOTE).code is ExitCode.GROUP_PARTLY_FAILED
    ended = stage.resume(ResumeMode.SKIP)
    assert (ended.code, stage.spoke) == (ExitCode.DONE, ["max", "sarah", "carol"])
    assert result_of(ended).missing == ("max", "sarah")


def test_a_member_that_is_skipped_is_missing_and_the_others_decide(stage: Stage) -> None:
    stage.says = {name: [ballot("SQLite")] for name in VOTE.members}
    stage.answers = lambda launch: Fails() if launch.identity.member == "sarah" else None
    stage.run_process("Where do we store it?", VOTE)
    ended = stage.resume(ResumeMode.SKIP)
    assert (ended.code, ended.text, stage.queue) == (ExitCode.DONE, "SQLite", [])
    assert (result_of(ended).missing, result_of(ended).abstained) == (("sarah",), ())


def test_a_vote_that_is_dropped_has_no_result(stage: Stage) -> None:
    stage.answers = lambda launch: Fails() if launch.identity.member == "sarah" else None
    stage.run_process("Where do we store it?", VOTE)
    ended = stage.resume(ResumeMode.DROP)
    assert (ended.code, ended.text, ended.process, stage.queue) == (ExitCode.DONE, "", None, [])


def test_a_member_alone_can_vote(stage: Stage) -> None:
    stage.says = {"carol": [ballot("flat files")]}
    ended = stage.run_process("Where do we store it?", Process(Kind.VOTE, ("carol",), "max", options=OPTIONS))
    assert (ended.text, stage.spoke) == ("flat files", ["carol"])


def test_a_vote_without_a_choice_is_refused_before_anything_is_stored(stage: Stage) -> None:
    with pytest.raises(UsageError, match="vote: it needs at least two options"):
        stage.run_process("Where do we store it?", Process(Kind.VOTE, ("max",), "max", options=("SQLite",)))
    assert stage.log == []


def test_a_vote_that_calls_somebody_counts_and_calls_nobody(stage: Stage) -> None:
    stage.says = {"max": [f"[NEXT: carol]\n{ballot('SQLite')}"]}
    vote = Process(Kind.VOTE, ("max",), "max", options=OPTIONS)
    ended = stage.run_process("Where do we store it?", vote)
    assert (ended.text, stage.spoke) == ("SQLite", ["max"])
    assert "carol, whom max calls in msg-2, is not called (the process decides who speaks)" in stage.warnings


def test_a_fallback_that_votes_itself_votes_once(stage: Stage) -> None:
    def check(turn: ReadyTurn) -> None:
        if turn.member.name == "max":
            raise AgentMissing("max's program is not installed")

    stage.check = check
    stage.member("max", fallback=("sarah",))
    stage.says = {"sarah": [ballot("SQLite"), ballot("SQLite")], "carol": [ballot("flat files")]}
    result = result_of(stage.run_process("Where do we store it?", VOTE))
    assert (result.tally, result.abstained) == ({"SQLite": 1, "flat files": 1}, ("max",))
    assert [(vote.member, vote.by) for vote in result.votes] == [("max", "sarah"), ("sarah", None), ("carol", None)]


def test_the_result_of_a_vote_is_not_the_text_of_the_next_message(stage: Stage) -> None:
    stage.says = {"max": [ballot("SQLite"), "Because it is fast."]}
    stage.run_process("Where do we store it?", Process(Kind.VOTE, ("max",), "max", options=OPTIONS))
    ended = stage.send("[NEXT: max] Why?")
    assert (ended.text, ended.process) == ("Because it is fast.", None)
