"""`teamchat show check-N`: the receipt of a check, and what the check wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.checked import checked_crew, repository, until
from tests.cli.helpers import HINT, objects, refused
from tests.cli.test_terminal import at_terminal
from tests.program import ended, run_here, start
from tests.runners.processes import eventually


@pytest.fixture
def red(world: Path) -> None:
    """A check that wrote two lines, changed a file and failed."""
    checked_crew(world, {"tests": "printf 'one\\033[31m\\ntwo'; echo x > made.txt; exit 3"})
    repository()
    assert until("tests").code == 16


@pytest.mark.usefixtures("red")
def test_a_receipt_has_what_ran_and_what_came_of_it() -> None:
    lines = run_here("show", "check-1").out.split("\n")
    assert lines[0] == "check-1 · tests · red, exit code 3"
    named = {line[2:12].strip(): line[12:] for line in lines if line.startswith("  ")}
    assert named["ran"].startswith("printf")
    assert named["in"] == str(Path.cwd())
    assert named["why"] == "in a process, after turn 1"
    assert named["exit code"] == "3"
    assert named["changed"] == "made.txt  +1 −0  new"
    before, after = named["trees"].split("..")
    assert before != after
    assert lines[-4:-1] == ["  its output:", "  | one", "  | two"]


@pytest.mark.usefixtures("red")
def test_its_output_is_printed_as_it_was_written() -> None:
    ran = run_here("show", "check-1", "--reply")
    assert (ran.code, ran.out) == (0, "one\x1b[31m\ntwo")


@pytest.mark.usefixtures("red")
def test_at_a_terminal_its_output_is_harmless() -> None:
    for options in ((), ("--reply",)):
        shown = at_terminal("show", "check-1", *options).out
        assert "\x1b[31m" not in shown
        assert re.search("one$", shown, re.MULTILINE)


@pytest.mark.usefixtures("red")
def test_json_has_its_fields_and_its_output() -> None:
    (shown,) = objects(run_here("show", "check-1", "--json"))
    assert isinstance(shown.pop("seconds"), float)
    assert isinstance(shown.pop("started_at"), float)
    assert shown.pop("before") != shown.pop("after")
    command = "printf 'one\\033[31m\\ntwo'; echo x > made.txt; exit 3"
    assert shown == {
        "v": 1, "type": "check", "check": "check-1", "number": 1, "name": "tests", "command": command, "route": 2,
        "after_turn": 1, "status": "red", "reason": "exit code 3", "exit_code": 3, "not_run": None, "output_bytes": 12,
        "left": [], "touched": [], "count": None, "attempt": 1, "fresh": False,
        "files": [{"path": "made.txt", "what": "added", "added": 1, "removed": 0}],
        "cwd": str(Path.cwd()), "abandoned": False, "undone": False, "output": "one\x1b[31m\ntwo",
    }  # fmt: skip


@pytest.mark.usefixtures("red")
@pytest.mark.parametrize("name", ["check-2", "check-0", "check-" + "9" * 30])
def test_one_that_is_not_there(name: str) -> None:
    ran = run_here("show", name)
    assert ran.code == 4
    assert refused(ran) == f"session s1 has no {name}"
    assert f"{HINT}teamchat log\n" in ran.err


@pytest.mark.usefixtures("red")
@pytest.mark.parametrize("option", ["--prompt", "--system", "--diff"])
def test_a_check_has_no_prompt(option: str) -> None:
    ran = run_here("show", "check-1", option)
    assert ran.code == 2
    assert refused(ran) == "a check has no prompt: --prompt, --system and --diff are for a turn"


def test_what_a_progress_bar_writes_over_itself_is_in_lines_of_its_own(world: Path) -> None:
    checked_crew(world, {"tests": r"printf '10%%\r20%%\rdone\r\nend\r\r\n'"})
    assert run_here("check").code == 0
    assert run_here("show", "check-1").out.endswith("  its output:\n  | 10%\n  | 20%\n  | done\n  | end\n")
    assert run_here("show", "check-1", "--reply").out.encode() == b"10%\r20%\rdone\r\nend\r\r\n"
    assert "10%\n20%\ndone\nend\n" in at_terminal("show", "check-1", "--reply").out.replace("\r\n", "\n")
    assert ">     10%\n>     20%\n>     done\n>     end\n" in run_here("export", "--format", "md").out
    assert "<pre>10%\n20%\ndone\nend\n</pre>" in run_here("export", "--format", "html").out


def test_one_that_wrote_nothing(world: Path) -> None:
    checked_crew(world, {"tests": "true"})
    repository()
    assert until("tests").code == 0
    shown = run_here("show", "check-1").out
    assert shown.startswith("check-1 · tests · green\n")
    assert "  changed " not in shown
    assert "its output" not in shown
    assert run_here("show", "check-1", "--reply").out == ""


def test_one_that_runs_and_one_that_was_killed(world: Path) -> None:
    checked_crew(world, {"tests": "echo begun; touch begun; sleep 60"})
    with start("check", "tests") as process:
        assert eventually(Path("begun").exists)
        shown = run_here("show", "check-1").out
        assert shown.startswith("check-1 · tests · running\n")
        assert shown.endswith("  its output so far:\n  | begun\n")
        process.kill()
        ended(process)
    assert run_here("show", "check-1").out.startswith("check-1 · tests · was running when teamchat was killed\n")
    (told,) = objects(run_here("show", "check-1", "--json"))
    assert (told["status"], told["abandoned"], told["output"]) == ("running", True, "begun\n")
    assert run_here("check", "true").code == 0
    assert run_here("show", "check-1", "--reply").out == "begun\n"
