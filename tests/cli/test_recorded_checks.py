"""Recordings of `run until`: a replay runs no check, and builds the prompts that show what checks and reviews said."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.check import Check, CheckResult
from teamchat.core.store.checks import begin_check, end_check
from teamchat.core.store.database import Database
from tests.cli.helpers import objects, refused
from tests.hostile_git import git
from tests.program import Result, ended, run_here, start
from tests.runners.processes import eventually
from tests.scripted_team import Crew, crew

FILE = Path("../talk.cassette")
SECRET = "sk-ant-api03-0123456789abcdefghij"
pytestmark = pytest.mark.usefixtures("made")
DOER = """import pathlib, sys
sys.stdin.read()
work = pathlib.Path("work.txt")
tries = len(work.read_text()) + 1 if work.exists() else 1
work.write_text("x" * tries)
print(f"Try {tries} is done.")
"""
CHECK = """import os, pathlib, sys
tries = len(pathlib.Path("work.txt").read_text())
pathlib.Path(os.environ["RUNS"]).open("a").write("run ")
sys.stdout.buffer.write(b"seen \\xff\\n" if tries == 1 else f"tries: {tries} {os.environ.get('SAYS', '')}\\n".encode())
sys.exit(tries < 2)
"""


def review(number: int, verdict: str, *findings: str) -> str:
    return json.dumps({"round": number, "verdict": verdict, "findings": [{"text": text} for text in findings]})


@pytest.fixture
def made(world: Path, monkeypatch: pytest.MonkeyPatch) -> Crew:
    """A repository in which sarah's second try is green, and carol agrees with the third."""
    folder = Path.cwd()
    (world / "runs").touch()
    monkeypatch.setenv("RUNS", str(world / "runs"))
    git(folder, "init", "-q")
    (world / "doer.py").write_text(DOER)
    (folder / "check.py").write_text(CHECK)
    return team(world, f'["{sys.executable}", "check.py"]')


def team(world: Path, command: str, more: str = "") -> Crew:
    made = crew(world, {"carol": [review(2, "FAIL", "one x more"), review(3, "PASS")]})
    doer = json.dumps([sys.executable, str(world / "doer.py")])
    made.file.write_text(
        f"{made.file.read_text()}\n"
        f'[[members]]\nname = "sarah"\nagent = "doer"\naccess = "edit"\n'
        f'[agents.doer]\ncommand = {doer}\nlike = "plain"\n'
        f'[checks.tests]\ncommand = {command}\nenv_keep = ["RUNS"]\n{more}'
    )
    return made


def record(*args: str, check: str = "tests", rounds: int = 3) -> Result:
    process = ("--do", "sarah", "--check", check, "--review", "carol", "--rounds", str(rounds))
    return run_here("run", "--trust", "--record", FILE, *args, "until", *process, "Write three x")


def replay(*args: str) -> Result:
    return run_here("replay", "--speed", "0", *args, FILE)


def runs() -> int:
    """How often a check has run."""
    return len(Path("../runs").read_text().split())


def exact() -> None:
    """The recording plays byte for byte, without any of the programs, and has the prompts of today."""
    before = runs()
    path, os.environ["PATH"] = os.environ["PATH"], "/nowhere"
    try:
        ran = replay("--verify")
        assert ran.code == 0, ran.err
        tested = run_here("test", FILE)
        assert tested.code == 0, tested.out
    finally:
        os.environ["PATH"] = path
    assert runs() == before


def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text().splitlines()]


def change(change_it: Callable[[dict[str, Any]], object], which: int = 0, kind: str = "check") -> None:
    lines = entries()
    change_it([line for line in lines if kind in line][which][kind])
    FILE.write_text("".join(json.dumps(line) + "\n" for line in lines))


def checks() -> list[dict[str, Any]]:
    return [line["check"] for line in entries() if "check" in line]


def test_a_replay_runs_no_check_and_shows_what_the_recorded_ones_said() -> None:
    assert record().code == 0
    assert runs() == 3
    kinds = [key for line in entries()[1:] for key in line]
    assert kinds == ["human", "turn", "check", "turn", "check", "turn", "turn", "check", "turn", "end"]
    exact()
    assert [line["status"] for line in checks()] == ["red", "green", "green"]
    assert (checks()[0]["output"], checks()[1]["output"]) == ("", "tries: 2 \n")
    told = [line["turn"] for line in entries() if "turn" in line]
    assert "seen �" in told[1]["stdin"]
    assert all("tries: 2" in told[turn]["stdin"] for turn in (2, 3))
    assert "one x more" in told[3]["stdin"]
    assert all("differences__context" in told[turn]["told"]["layers"] for turn in (2, 4))
    shown = [line for line in objects(replay("--json")) if line["type"] == "check_finished"]
    assert [(line["check"], line["status"], line["exit_code"]) for line in shown] == [
        ("check-1", "red", 1),
        ("check-2", "green", 0),
        ("check-3", "green", 0),
    ]


