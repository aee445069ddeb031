"""How `run until` judges more than an exit code: what an output must have, second tries, and whether work gets on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.test_run_until import DONE, RIGHT, RUN, WRONG, prompt, report, review, team, the_tests, tree, until
from tests.program import Result, ended, run_here, start
from tests.real.world import wait_until

__all__ = ["tree"]
ONCE = "test -e home/tried || { mkdir -p home; touch home/tried; exit 1; }"  # git ignores home


def told(ran: Result) -> str:
    return ran.out + ran.err


# What the output must have.


def test_an_exit_code_of_0_is_not_enough_where_an_output_is_expected() -> None:
    team({"sarah": [DONE]}, the_tests(command="echo '0 passed'", expect=r"[1-9]\d* passed"))
    ran = until("--check", "tests", "--rounds", "1")
    assert ran.code == 16
    assert r"tests red, its output has nothing that matches expect, '[1-9]\\d* passed'" in told(ran)


def test_a_value_that_ends_the_run_early_is_red_where_an_output_is_expected() -> None:
    team({"sarah": [f"printf 'import os\\nos._exit(0)\\n' > adder.py; {DONE}"]}, the_tests(expect=r"[1-9]\d* passed"))
    assert until("--check", "tests", "--rounds", "1").code == 16


def test_colours_do_not_hide_what_is_expected() -> None:
    command = "printf '\\033[32m\\033[1m5\\033[0m \\033[32mpassed\\033[0m\\n'"
    team({"sarah": [DONE]}, the_tests(command=command, expect="^5 passed$"))
    assert until("--check", "tests", "--rounds", "1").code == 0


def test_fewer_than_before_the_work_began_is_red() -> None:
    Path("count").write_text("7 passed\n")
    team(
        {"sarah": [f"echo '5 passed' > count; {DONE}", f"echo '8 passed' > count; {DONE}"]},
        the_tests(command="cat count", expect=r"([1-9]\d*) passed", not_fewer=True),
    )
    ran = until("--check", "tests", "--json")
    assert ran.code == 0, ran.err
    done = report(ran)
    assert [(one["status"], one["count"]) for one in done["before"]] == [("green", 7)]
    assert [(check["status"], check["count"]) for one in done["rounds"] for check in one["checks"]] == [
        ("red", 5), ("green", 8),
    ]  # fmt: skip
    assert "before the work: tests green (check-1" in run_here("report").out
    assert done["rounds"][0]["checks"][0]["reason"] == "expect finds 5, fewer than the 7 before the work"


def test_a_dry_run_of_a_check_that_counts_shows_the_first_turn() -> None:
    team({"sarah": [DONE]}, the_tests(command="echo 3 passed", expect="3 passed", not_fewer=True))
    ran = until("--check", "tests", "--dry-run")
    assert ran.code == 0, ran.err
    assert "speaking: sarah" in ran.out


def test_groups_add_up_so_that_a_deleted_test_that_failed_is_missed_too() -> None:
    Path("count").write_text("2 failed, 5 passed\n")
    expect = r"(?:(\d+) failed, )?([1-9]\d*) passed"
    team({"sarah": [f"echo '5 passed' > count; {DONE}"]}, the_tests(command="cat count", expect=expect, not_fewer=True))
    ran = until("--check", "tests", "--rounds", "1")
    assert ran.code == 16
    assert "expect finds 5, fewer than the 7 before the work" in told(ran)


def test_a_check_by_hand_expects_the_same_output() -> None:
    team({"sarah": [DONE]}, the_tests(command="true", expect="1 passed"))
    assert run_here("check", "tests").code == 16


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        ({"not_fewer": True}, "not_fewer: expected a pattern to count by"),
        ({"expect": "("}, "expected a regular expression"),
        ({"tries": 11}, "tries"),
        ({"protect": ["# tests"]}, "expected a pattern as in a .gitignore"),
    ],
)
def test_what_no_check_can_have_is_refused(keys: dict[str, object], wrong: str) -> None:
    with pytest.raises(Exception, match=re.escape(wrong)):
        team({"sarah": [DONE]}, the_tests(**keys))


def test_a_pattern_that_takes_for_ever_holds_the_check_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teamchat.core.checks.command.LONGEST_MATCH_S", 0.5)
    team({"sarah": [DONE]}, the_tests(command="printf '%040dx' 0 | tr 0 a", expect="(a+)+$"))
    ran = until("--check", "tests", "--rounds", "1")
    assert ran.code == 1
    assert "takes longer than 0.5 s on its output; make it simpler" in told(ran)


# Second tries.


def test_a_check_that_is_green_at_the_second_try_says_so_everywhere() -> None:
    team({"sarah": [DONE], "carol": [review(1)]}, the_tests(command=f"{ONCE}; true", tries=2))
    ran = until("--check", "tests", "--review", "carol", "--json")
    assert ran.code == 0, ran.err
    done = report(ran)
    assert [(one["status"], one["attempt"]) for one in done["rounds"][0]["checks"]] == [("red", 1), ("green", 2)]
    assert done["flaky"] == ["tests"]
    assert "tests (test -e home/tried" in prompt("carol", 1)
    assert "green, at the 2nd try" in prompt("carol", 1)
    said = run_here("report").out
    assert "tests green, at the 2nd try (check-2" in said
    assert "flaky: tests was green and red on the same files" in said
    assert "green, at the 2nd try" in run_here("show", "check-2").out


def test_what_is_red_at_each_try_is_red() -> None:
    team({"sarah": [DONE]}, the_tests(command="false", tries=3))
    ran = until("--check", "tests", "--rounds", "1", "--json")
    assert ran.code == 16
    assert [one["attempt"] for one in report(ran)["rounds"][0]["checks"]] == [1, 2, 3]
    assert report(ran)["flaky"] == []


def test_without_tries_a_red_check_runs_once() -> None:
    team({"sarah": [DONE]}, the_tests(command="false"))
    ran = until("--check", "tests", "--rounds", "1", "--json")
    assert [one["attempt"] for one in report(ran)["rounds"][0]["checks"]] == [1]


def test_what_protected_files_make_red_is_not_tried_again() -> None:
    team({"sarah": [f"touch conftest.py; {DONE}"]}, the_tests(command="true", protect=["pytest"], tries=3))
    ran = until("--check", "tests", "--rounds", "1", "--json")
    assert [one["attempt"] for one in report(ran)["rounds"][0]["checks"]] == [1]


# Whether the work gets on.


def test_a_doer_that_leaves_the_files_as_they_were_pauses_it() -> None:
    team({"sarah": [f"{WRONG}; {DONE}", DONE, f"{RIGHT}; {DONE}"]}, the_tests())
    ran = until("--check", "tests", "--rounds", "6")
    assert ran.code == 7
    assert "no progress: sarah's turn msg-3 left the files as sarah's turn msg-2 did" in ran.err
    assert "teamchat resume" in ran.err
    assert run_here("resume").code == 0


def test_a_turn_that_goes_back_to_an_earlier_tree_pauses_it() -> None:
    turns = ["echo 1 > a", "echo 2 > a", "echo 1 > a"]
    team({"sarah": [f"{one}; {DONE}" for one in turns]}, the_tests(command='exit "$(cat a)"'))
    ran = until("--check", "tests", "--rounds", "6")
    assert ran.code == 7
    assert "no progress: sarah's turn msg-4 left the files as sarah's turn msg-2 did" in ran.err


def test_the_same_failing_lines_three_times_pause_it() -> None:
    turns = [f"echo {number} > a; {DONE}" for number in range(9)]
    failing = 'echo "FAILED test_add in 0.$(cat a) s"; exit 1'
    team({"sarah": turns}, the_tests(command=failing))
    ran = until("--check", "tests", "--rounds", "6")
    assert ran.code == 7
    turns_told = "sarah's turn msg-2, sarah's turn msg-3 and sarah's turn msg-4"
    assert f"no progress: the same lines of tests failed after {turns_told}" in ran.err


def test_other_failing_lines_each_time_do_not() -> None:
    words = ["add", "sub", "mul"]
    turns = [f"echo {word} > a; {DONE}" for word in words] + [f"echo ok > a; {DONE}"]
    team({"sarah": turns}, the_tests(command='grep -q ok a || { echo "FAILED test_$(cat a)"; exit 1; }'))
    assert until("--check", "tests", "--rounds", "6").code == 0


@pytest.mark.parametrize(("checks", "code"), [("false", 16), ("true", 17)])
def test_with_the_rounds_used_up_the_last_result_counts(checks: str, code: int) -> None:
    team({"sarah": [DONE], "carol": [review(number, "FAIL", "No.") for number in (1, 2, 3)]}, the_tests(command=checks))
    ran = until("--check", "tests", "--review", "carol", "--rounds", "2")
    assert ran.code == code


def test_a_doer_that_answers_findings_in_words_alone_may_convince() -> None:
    team(
        {"sarah": [f"{RIGHT}; {DONE}", "echo '1: it is meant so.'"], "carol": [review(1, "FAIL", "Why?"), review(2)]},
        "",
    )
    assert until("--review", "carol", "--rounds", "6").code == 0


# Edits while it is reviewed.

LEAVES = "setsid sh -c 'until test -e reviewing; do sleep 0.02; done; echo \"# late\" >> adder.py' >/dev/null 2>&1 &"
WAITS = "touch reviewing; until test -e go; do sleep 0.02; done; rm go reviewing"


def edited(first: str, times: int) -> Result:
    """The run of a doer whose first turn is that shell command, while a person edits so many reviews."""
    ignored = Path(".gitignore").read_text()
    Path(".gitignore").write_text(f"{ignored}reviewing\ngo\n")
    team({"sarah": [first], "carol": [f"{WAITS}; {review(1)}"]}, the_tests(protect=["test_*.py"]))
    with start(*RUN, "--check", "tests", "--review", "carol", "--rounds", "1", "--json", "Make add work") as running:
        for number in range(2):
            wait_until(lambda: Path("reviewing").exists() or running.poll() is not None)
            if number < times:
                Path("mine.py").write_text(f"# {number}\n")
            if running.poll() is None:
                Path("go").touch()
                wait_until(lambda: not Path("go").exists() or running.poll() is not None)
        return ended(running)


@pytest.mark.parametrize(
    ("leaves", "times", "code"), [("", 0, 0), ("", 1, 0), ("", 2, 1), (f"{LEAVES} ", 0, 0), (f"{LEAVES} ", 1, 0)]
)
def test_what_changes_while_it_is_reviewed_is_checked_again_once_and_then_said(
    leaves: str, times: int, code: int
) -> None:
    ran = edited(f"{RIGHT}; {leaves}{DONE}", times)
    assert ran.code == code, ran.err
    assert len(report(ran)["rounds"][-1]["checks"]) == 1 + min(times, 1)
    assert ("the files changed while they were reviewed" in told(ran)) == (code == 1)
    assert "# late" not in Path("adder.py").read_text()


def test_protected_files_that_change_while_it_is_reviewed_are_red() -> None:
    team(
        {"sarah": [f"{RIGHT}; {DONE}"], "carol": [f"echo '#' >> test_adder.py; {review(1)}", review(1)]},
        the_tests(protect=["test_*.py"]),
    )
    ran = until("--check", "tests", "--review", "carol", "--rounds", "1")
    assert ran.code == 16
    assert "test_adder.py changed during carol's turn, and is protected" in told(ran)
