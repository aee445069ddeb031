from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextvars import copy_context
from importlib.resources import files
from pathlib import Path

import pytest

from teamchat.cli.startup.typed import PROGRAM, TYPED, named
from tests.program import Result, cli, ended, start
from tests.screens import screen


def commands(text: str) -> list[str]:
    """What stands alone in an indented line, and what a note proposes."""
    lines = (re.sub("^· answer: ", "  ", line) for line in text.splitlines())
    return [line.strip() for line in lines if re.match("  .*teamchat ", line)]


def pasted(command: str) -> Result:
    """The command as a shell runs it in a folder that has nothing to do with the demo."""
    ran = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return Result(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture
def beside(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(world))
    monkeypatch.setenv("LOGNAME", "kai")
    return world


def test_it_runs_a_real_conversation_and_what_it_prints_can_be_pasted(
    beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)  # where no teamchat is
    script = Path(sys.executable).parent / "teamchat"
    ran = pasted(f"{script} demo")
    assert ran.code == 0, ran.err
    (folder,) = beside.glob("teamchat-demo-*")
    assert "creme-brulee" in ran.out  # which slug.py has printed
    assert "waiting: checker asks kai" in ran.err
    answer, show, send, undo, init = commands(ran.err + ran.out)
    assert all(line.startswith(f"{script} ") for line in (answer, show, send, undo, init))
    said = map(json.loads, cli("log", "--json", cwd=folder).out.splitlines())
    assert [line["from"] for line in said] == ["kai", "planner", "builder", "checker"]
    assert "You are builder" in pasted(show).out
    assert "Thank you" in pasted(answer).out
    assert "Thank you" in pasted(send).out
    assert (folder / "slug.py").exists()
    took_back = pasted(undo)
    assert took_back.code == 0, took_back.err
    assert not (folder / "slug.py").exists()
    assert pasted(init).code == 0
    assert Path("teamchat.toml").exists()


def test_a_warning_names_the_program_by_its_path_and_the_team_that_was_typed() -> None:
    def told() -> str:
        PROGRAM.set("/x/teamchat")
        TYPED.set(["send", "--team", "a.toml"])
        return named("1 file changed: teamchat diff 2, teamchat undo 2")

    there = copy_context().run(told)
    assert there == "1 file changed: /x/teamchat diff 2 --team a.toml, /x/teamchat undo 2 --team a.toml"


def test_ctrl_c_stops_the_turn_and_the_command_that_it_names_goes_on(beside: Path) -> None:
    process = start("demo")
    assert process.stderr
    assert any(b"planner begins" in line for line in iter(process.stderr.readline, b""))
    process.send_signal(signal.SIGINT)
    ran = ended(process)
    assert (ran.code, list(beside.glob("teamchat-demo-*/slug.py"))) == (130, [])
    (going_on,) = (line.removeprefix("· try: ").split() for line in ran.err.splitlines() if "· try: " in line)
    went_on = cli(*going_on[going_on.index("resume") :])
    assert went_on.code == 9, went_on.err
    assert "creme-brulee" in went_on.out


def test_the_recording_replays_byte_for_byte_twice(world: Path) -> None:
    one, two = (cli("demo", "--recorded", "--speed", "0") for _ in range(2))
    assert one.code == 0, one.err
    assert (one.out, one.err) == (two.out, two.err)
    assert "a recording with a scripted model" in one.err
    assert "[NEXT: max + carol]" in one.out
    assert "waiting: sarah asks kai" in one.err
    assert one.out.rstrip().splitlines()[-1].startswith("  teamchat --help")
    assert list((world / "state").iterdir()) == []  # nothing is stored


def test_at_a_terminal_the_command_is_broken_at_a_word() -> None:
    with screen("demo", "--speed", "0", columns=80, rows=80) as seen:
        rows = seen.to_the_end()
    command = next(at for at, row in enumerate(rows) if row.startswith("$ "))
    assert rows[command : command + 3] == [
        "$ teamchat send '[NEXT:max] We need readable addresses for our posts. Tell me",
        "when I can merge.'",
        "",
    ]


def test_the_demo_is_as_it_was_recorded(world: Path) -> None:
    path = world / "demo.cassette"
    path.write_text(files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8"))
    assert cli("replay", "--speed", "0", "--verify", path).code == 0
    path.write_text(path.read_text().replace("You are Carol. Look", "You are Carol. Watch", 1))  # in the team
    ran = cli("replay", "--speed", "0", path)
    assert ran.code == 10
    assert "-You are Carol. Look for what breaks" in ran.err
    assert "+You are Carol. Watch for what breaks" in ran.err


def test_the_demo_takes_less_than_twenty_seconds() -> None:
    lines = files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8").splitlines()
    turns = [json.loads(line)["turn"] for line in lines if '"turn"' in line[:10]]
    assert len(turns) == 5
    assert sum(turn["seconds"] for turn in turns) < 18
    assert {turn["agent"] for turn in turns} == {"claude", "codex", "gemini"}


@pytest.mark.parametrize("option", [[], ["--json"]], ids=["text", "json"])
def test_a_demo_that_is_stopped_names_nothing_to_resume(world: Path, option: list[str]) -> None:
    del world
    process = start("demo", "--speed", "0.01", *option)
    told = process.stdout if option else process.stderr
    assert told
    assert any(b"turn_started" in line or b" begins (turn 1)" in line for line in iter(told.readline, b""))
    process.send_signal(signal.SIGINT)
    ran = ended(process)
    assert ran.code == 130
    assert "Traceback" not in ran.err
    assert "paused: " in ran.err or '"outcome": "interrupted"' in ran.out
    assert "teamchat resume" not in ran.out + ran.err
    assert "teamchat show" not in ran.out + ran.err


@pytest.mark.parametrize("word", ["/root", "/work", "127.0.0.1", "dummy"])
def test_the_demo_tells_nothing_of_the_machine_it_was_made_on(word: str) -> None:
    assert word not in files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8")