def test_a_reviewer_that_is_asked_again_in_the_same_round_is_shown_the_same_differences_again(made: Crew) -> None:
    note = Path("note").absolute()  # what was checked is no longer there, so that all is verified once more
    made.say("carol", {"say": review(2, "PASS"), "touch": str(note)}, review(2, "PASS"))
    assert record().code == 0
    told = [line["turn"]["told"] for line in entries() if "turn" in line and line["turn"]["member"] == "carol"]
    assert [(one["part"], one["go"]) for one in told] == [(["reviewer", 2], 1), (["reviewer", 2], 2)]
    assert ["note" in one["layers"]["differences__context"] for one in told] == [False, True]
    assert [line["status"] for line in checks()] == ["red", "green", "green"]
    exact()


def test_a_recording_has_no_folder_of_its_machine(made: Crew, world: Path) -> None:
    Path("tools").mkdir()
    program = Path("tools/check")
    program.write_text("#!/bin/sh\necho fine\n")
    program.chmod(0o755)
    team(world, '["tools/check", "-q"]')
    made.say("carol", review(1, "PASS"))
    assert record().code == 0
    assert [line["command"] for line in checks()] == [["tools/check", "-q"]]
    assert str(world) not in json.dumps([checks(), *(line["turn"]["stdin"] for line in entries() if "turn" in line)])
    exact()
    team(world, '["/bin/true"]')
    made.say("carol", *[review(1, "PASS")] * 2)
    FILE.unlink()
    assert record("--new").code == 0
    assert [line["command"] for line in checks()] == [["true"]]
    exact()


def test_with_another_team_file_a_check_must_be_the_recorded_one(world: Path) -> None:
    assert record().code == 0
    team_file = Path("teamchat.toml")
    assert replay("--verify", "--team", str(team_file.absolute())).code == 0
    team(world, '["make", "tests"]')
    ran = replay("--team", str(team_file.absolute()))
    assert ran.code == 10
    assert "no recording of the check tests (make tests): the next recorded one is the check tests (python" in ran.err
    tested = run_here("test", "--team", str(team_file.absolute()), FILE)
    assert tested.code == 1
    assert "+check-1 tests (make tests): red, exit code 1" in tested.out
    began = [line["at"] for line in checks()]
    assert run_here("test", "--update", "--team", str(team_file.absolute()), FILE).code == 0
    assert [line["command"] for line in checks()] == [["make", "tests"]] * 3
    assert [line["at"] for line in checks()] == began
    assert runs() == 3
    exact()


def test_a_replay_with_no_recording_of_a_check_is_an_error() -> None:
    assert record().code == 0
    lines = FILE.read_text().splitlines(keepends=True)
    FILE.write_text("".join(line for line in lines if not line.startswith('{"check"')))
    ran = replay()
    assert ran.code == 10
    assert "no recording of the check tests (python" in ran.err
    assert "none is left" in ran.err
    assert runs() == 3


def test_verify_compares_the_checks() -> None:
    assert record().code == 0
    change(lambda line: line.update(reason="exit code 2", exit_code=2))
    ran = replay("--verify")
    assert ran.code in (1, 10)  # the next prompt shows the reason
    change(lambda line: line.update(reason="exit code 1", exit_code=1))
    exact()
    change(lambda line: line["checks"][2].update(output_bytes=7, exit_code=3), kind="end")
    ran = replay("--verify")
    assert ran.code == 1
    assert "check 3 exit_code: 0 instead of 3" in ran.err
    change(lambda line: line.pop("checks"), kind="end")
    assert replay("--verify").code == 0
    lines = FILE.read_text().splitlines(keepends=True)
    again = next(line for line in lines if line.startswith('{"check"'))
    FILE.write_text("".join([*lines[:-1], again, lines[-1]]))
    ran = replay("--verify")
    assert ran.code == 1
    assert "a recorded run of the check tests that nobody asked for" in ran.err


def test_a_recorded_process_that_ended_red_goes_on_in_no_replay() -> None:
    assert record(rounds=1).code == 16
    exact()
    assert replay().code == 16


