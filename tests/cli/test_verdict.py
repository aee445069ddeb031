"""`--verdict PASS,FAIL`: the word at the end of the last reply is the exit code of a run that is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.cli.output.terminal.look import look_of
from teamchat.cli.output.terminal.output import closing
from teamchat.cli.startup.verdict import verdict_of, verdict_words, with_verdict
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.turn.run_events import Conclusion, RunVerdict
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
        ("It needs-work", None),
        ("PASS\nBut look at the tests.", None),
        ("结论：PASS", "PASS"),
        ("结论：通过。", "通过"),
        ("審査の結果→通过！", "通过"),
        ("通过؟", None),
        ("不通过", None),
        ("未 通过", None),
        ("不 **PASS**", None),
        ("Result (PASS)", None),
        ("Verdict—PASS", "PASS"),
        ("I say “PASS”…", None),
        ("**Verdict:** Pass.", "PASS"),
        ("My verdict is PASS", "PASS"),
        ("No, PASS", None),
        ("Notes: PASS", "PASS"),
        ("knot PASS", None),
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
    for many in ("[", "- [", "[]", "*", ": ", "! ", "|", ". ", "\n"):
        verdict_of(f"{many * 300_000}PASS{many * 300_000}", WORDS)
    with pytest.raises(UsageError, match="--verdict expects"):
        verdict_words("PASS," + "a" + "\u0301\u0323" * 1_000_000 + "b")


@settings(max_examples=trials(200), deadline=None)
@given(st.text(max_size=30), st.sampled_from(WORDS), st.sampled_from(["", ".", "**", "\n\n", " ✓", "`\n```"]))
def test_a_word_behind_any_text_is_found_with_any_marks_behind_it(before: str, word: str, after: str) -> None:
    assert verdict_of(f"{before}\n\n{word}{after}", WORDS) == word


PASSES = [
    # the line is the word
    "PASS",
    "**PASS.**",
    "# PASS",
    "- PASS",
    "1. PASS",
    "- [x] PASS",
    "| PASS |",
    "✅ PASS",
    "PASS ✔️",
    "🟢 `pass`!",
    "\ufeffPASS",
    # its last sentence is
    "No blocking issues. PASS",
    "**No blocking issues!** PASS",
    "Does it hold? PASS",
    "没有问题。PASS",
    "It does not\nwork on Windows, as before. PASS",
    # it stands behind a label and a sign
    "Verdict: PASS",
    "**Verdict**: ✅ PASS",
    "结论：PASS",
    "Verdict = PASS",
    "Verdict - PASS",
    "Verdict – PASS",
    "Verdict—PASS",
    "Verdict → PASS",
    "Verdict -> PASS",
    "| Verdict | **PASS** |",
    "The verdict is PASS",
    "Tests pass: PASS",
    "All of this I have read and run. Verdict: PASS",
    # the line before is whole
    "It has no bugs.\nPASS",
    "It has no bugs\n\nPASS",
    "| Bugs | none |\n| Verdict | PASS |",
    "Bugs: none\nVerdict: PASS",
]
NO_VERDICTS = [
    # a sentence that has the word
    "Two tests fail. It is not a PASS.",
    "Without tests there is no real PASS",
    "This cannot be called PASS",
    "I refuse to PASS",
    "nicht PASS",
    "FAIL or PASS",
    "FAIL vs. PASS",
    "It does not ... PASS",
    "<verdict>PASS</verdict>",
    "PASS (two nits)",
    "Verdict: FAIL. Expected: PASS",
    "FAIL. Once fixed: PASS",
    "FAIL or\nPASS",
    "FAIL /\nPASS",
    "FAIL\nor\nPASS",
    "* (x) FAIL\n* ( ) PASS",
    "Verdict: FAIL\n\n[^1]: PASS",
    "[1]: PASS",
    "Rejected: PASS",
    "Verdict: anything but → PASS",
    "What it lacks is PASS",
    "I'm unable to issue a\nPASS",
    "I reject the\nPASS",
    # a label that denies it
    "It is n**o**t: PASS",
    "Not the verdict - PASS",
    "This isn’t true: PASS",
    "Kein Urteil: PASS",
    "并不是：PASS",
    "FAIL → PASS",
    "| NEEDS WORK | PASS |",
    "What I was asked to say: PASS",
    "The verdict?: PASS",
    "Do all tests run? Verdict: PASS",
    "Verdict != PASS",
    "Verdict: maybe PASS",
    # a sign or the line before denies it
    "❌ PASS",
    "PASS 🚫",
    "PASS\n\n❌",
    "Verdict ❌: PASS",
    "- [ ] PASS",
    "PASS [ ]",
    "!PASS",
    "Verdict: PASS?",
    "It does not\nPASS",
    "It does\nnot really\n**PASS**",
    "It is not so that the\nverdict is PASS",
]
TABLE = [*((text, "PASS", 0) for text in PASSES), *((text, None, 15) for text in NO_VERDICTS)]


@pytest.mark.parametrize(("text", "word", "code"), TABLE)
def test_a_word_opens_the_gate_only_in_a_form_that_is_listed(text: str, word: str | None, code: int) -> None:
    ended = with_verdict(Conclusion(ExitCode.DONE, text), WORDS)
    assert (ended.verdict, ended.code) == (RunVerdict(word), code)


@pytest.mark.parametrize("text", [text for text, _, _ in TABLE if "FAIL" not in text and "NEEDS" not in text])
@pytest.mark.parametrize("word", ["FAIL", "Needs-Work", "通过"])
def test_every_word_is_read_as_the_first_one_is(text: str, word: str) -> None:
    of_the_first = verdict_of(text.replace("pass", "PASS"), WORDS)
    given = verdict_of(text.replace("Tests pass", "Tests").replace("pass", "PASS").replace("PASS", word), WORDS)
    assert given == (of_the_first and word.upper())


@settings(max_examples=trials(200), deadline=None)
@given(
    st.sampled_from(["PASS", "Fine. PASS", "Verdict: PASS", "The verdict is PASS", "Verdict → PASS", "a | PASS"]),
    st.lists(
        st.sampled_from(["**{}**", "*{}*", "__{}__", "- {}", "2. {}", "## {}", "| {} |", "[x] {}", "{} ✅", "{}."])
    ),
)
def test_marks_around_a_form_that_is_listed_change_nothing(text: str, marks: list[str]) -> None:
    for mark in marks:
        text = mark.format(text)
    assert verdict_of(f"Not so bad.\n{text}\n", WORDS) == "PASS"


@settings(max_examples=trials(200), deadline=None)
@given(
    st.lists(st.sampled_from(["the", "verdict", "is", "**", "it", "✅", "a"]), max_size=3),
    st.sampled_from(["not", "No", "NEVER", "doesn't", "nicht", "kein", "pas", "не", "不", "没", "FAIL", "needs work"]),
    st.lists(st.sampled_from(["the", "verdict", "is", "**", "it", "✅", "a"]), max_size=3),
    st.sampled_from([": ", "：", " = ", " - ", " – ", "—", " → ", " -> ", " | ", " is ", " ", "\n", ", ", "... "]),
    st.sampled_from(["PASS", "**PASS**", "“PASS”", "✅ PASS", "[x] PASS", "PASS."]),
)
def test_no_label_and_no_line_before_with_a_negation_opens_the_gate(
    before: list[str], negation: str, after: list[str], sign: str, word: str
) -> None:
    if sign == "\n" and (negation in {"FAIL", "needs work"} or not after):  # an answer of its own, such as `No`
        return
    assert verdict_of(" ".join([*before, negation, *after]) + sign + word, WORDS) is None


@pytest.mark.parametrize("code", [code for code in ExitCode if code is not ExitCode.DONE])
def test_a_run_that_stopped_short_keeps_its_exit_code_and_has_no_verdict(code: ExitCode) -> None:
    ended = with_verdict(Conclusion(code, "PASS", "why", "hint"), WORDS)
    assert (ended.code, ended.reason, ended.hint, ended.verdict) == (code, "why", "hint", RunVerdict(None))


@pytest.mark.parametrize(
    ("reply", "code", "told"),
    [
        ("Fine.\nPASS", 0, []),
        ("Bad.\nFAIL", 14, ["the verdict is FAIL"]),
        ("Hm.\nneeds-work", 14, ["the verdict is NEEDS-WORK"]),
        ("Who knows?", 15, ["the last line gives none of PASS, FAIL, NEEDS-WORK, 通过"]),
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
