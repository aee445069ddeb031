"""What a check of `run until` protects: tests and what configures their runner, changed while members work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import select
from tests.cli.inner import errors, inner
from tests.cli.test_run_until import (
    DONE,
    RIGHT,
    RUN,
    WRONG,
    prompt,
    report,
    review,
    team,
    the_tests,
    tree,
    until,
)  # fmt: skip
from tests.program import Result, ended, run_here, start
from tests.real.world import wait_until as wait_for

__all__ = ["tree"]
EMPTY = "printf 'def test_add():\\n    pass\\n' > test_adder.py"
SKIPS = "printf 'import sys\\nsys.exit(0)\\n' > conftest.py"
PROTECT = ["test_*.py", "pytest"]


def lines(ran: Result) -> str:
    return ran.out + ran.err


def test_a_doer_that_empties_the_tests_is_red_in_each_round_until_it_puts_them_back() -> None:
    team({"sarah": [f"{EMPTY}; {DONE}", f"git checkout -q test_adder.py; {RIGHT}; {DONE}"]}, the_tests(protect=PROTECT))
    ran = until("--check", "tests", "--json")
    assert ran.code == 0, ran.err
    first, second = report(ran)["rounds"]
    assert first["checks"][0]["status"] == "red"
    assert first["checks"][0]["touched"] == ["test_adder.py"]
    assert first["checks"][0]["reason"] == "test_adder.py changed during sarah's turn, and is protected"
    assert second["checks"][0]["status"] == "green"
    assert "test_adder.py: that is protected. Put it back as it was before your turns." in prompt("sarah", 2)
    [row] = select("SELECT json_extract(result, '$.touched') FROM checks WHERE number = 1")
    assert json.loads(str(row[0])) == [{"path": "test_adder.py", "by": "sarah's turn"}]


def test_a_doer_that_insists_ends_red_and_is_named_with_the_command_that_takes_it_in() -> None:
    team({"sarah": [f"{SKIPS}; {DONE}", f"{SKIPS}; echo '#' >> adder.py; {DONE}"]}, the_tests(protect=PROTECT))
    ran = until("--check", "tests", "--rounds", "2")
    assert ran.code == 16, ran.err
    assert "conftest.py changed during sarah's turn, and is protected" in lines(ran)
    assert "teamchat until accept conftest.py" in ran.err


def test_what_a_person_accepts_is_red_no_more_as_long_as_it_stays_so() -> None:
    other = "echo '# once more' >> test_adder.py"
    team({"sarah": [f"{EMPTY}; {RIGHT}; {DONE}", DONE, f"{other}; {DONE}"]}, the_tests(protect=PROTECT, tries=1))
    assert until("--check", "tests", "--rounds", "1").code == 16
    accepted = run_here("until", "accept", "test_adder.py")
    assert accepted.code == 0
    assert "accepted: test_adder.py, which changed during sarah's turn" in accepted.err
    again = run_here("until", "accept", "test_adder.py")
    assert again.code == 0  # it says the same
    assert run_here("until", "accept", "adder.py").code == 2


def test_accepting_while_a_round_runs_lets_the_next_check_be_green() -> None:
    # sarah's second turn waits for what a person does in another terminal
    waits = "touch waits; until test -e accepted; do sleep 0.05; done"
    team({"sarah": [f"{EMPTY}; {DONE}", f"{waits}; {RIGHT}; {DONE}"]}, the_tests(protect=PROTECT))
    running = start(*RUN, "--check", "tests", "--rounds", "2", "Make add work")
    wait_for(Path("waits").exists)
    assert run_here("until", "accept", "test_adder.py").code == 0
    Path("accepted").touch()
    assert ended(running).code == 0


def test_no_agent_accepts_its_own_changes() -> None:
    team({"sarah": [f"{EMPTY}; {DONE}", f"{inner('until', 'accept', '.')}; {DONE}"]}, the_tests(protect=PROTECT))
    ran = until("--check", "tests", "--rounds", "2")
    assert ran.code == 16
    assert "protected files are accepted by a person" in errors(Path.cwd().parent)


def test_what_a_person_changes_between_two_turns_is_a_persons() -> None:
    team({"sarah": [f"{WRONG}; {DONE}", f"{RIGHT}; {DONE}"]}, the_tests(protect=PROTECT))
    assert until("--check", "tests", "--rounds", "1").code == 16
    Path("test_adder.py").write_text(Path("test_adder.py").read_text() + "\n\ndef test_more():\n    assert True\n")
    ran = until("--check", "tests", "--rounds", "1")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("path", ["sub/conftest.py", "pytest.py", "json.py"])
def test_every_file_that_configures_the_runner_counts_new_ones_too(path: str) -> None:
    make = f"mkdir -p '{Path(path).parent}' && printf '\\n' > '{path}'"
    team({"sarah": [f"{RIGHT}; {make}; {DONE}"]}, the_tests(protect=["pytest"], command="true"))
    ran = until("--check", "tests", "--rounds", "1", "--json")
    assert ran.code == 16
    assert report(ran)["rounds"][0]["checks"][0]["touched"] == [path]


def test_an_ignore_rule_hides_no_new_file() -> None:
    team({"sarah": [f"echo conftest.py >> .gitignore; {SKIPS}; {RIGHT}; {DONE}"]}, the_tests(protect=["pytest"]))
    ran = until("--check", "tests", "--rounds", "1", "--json")
    assert ran.code == 16
    assert report(ran)["rounds"][0]["checks"][0]["touched"] == ["conftest.py"]


def test_without_protect_reviewers_and_the_report_are_told() -> None:
    team({"sarah": [f"{EMPTY}; {RIGHT}; {DONE}"], "carol": [review(1)]}, the_tests())
    ran = until("--check", "tests", "--review", "carol")
    assert ran.code == 0, ran.err
    assert "Tests, or what configures their runner, were changed: test_adder.py." in prompt("carol", 1)
    assert "changed by sarah: tests that nothing protects: test_adder.py" in lines(ran)
    assert "checked in your folder, so tests does not cover what git ignores" in lines(ran)


def test_a_check_that_changes_the_tests_while_it_runs_is_told() -> None:
    again = "test -e seen || { touch seen; echo '#' >> test_adder.py; }"
    team({"sarah": [f"{RIGHT}; {DONE}"]}, the_tests(protect=PROTECT, command=f"{again}; true"))
    ran = until("--check", "tests", "--rounds", "1", "--json")
    assert ran.code == 16
    assert "test_adder.py changed during the check tests, and is protected" in lines(ran)


def test_checks_that_a_person_runs_judge_no_process() -> None:
    team({"sarah": [DONE]}, the_tests(protect=PROTECT, command="true"))
    assert run_here("check", "tests").code == 0


def test_a_second_run_does_not_make_the_first_ones_changes_anybodys() -> None:
    team({"sarah": [f"{EMPTY}; {DONE}", f"{RIGHT}; {DONE}", f"{RIGHT}; {DONE}", DONE]}, the_tests(protect=PROTECT))
    assert until("--check", "tests", "--rounds", "1").code == 16
    again = until("--check", "tests", "--rounds", "1")
    assert again.code == 16
    assert "test_adder.py changed during sarah's turn, and is protected" in lines(again)
    assert "the until is over: begin it again" in run_here("until", "accept", "test_adder.py").err
    assert until("--check", "tests", "--rounds", "1").code == 0


def test_a_planner_changes_no_protected_file_either() -> None:
    team({"max": [f"{EMPTY}; echo 'A plan.'"], "sarah": [f"{RIGHT}; {DONE}"]}, the_tests(protect=PROTECT))
    ran = until("--check", "tests", "--planner", "max", "--rounds", "1")
    assert ran.code == 16
    assert "test_adder.py changed during max's turn, and is protected" in lines(ran)


def test_a_pattern_that_names_no_file_is_told() -> None:
    team({"sarah": [f"{RIGHT}; {DONE}"]}, the_tests(protect=["test/**", "pytset", "pytest", "test_adder.py"]))
    ran = until("--check", "tests", "--rounds", "1")
    assert ran.code == 0
    assert ran.err.count("protects nothing by") == 2
    assert "check tests protects nothing by 'test/**': no file fits that pattern" in ran.err


def test_what_a_check_itself_writes_is_told_apart() -> None:
    team({"sarah": [f"{RIGHT}; {DONE}"]}, the_tests(command="date +%N > test_out.py", protect=["test_*.py"]))
    ran = until("--check", "tests", "--rounds", "1")
    assert "is taken out by a pattern such as !tests/output" in lines(ran)


@pytest.mark.parametrize(("words", "code"), [(("",), 2), ((), 2), (("nothing.py",), 2), (("./-x_test.py", "."), 0)])
def test_only_what_was_changed_is_accepted(words: tuple[str, ...], code: int) -> None:
    team({"sarah": [f"touch -- -x_test.py; {DONE}"]}, the_tests(command="true", protect=["*_test.py"]))
    ran = until("--check", "tests", "--rounds", "1")
    assert "teamchat until accept ./-x_test.py" in ran.err
    assert run_here("until", "accept", *words).code == code


def test_without_anything_to_accept_it_says_so() -> None:
    team({"sarah": [f"{RIGHT}; {DONE}"]}, the_tests(protect=PROTECT))
    assert "there is no conversation here yet" in run_here("until", "accept", ".").err
    assert until("--check", "tests", "--rounds", "1").code == 0
    ran = run_here("until", "accept", ".")
    assert ran.code == 2
    assert "no protected file was changed while the last process was at work" in ran.err


def test_many_changed_files_are_accepted_by_one_command() -> None:
    many = "mkdir tests; for n in $(seq 60); do echo > tests/test_$n.py; done"
    team({"sarah": [f"{many}; {DONE}"]}, the_tests(command="true", protect=["tests/**"]))
    ran = until("--check", "tests", "--rounds", "1")
    assert "and 55 more changed during sarah's turn" in lines(ran)
    assert "try: teamchat until accept .\n" in ran.err