def test_what_a_check_wrote_and_how_it_is_called_has_no_secret(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "blue-heron-77")
    command = json.dumps([sys.executable, "check.py", "--token", SECRET])
    team(world, command, f'env = {{ SAYS = "{SECRET} blue-heron-77" }}\n')
    assert record().code == 0
    text = FILE.read_text()
    assert not [word for word in (SECRET, "blue-heron-77") if word in text]
    exact()


def test_a_secret_in_a_typed_check_is_not_recorded() -> None:
    typed = f"TOKEN=green-heron-78 {shlex.join([sys.executable, 'check.py'])} && echo green-heron-78"
    assert record(check=typed).code == 0
    assert "green-heron-78" not in FILE.read_text()
    exact()


# --- stopped, and resumed


def test_an_interrupted_check_is_interrupted_again_and_a_resume_goes_on(world: Path) -> None:
    hang = world / "hang"
    hang.touch()
    team(world, json.dumps(f"if test -e {hang}; then touch {world}/hangs; sleep 600; fi; {sys.executable} check.py"))
    process = start(
        "run", "--trust", "--record", FILE, "until", "--do", "sarah", "--check", "tests", "--review", "carol", "Go"
    )
    assert eventually((world / "hangs").exists)
    os.kill(process.pid, signal.SIGINT)
    assert ended(process).code == 130
    assert [(line["status"], line["not_run"]) for line in checks()] == [("not_run", "interrupted")]
    exact()
    hang.unlink()
    assert run_here("resume", "--record", FILE).code == 0
    assert [line["status"] for line in checks()] == ["not_run", "red", "green", "green"]
    exact()


def test_a_replay_at_the_recorded_pace_can_be_ended_while_a_check_is_shown() -> None:
    assert record().code == 0
    change(lambda line: line.update(seconds=500))
    with start("replay", FILE) as process:
        assert process.stderr is not None
        assert any(b"check tests runs" in line for line in process.stderr)
        os.kill(process.pid, signal.SIGINT)
        assert ended(process).code == 130
    assert runs() == 3


def test_a_check_that_could_not_run_is_none_again(world: Path) -> None:
    team(world, '["no-such-program"]')
    ran = record()
    exact()
    assert replay().code == ran.code != 0
    assert [line["not_run"] for line in checks()] == ["missing"]


def test_a_limit_of_time_that_came_before_a_check_comes_there_again(made: Crew) -> None:
    made.file.write_text(made.file.read_text().replace("[team.limits]\n", "[team.limits]\nminutes = 0.0001\n"))
    assert record().code == 7
    assert checks() == []
    exact()


def test_a_check_by_hand_between_two_recorded_runs_is_missed() -> None:
    assert record().code == 0
    with contextlib.closing(Database(store_file(Path.cwd()))) as db:
        session = db.the(lambda row: row.integer("id"), "SELECT id FROM sessions")
        by_hand = begin_check(db, session, None, Check("tests", "true"), Path.cwd(), Path("output"))
        end_check(db, by_hand, CheckResult("green"), None, None)
    ran = run_here("send", "--record", FILE, "Hi")
    assert ran.code == 2
    assert "does not match what this conversation has now" in ran.err


# --- a stranger's recording


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "blue"},
        {"status": "not_run"},
        {"not_run": "missing"},
        {"output64": "no base64!"},
        {"seconds": -1},
        {"output_bytes": -1},
        {"files": {"top": 1}},
        {"more": 1},
    ],
)
def test_a_check_that_no_teamchat_wrote_is_refused(made: Crew, wrong: dict[str, object]) -> None:
    made.say("carol", review(2, "PASS"))
    assert record().code == 0
    change(lambda line: line.update(wrong))
    assert "is not a cassette of this version: line 4: check" in refused(replay())


def test_a_check_before_any_input_is_refused(made: Crew) -> None:
    made.say("carol", review(2, "PASS"))
    assert record().code == 0
    header, *rest = FILE.read_text().splitlines(keepends=True)
    FILE.write_text("".join([header, rest[2], *rest]))
    assert "line 2: a check without an input before it" in refused(replay())


def test_the_name_of_a_strangers_check_moves_no_terminal() -> None:
    assert record().code == 0
    change(lambda line: line.update(name="\x1b[2Jtests"))
    ran = replay()
    assert ran.code == 10
    assert "\x1b" not in ran.err
    assert "the next recorded one is the check " in ran.err
