"""`fresh = true`: the last run of a green check is in a new folder, without what git ignores."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.cli.helpers import select
from tests.cli.test_run_until import DONE, RIGHT, RUN, prompt, report, review, team, the_tests, tree, until
from tests.program import run_here, start
from tests.real.world import wait_until

__all__ = ["tree"]


def branches() -> str:
    return subprocess.run(["git", "branch", "--all"], capture_output=True, text=True, check=True).stdout


def linked() -> list[str]:
    listed = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True, check=True).stdout
    return listed.splitlines()


def test_a_green_check_runs_again_in_a_new_folder_which_goes() -> None:
    team({"sarah": [f"{RIGHT}; {DONE}"], "carol": [review(1)]}, the_tests(fresh=True))
    ran = until("--check", "tests", "--review", "carol", "--json")
    assert ran.code == 0, ran.err
    done = report(ran)
    first, second = done["rounds"][0]["checks"]
    assert (first["fresh"], second["fresh"]) == (False, True)
    assert first["tree"] == second["tree"] == done["tree"]
    assert second["reason"] == "in a new folder, without what git ignores"
    assert done["ignored"] == []
    assert "green, in a new folder, without what git ignores" in prompt("carol", 1)
    assert "checked in your folder, and in a new one" in run_here("report").out
    assert "teamchat/" not in branches()
    assert len(linked()) == 1


def test_what_git_ignores_is_not_there() -> None:
    cached = "mkdir -p home && touch home/right"  # git ignores home
    team(
        {"sarah": [f"{cached}; {DONE}"]},
        the_tests(command="test -e home/right || { echo 'no home'; exit 1; }", fresh=True),
    )
    ran = until("--check", "tests", "--rounds", "1", "--json")
    assert ran.code == 16
    assert [(one["status"], one["fresh"]) for one in report(ran)["rounds"][0]["checks"]] == [
        ("green", False),
        ("red", True),
    ]
    assert report(ran)["flaky"] == []


def test_it_has_what_is_not_committed_and_git_works_in_it() -> None:
    Path("mine.txt").write_text("not committed\n")
    command = "test -e mine.txt && git log --oneline | grep -q . && git status --porcelain | grep -q mine.txt"
    team({"sarah": [DONE]}, the_tests(command=command, fresh=True))
    ran = until("--check", "tests", "--rounds", "1")
    assert ran.code == 0, ran.out + ran.err


def test_a_program_of_the_team_runs_from_the_new_folder() -> None:
    kept = Path("prompts", "kept").absolute()  # git ignores prompts
    kept.parent.mkdir()
    Path("check.sh").write_text(f'#!/bin/sh\necho "$0" >> "{kept}"\n')
    Path("check.sh").chmod(0o755)
    Path("sub").mkdir()
    Path("sub/file").touch()
    team({"sarah": [DONE]}, the_tests(command=["./check.sh"], folder="sub", fresh=True))
    assert until("--check", "tests", "--rounds", "1").code == 0
    here, new = kept.read_text().split()
    assert here == str(Path("check.sh").absolute())
    assert new != here
    assert not Path(new).exists()


def test_what_a_check_writes_in_a_new_folder_changes_no_file_of_a_person() -> None:
    team(
        {"sarah": [DONE]},
        the_tests(command="case $PWD in */new+folder/*) echo x > adder.py; rm test_adder.py;; esac", fresh=True),
    )
    before = {path.name: path.read_bytes() for path in Path.cwd().glob("*.py")}
    assert until("--check", "tests", "--rounds", "1").code == 0
    assert {path.name: path.read_bytes() for path in Path.cwd().glob("*.py")} == before


def test_killed_in_a_new_folder_it_goes_on_and_leaves_nothing() -> None:
    kept = Path("prompts", "kept").absolute()  # git ignores prompts
    command = f'case $PWD in */new+folder/*) test -e "{kept}" || {{ touch "{kept}"; sleep 600; }};; esac'
    team({"sarah": [DONE]}, the_tests(command=command, fresh=True))
    with start(*RUN, "--check", "tests", "--rounds", "1", "Make add work") as running:
        wait_until(kept.exists)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    ran = run_here("resume")
    assert ran.code == 0, ran.err
    assert [status for (status,) in select("SELECT status FROM checks ORDER BY number")] == [
        "green",
        "not_run",
        "green",
    ]
    assert "teamchat/" not in branches()
    assert len(linked()) == 1


def test_a_check_that_is_red_only_there_has_its_tries() -> None:
    kept = Path("prompts", "kept").absolute()
    command = f'case $PWD in */new+folder/*) test -e "{kept}" || {{ touch "{kept}"; exit 1; }};; esac'
    team({"sarah": [DONE]}, the_tests(command=command, fresh=True, tries=2))
    ran = until("--check", "tests", "--rounds", "1", "--json")
    assert ran.code == 0, ran.err
    checks = report(ran)["rounds"][0]["checks"]
    assert [(one["fresh"], one["attempt"]) for one in checks] == [(False, 1), (True, 1), (True, 2)]


def test_a_red_check_was_in_no_new_folder() -> None:
    team({"sarah": [DONE]}, the_tests(command="false", fresh=True))
    ran = until("--check", "tests", "--rounds", "1", "--json")
    assert report(ran)["ignored"] == ["tests"]
