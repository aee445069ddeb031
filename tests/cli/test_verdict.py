"""`--verdict PASS,FAIL`: the last word of the last reply is the exit code of a run that is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.cli.output.terminal.look import look_of
from teamchat.cli.output.terminal.output import closing
from teamchat.cli.shared.verdict import verdict_of, verdict_words, with_verdict
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.turn.events import Conclusion, Verdict
from tests.cli.helpers import notes, objects, queue, refused
from tests.program import Result, run_here
from tests.scripted_team import crew
from tests.trials import trials

WORDS = ("PASS", "FAIL", "NEEDS-WORK", "通过")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("PASS", "PASS"),
        ("Fine.\n\nPASS\n\n", "PASS"),
        ("Fine. PASS.", "PASS"),
        ("**PASS**", "PASS"),
        ("Verdict: **`Pass`**!", "PASS"),
        ("Verdict:fail", "FAIL"),
        ("> PASS", None),
        ("FAIL\n\n> PASS\n", "FAIL"),
        ("FAIL\n- > PASS", "FAIL"),
        ("<!-- PASS -->", None),
        ("FAIL <!-- PASS -->", "FAIL"),
        ("<think>FAIL</think>\nPASS", "PASS"),
        ("PASS\n<reasoning>Or FAIL</reasoning>", "PASS"),
        ("PASS </thinking> FAIL", "FAIL"),
        ("<think>PASS", None),
        ("FAIL\n<!-- why:\nPASS\n", "FAIL"),
        ("PASS\n<!-- FAIL -->\n> FAIL", "PASS"),
        ("The result -> PASS", "PASS"),
        ("```\nPASS\n```", "PASS"),
        ("PASS ✅\n---\n", "PASS"),
        ("\x1b[32mPASS\x1b[0m", "PASS"),
        ("Verdict: PASS\x1b[0m\n\x1b[2K", "PASS"),
        ("not \x1b[1mPASS\x1b[0m", None),
        ("PASS\x1b]0;FAIL\x07", "PASS"),
        ("\uff30\uff21\uff33\uff33", "PASS"),
        ("It needs-work", "NEEDS-WORK"),
        ("PASS\nBut look at the tests.", None),
        ("结论：PASS", "PASS"),
        ("结论：通过。", "通过"),
        ("審査の結果→通过！", "通过"),
        ("通过؟", None),
        ("不通过", None),
        ("未 通过", None),
        ("不 **PASS**", None),
        ("Result (PASS)", "PASS"),
        ("Verdict—PASS", "PASS"),
        ("I say “PASS”…", "PASS"),
        ("**Verdict:** Pass.", "PASS"),
        ("My verdict is PASS", "PASS"),
        ("No, PASS", "PASS"),
        ("Notes: PASS", "PASS"),
        ("knot PASS", "PASS"),
        ("not PASS", None),
        ("It does *not* **PASS**.", None),
        ("It can never pass", None),
        ("no pass", None),
        ("It cannot PASS", None),
        ("It doesn't `PASS`", None),
        ("It doesn’t PASS", None),
        ("PASS?", None),
        ("**PASS**?!", None),
        ("PASS？", None),
        ("PASS\n---?", "PASS"),
        ("~~PASS~~", None),
        ("FAIL ~~PASS~~", "FAIL"),
        ("~~FAIL~~ PASS", "PASS"),
        ("<del>PASS</del>", None),
        ("<s>FAIL</s> PASS", "PASS"),
        ("PASS (with two remarks)", None),
        ("PASS/FAIL", None),
        ("BYPASS", None),
        ("PASS1", None),
        ("NEEDS WORK", None),
        ("P\u200bASS", None),
        ("", None),
        ("---", None),
    ],
)
def test_the_last_word_of_the_last_line_counts_whatever_its_case_and_marks(text: str, verdict: str | None) -> None:
    assert verdict_of(text, WORDS) == verdict


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("PASS,FAIL", ("PASS", "FAIL")),
        (" yes , no,needs_work ", ("yes", "no", "needs_work")),
        ("gut,né", ("gut", "né")),
    ],
)
def test_words_are_separated_by_commas(written: str, words: tuple[str, ...]) -> None:
    assert verdict_words(written) == words


@pytest.mark.parametrize(
    "written", ["", "PASS", "PASS,", "PASS,pass", "PASS,FAIL,\uff26AIL", "PASS,NOT OK", "PASS,*", "a:b,c"]
)
def test_what_are_not_two_words_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="--verdict expects at least two different words such as PASS,FAIL"):
        verdict_words(written)


def test_a_word_of_any_length_is_read_at_once() -> None:
    assert verdict_of("a" + "\u0301\u0323" * 1_000_000 + "b", WORDS) is None
    assert verdict_of("<s>" * 1_000_000 + "PASS" + "-" * 1_000_000, WORDS) == "PASS"
    with pytest.raises(UsageError, match="--verdict expects"):
        verdict_words("PASS," + "a" + "\u0301\u0323" * 1_000_000 + "b")


@settings(max_examples=trials(200), deadline=None)
@given(st.text(max_size=30), st.sampled_from(WORDS), st.sampled_from(["", ".", "**", "\n\n", " ✓", "`\n```"]))
def test_a_word_behind_any_text_is_found_with_any_marks_behind_it(before: str, word: str, after: str) -> None:
    assert verdict_of(f"{before}\n{word}{after}", WORDS) == word


@pytest.mark.parametrize("code", [code for code in ExitCode if code is not ExitCode.DONE])
def test_a_run_that_stopped_short_keeps_its_exit_code_and_has_no_verdict(code: ExitCode) -> None:
    ended = with_verdict(Conclusion(code, "PASS", "why", "hint"), WORDS)
    assert (ended.code, ended.reason, ended.hint, ended.verdict) == (code, "why", "hint", Verdict(None))


@pytest.mark.parametrize(
    ("reply", "code", "told"),
    [
        ("Fine.\nPASS", 0, []),
        ("Bad.\nFAIL", 14, ["the verdict is FAIL"]),
        ("Hm.\nneeds-work", 14, ["the verdict is NEEDS-WORK"]),
        ("Who knows?", 15, ["the last word is none of PASS, FAIL, NEEDS-WORK, 通过"]),
    ],
)
def test_the_exit_code_of_send_is_the_verdict(world: Path, reply: str, code: int, told: list[str]) -> None:
    crew(world, {"max": [reply]})
    ran = run_here("send", "-q", "--to", "max", "--verdict", ",".join(WORDS), "Review")
    assert ran == Result(code, f"{reply}\n", notes(*told))
    assert queue() == []


def test_json_has_the_verdict_only_if_one_is_asked_for(world: Path) -> None:
    crew(world, {"max": ["FAIL", "Who knows?", "Bye."]})
    ran = run_here("send", "--json", "--to", "max", "--verdict", "PASS,FAIL", "Review")
    result = objects(ran)[-1]
    assert (ran.code, result["code"], result["outcome"], result["verdict"]) == (14, 14, "other_verdict", "FAIL")
    ran = run_here("send", "--json", "--to", "max", "--verdict", "PASS,FAIL", "Review")
    result = objects(ran)[-1]
    assert (ran.code, result["code"], result["outcome"], result["verdict"]) == (15, 15, "no_verdict", None)
    assert "verdict" not in objects(run_here("send", "--json", "--to", "max", "Bye"))[-1]


def test_a_marker_behind_the_word_does_not_hide_it(world: Path) -> None:
    crew(world, {"max": ["PASS\n[TODO: Release it]"]})
    assert run_here("send", "-q", "--to", "max", "--verdict", "PASS,FAIL", "Review").code == 0


def test_whom_the_reviewer_calls_decides_nothing(world: Path) -> None:
    crew(world, {"max": ["FAIL [NEXT: sarah]", "PASS [NEXT: sarah]"], "sarah": ["I disagree: PASS", "FAIL"]})
    assert run_here("send", "-q", "--to", "max", "--verdict", "PASS,FAIL", "Review").code == 14
    assert run_here("send", "-q", "--to", "max", "--verdict", "PASS,FAIL", "Review").code == 0


@pytest.mark.parametrize(
    ("replies", "code"),
    [
        (("PASS", "PASS"), 0),
        (("PASS", "FAIL"), 14),
        (("FAIL", "PASS"), 14),
        (("Hm.", "PASS"), 15),
        (("FAIL", "Hm."), 15),
    ],
)
@pytest.mark.parametrize("calls", ["[NEXT: max + sarah]", "[NEXT: max] [NEXT: sarah]"])
def test_all_whom_the_message_calls_must_give_the_first_word(
    calls: str, replies: tuple[str, str], code: int, world: Path
) -> None:
    crew(world, {"max": [replies[0]], "sarah": [replies[1]]})
    assert run_here("send", "-q", "--verdict", "PASS,FAIL", f"{calls} Review").code == code


def test_of_a_resumed_message_the_members_that_it_calls_decide(world: Path) -> None:
    crew(world, {"max": ["Earlier.", "PASS"], "sarah": ["PASS", "FAIL"]}, limits={"turns": 1})
    assert run_here("send", "-q", "[NEXT: max] [NEXT: sarah] Review").code == 7
    assert run_here("resume", "-q", "--verdict", "PASS,FAIL").code == 15
    assert run_here("send", "-q", "[NEXT: max] [NEXT: sarah] Review").code == 7
    assert run_here("resume", "-q", "--verdict", "PASS,FAIL").code == 14


def test_a_member_that_was_skipped_gives_no_verdict(world: Path) -> None:
    crew(world, {"max": ["PASS"], "sarah": []}, limits={"turns": 1})
    assert run_here("send", "-q", "[NEXT: max] [NEXT: sarah] Review").code == 7
    ran = run_here("resume", "-q", "--skip", "--verdict", "PASS,FAIL")
    told = notes("dropped: sarah, called by kailai in msg-1", "no member that the message calls has replied")
    assert ran == Result(15, "", told)


def test_a_run_that_waits_or_failed_has_its_own_code_and_resume_takes_the_verdict(world: Path) -> None:
    crew(world, {"max": ["PASS [NEXT: sarah]"], "sarah": ["FAIL"]}, limits={"turns": 1})
    ran = run_here("send", "--json", "--to", "max", "--verdict", "PASS,FAIL", "Review")
    assert (ran.code, objects(ran)[-1]["verdict"]) == (7, None)
    ran = run_here("resume", "--json", "--verdict", "PASS,FAIL")
    assert (ran.code, objects(ran)[-1]["verdict"]) == (0, "PASS")


def test_a_question_to_a_person_is_no_verdict(world: Path) -> None:
    crew(world, {"max": ["Which branch? PASS [NEXT: kailai]"]})
    assert run_here("send", "-q", "--to", "max", "--verdict", "PASS,FAIL", "Review").code == 9


def test_a_wrong_list_of_words_is_refused_before_anything_is_stored(world: Path) -> None:
    crew(world, {"max": ["PASS"]})
    for command in (["send", "--to", "max", "Review"], ["resume"]):
        ran = run_here(*command, "--verdict", "PASS")
        said = "--verdict expects at least two different words such as PASS,FAIL, got 'PASS'"
        assert (ran.code, refused(ran)) == (2, said)
    assert "Review" not in run_here("log").out


def test_a_recording_has_no_verdict_and_replays_as_it_was(world: Path) -> None:
    crew(world, {"max": ["FAIL"]})
    ran = run_here("send", "-q", "--to", "max", "--verdict", "PASS,FAIL", "--record", "run.cassette", "Review")
    assert ran.code == 14
    ran = run_here("replay", "run.cassette", "--verify", "--speed", "0")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(("code", "shown"), [(ExitCode.OTHER_VERDICT, ["the verdict is FAIL"]), (ExitCode.DONE, [])])
def test_a_terminal_shows_a_verdict_that_is_not_the_first_one(code: ExitCode, shown: list[str]) -> None:
    ended = with_verdict(Conclusion(ExitCode.DONE, "FAIL" if shown else "PASS"), WORDS)
    assert ended.code is code
    assert list(closing(ended, (), 80, look_of({"TERM": "dumb"}))) == shown


def test_notify_is_told_the_verdict(world: Path) -> None:
    crew(world, {"max": ["FAIL"]})
    run_here("send", "-q", "--to", "max", "--verdict", "PASS,FAIL", "--notify", "cat > told.json", "Review")
    told = json.loads(Path("told.json").read_text())
    assert (told["code"], told["verdict"]) == (14, "FAIL")
