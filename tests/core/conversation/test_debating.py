"""A debate that the coordinator runs: what each prompt shows, the result, and what remains when a member fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.processes.debate import DebateReport
from teamchat.core.engine.workflow import Kind, Process
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.turn.run_events import Conclusion
from tests.core.fake_conversation import Fails, Stage, team_of

MEMBERS = ("max", "sarah", "carol")
QUESTION = "Where do we store it?"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, team_of(tmp_path, dict.fromkeys((*MEMBERS, "kai"), "plain")))
    for name in MEMBERS:
        stage.says[name] = [blind(name), later(name), later(name)]
    stage.says["kai"] = [SYNTHESIS]
    return stage


def blind(name: str) -> str:
    return f"BLIND-{name.upper()}\n" + json.dumps({"position": f"{name} at first"})


def later(name: str, *, changed: bool = True) -> str:
    return f"LATER-{name.upper()}\n" + json.dumps({"position": f"{name} later", "changed": changed})


SYNTHESIS = 'In SQLite.\n\n## Dissent\n\ncarol.\n\n{"agree": ["max", "sarah"], "dissent": {"carol": "Files."}}'


def debate(rounds: int = 1, lead: str = "kai") -> Process:
    return Process(Kind.DEBATE, MEMBERS, lead, rounds=rounds)


def result_of(ended: Conclusion) -> DebateReport:
    assert isinstance(ended.process, DebateReport)
    return ended.process


def prompts_of(stage: Stage, name: str) -> list[str]:
    return [launch.stdin.decode() for launch in stage.launched if launch.identity.member == name]


def test_the_synthesis_without_its_json_is_the_text_of_the_run(stage: Stage) -> None:
    ended = stage.run_process(QUESTION, debate())
    assert (ended.code, ended.turns) == (ExitCode.DONE, 7)
    assert ended.text == "In SQLite.\n\n## Dissent\n\ncarol."
    assert stage.said[-1] == f"kai: {SYNTHESIS}"
    assert stage.spoke == [*MEMBERS, *MEMBERS, "kai"]


def test_the_result_has_changes_of_mind_agreement_and_dissent(stage: Stage) -> None:
    stage.says["max"][1] = later("max", changed=False)
    stage.says["carol"][1] = 'LATER-CAROL\n{"position": "files"}'
    result = result_of(stage.run_process(QUESTION, debate()))
    assert [(change.member, change.before, change.after) for change in result.changes] == [
        ("sarah", "sarah at first", "sarah later")
    ]
    assert [answer.changed for answer in result.answers] == [None, None, None, False, True, None]
    assert [answer.message for answer in result.answers] == [f"msg-{number}" for number in range(2, 8)]
    assert result.agreement == pytest.approx(2 / 3)
    assert result.dissent == {"carol": "Files."}


def test_the_first_answers_are_blind_and_the_later_ones_see_the_others_without_names(stage: Stage) -> None:
    stage.run_process(QUESTION, debate())
    for name in MEMBERS:
        first, second = prompts_of(stage, name)
        assert "BLIND" not in first
        for other in MEMBERS:
            assert f"BLIND-{other.upper()}" in second
        said = second[second.index("BLIND") - 200 :]
        assert "your answer" in said
        assert "answer A" in said
        assert "answer B" in said


def test_a_label_stands_in_the_place_of_the_name(stage: Stage) -> None:
    stage.run_process(QUESTION, debate())
    _, second = prompts_of(stage, "max")
    own, other = (second[second.index(word) - 60 : second.index(word)] for word in ("BLIND-MAX", "BLIND-SARAH"))
    assert ("your answer" in own, "answer A" in other) == (True, True)
    assert "max" not in own
    assert "sarah" not in other


def test_a_member_that_failed_in_the_first_round_answers_blind_on_resume(stage: Stage) -> None:
    stage.says = {name: [f"{text[0]} [TODO: BLIND]", *text[1:]] for name, text in stage.says.items()}
    stage.answers = lambda launch: Fails() if launch.identity.member == "carol" and len(stage.starts) < 4 else None
    ended = stage.run_process(QUESTION, debate())
    assert (ended.code, ended.text, stage.queue) == (ExitCode.GROUP_PARTLY_FAILED, "", ["carol held"])
    assert stage.resume().code is ExitCode.DONE
    assert stage.spoke == [*MEMBERS, "carol", *MEMBERS, "kai"]
    failed, again, _ = prompts_of(stage, "carol")
    assert ("BLIND" in failed, "BLIND" in again) == (False, False)


def test_a_later_round_shows_the_answers_of_the_one_before(stage: Stage) -> None:
    stage.run_process(QUESTION, debate(rounds=2))
    assert len(stage.launched) == 10
    third = prompts_of(stage, "max")[2]
    assert ("LATER-SARAH" in third, "BLIND" in third) == (True, False)
    assert "round 2 of 2" in third


def test_the_lead_is_shown_the_newest_answers_with_names(stage: Stage) -> None:
    stage.run_process(QUESTION, debate())
    [prompt] = prompts_of(stage, "kai")
    assert QUESTION in prompt
    assert "(max, sarah, carol)" in prompt
    assert "BLIND" not in prompt
    for name in MEMBERS:
        place = prompt.index(f"LATER-{name.upper()}")
        assert name in prompt[place - 60 : place]


def test_the_lead_may_be_a_member(stage: Stage) -> None:
    stage.says["max"][2:] = [SYNTHESIS]
    ended = stage.run_process(QUESTION, debate(lead="max"))
    assert ended.text.startswith("In SQLite.")
    assert stage.spoke == [*MEMBERS, *MEMBERS, "max"]


def test_every_prompt_says_what_is_asked_and_in_which_form(stage: Stage) -> None:
    stage.run_process(QUESTION, debate())
    first, second = prompts_of(stage, "max")
    [last] = prompts_of(stage, "kai")
    assert '{"position": "POSITION"}' in first
    assert '{"position": "POSITION", "changed": false}' in second
    assert '{"agree": ["NAME"], "dissent": {"NAME": "WHY"}}' in last
    assert all("To hand over" not in prompt for prompt in (first, second, last))


def test_what_the_json_does_not_say_is_unknown_and_told(stage: Stage) -> None:
    stage.says["max"] = ["I say SQLite.", "Still."]
    stage.says["kai"] = ["They all agree."]
    ended = stage.run_process(QUESTION, debate())
    result = result_of(ended)
    assert (ended.code, ended.text) == (ExitCode.DONE, "They all agree.")
    assert (result.agree, result.agreement, result.dissent) == (None, None, None)
    assert [answer.position for answer in result.answers if answer.member == "max"] == [None, None]
    why = "reply lacks what was asked for: there is no JSON object in it"
    assert f"max's {why}; the answer counts, and its position stays unknown" in stage.warnings
    assert f"kai's {why}; the synthesis counts, and who agrees with it stays unknown" in stage.warnings


def test_a_member_that_is_skipped_is_asked_again_in_the_next_round(stage: Stage) -> None:
    stage.answers = lambda launch: Fails() if launch.identity.member == "carol" and len(stage.starts) < 4 else None
    stage.run_process(QUESTION, debate())
    ended = stage.resume(ResumeMode.SKIP)
    assert ended.code is ExitCode.DONE
    answers = [(answer.round, answer.message) for answer in result_of(ended).answers if answer.member == "carol"]
    assert answers == [(0, None), (1, "msg-6")]
    assert result_of(ended).missing == ()
    prompt = prompts_of(stage, "carol")[-1]
    assert ("your answer:" in prompt, "answer A:" in prompt, "answer B:" in prompt) == (False, True, True)


def test_a_member_that_is_always_skipped_is_missing(stage: Stage) -> None:
    stage.answers = lambda launch: Fails() if launch.identity.member == "carol" else None
    stage.run_process(QUESTION, debate())
    assert stage.resume(ResumeMode.SKIP).code is ExitCode.GROUP_PARTLY_FAILED
    ended = stage.resume(ResumeMode.SKIP)
    assert (ended.code, result_of(ended).missing) == (ExitCode.DONE, ("carol",))
    [prompt] = prompts_of(stage, "kai")
    assert "(max, sarah)" in prompt


def test_a_synthesis_that_failed_is_written_on_resume(stage: Stage) -> None:
    stage.answers = lambda launch: Fails() if launch.identity.member == "kai" and len(stage.starts) < 8 else None
    ended = stage.run_process(QUESTION, debate())
    assert (ended.code, ended.text, stage.queue) == (ExitCode.MEMBER_FAILED, "", ["kai held"])
    ended = stage.resume()
    assert (ended.code, ended.text[:10]) == (ExitCode.DONE, "In SQLite.")
    assert len(stage.launched) == 8


def test_a_debate_needs_two_members(stage: Stage) -> None:
    with pytest.raises(UsageError, match="debate: it needs at least 2 members"):
        stage.run_process(QUESTION, Process(Kind.DEBATE, ("max",), "max"))
    assert stage.log == []


def test_the_same_replies_give_the_same_prompts_and_the_same_result(stage: Stage, tmp_path: Path) -> None:
    first = stage.run_process(QUESTION, debate(rounds=2))
    (tmp_path / "again").mkdir()
    again = Stage(tmp_path / "again", stage.team, stage.says)
    second = again.run_process(QUESTION, debate(rounds=2))
    assert (again.prompts, second.process, second.text) == (stage.prompts, first.process, first.text)
