"""`run until --worktree`: all of it in a worktree of its own, which a person merges; and a planner before the work."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.helpers import select
from tests.cli.test_run_until import (
    DONE,
    RIGHT,
    TESTS,
    WRONG,
    prompt,
    prompts,
    report,
    review,
    team,
    the_tests,
    tree,
    until,
)  # fmt: skip
from tests.program import run_here

__all__ = ["tree"]


def test_all_of_it_is_done_in_a_worktree_and_merged_by_a_person() -> None:
    team({"sarah": [f"{WRONG}; {DONE}", f"{RIGHT}; {DONE}"], "carol": [review(2)]}, the_tests(protect=["test_*.py"]))
    Path("mine.txt").write_text("not committed\n")
    ran = until("--check", "tests", "--review", "carol", "--worktree", "--json")
    assert ran.code == 0, ran.err
    done = report(ran)
    assert (done["result"], done["worktree"]) == ("done", "sarah")
    assert not Path("adder.py").exists()
    [(where,)] = set(select("SELECT json_extract(setup, '$.cwd') FROM turns"))
    assert "/worktrees/" in str(where)
    assert Path(str(where), "adder.py").exists()
    assert Path(str(where), "mine.txt").exists()
    assert {str(cwd).strip('"') for (cwd,) in select("SELECT cwd FROM checks")} == {where}
    assert "teamchat merge sarah" in ran.err + ran.out
    assert "+    return a + b" in prompt("carol", 1)
    assert "mine.txt" not in prompt("carol", 1)
    assert "checked in the worktree sarah, so tests does not cover" in run_here("report").out
    assert run_here("merge", "sarah").code == 0
    assert "a + b" in Path("adder.py").read_text()
    assert Path("test_adder.py").read_bytes() == TESTS


def test_protected_files_of_a_worktree_are_accepted_there() -> None:
    empty = "printf 'def test_add():\\n    pass\\n' > test_adder.py"
    team({"sarah": [f"{empty}; {DONE}"]}, the_tests(protect=["test_*.py"]))
    assert until("--check", "tests", "--rounds", "1", "--worktree").code == 16
    assert run_here("until", "accept", "test_adder.py").code == 0
    assert Path("test_adder.py").read_bytes() == TESTS


def test_what_is_not_merged_of_an_earlier_one_is_not_mixed_with_the_next() -> None:
    team({"sarah": [f"{RIGHT}; {DONE}"]}, the_tests())
    assert until("--check", "tests", "--worktree").code == 0
    ran = until("--check", "tests", "--worktree")
    assert ran.code == 2
    assert "teamchat merge sarah" in ran.err


def test_a_fresh_check_and_a_program_of_the_team_run_for_the_files_of_the_worktree() -> None:
    Path("check.sh").write_text("#!/bin/sh\ngrep -q 'a + b' adder.py\n")
    Path("check.sh").chmod(0o755)
    team({"sarah": [f"{RIGHT}; {DONE}"]}, the_tests(command=["./check.sh"], fresh=True))
    ran = until("--check", "tests", "--worktree", "--rounds", "1")
    assert ran.code == 0, ran.out + ran.err
    branches = subprocess.run(["git", "branch"], capture_output=True, text=True, check=True).stdout
    assert branches.count("teamchat/") == 1


def test_what_a_person_changes_meanwhile_stays_out() -> None:
    here = Path("adder.py").absolute()
    team({"sarah": [f"echo '# mine' > {here}; {DONE}", f"{RIGHT}; {DONE}"]}, the_tests())
    ran = until("--check", "tests", "--worktree")
    assert ran.code == 0, ran.err
    assert here.read_text() == "# mine\n"


def test_a_planner_only_reads_and_its_plan_is_shown() -> None:
    team(
        {"max": ["echo 'First the parser, then add.'"], "sarah": [f"{RIGHT}; {DONE}"], "carol": [review(1)]},
        the_tests(),
    )
    ran = until("--check", "tests", "--review", "carol", "--planner", "max", "--json")
    assert ran.code == 0, ran.err
    assert report(ran)["planner"] == "max"
    assert "You plan this task" in prompt("max", 1)
    assert "First the parser, then add." in prompt("sarah", 1)
    assert "by the plan above" in prompt("sarah", 1)
    assert "max's plan: First the parser, then add." in prompt("carol", 1)
    assert select("SELECT json_extract(setup, '$.access') FROM turns WHERE member = 'max'") == [("read",)]


def test_a_planner_that_fails_is_asked_again_by_a_resume() -> None:
    team({"max": ["exit 1", "echo 'The plan.'"], "sarah": [f"{RIGHT}; {DONE}"]}, the_tests())
    assert until("--check", "tests", "--planner", "max").code == 1
    assert prompts("sarah") == 0
    assert run_here("resume").code == 0
    assert "The plan." in prompt("sarah", 1)


def test_a_person_plans_nothing() -> None:
    team({"sarah": [DONE]}, the_tests())
    ran = until("--check", "tests", "--planner", "kailai")
    assert ran.code == 2
    assert "kailai is a person" in ran.err
