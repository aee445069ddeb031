"""A person who looks elsewhere is told that a run has ended: a bell, a notification, the command of `--notify`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pexpect
import pytest

from teamchat.cli.running import notify
from teamchat.cli.running.notify import alert
from teamchat.core.errors import ExitCode
from teamchat.core.turn.run_events import Conclusion
from tests.cli.helpers import actors, objects
from tests.program import cli, run_here
from tests.runners.processes import eventually, lives
from tests.scripted_team import crew
from tests.terminals import Terminal

SOON = Path(__file__).parent.parent / "fakes" / "soon.py"
DONE = Conclusion(ExitCode.DONE, "All of it.")
ASKS = Conclusion(ExitCode.HUMAN_ASKED, reason="max asks kai; or\x1b[2J", waiting_for="kai")


@pytest.mark.parametrize(
    ("env", "end", "sequence"),
    [
        ({"TERM": "xterm-256color"}, DONE, "\a"),
        ({"TERM": "xterm-kitty"}, DONE, "\a\x1b]9;teamchat: done\a"),
        ({"TERM_PROGRAM": "iTerm.app"}, ASKS, "\a\x1b]9;teamchat: waiting: max asks kai; or\\x1b[2J\a"),
        ({"TERM": "foot"}, ASKS, "\a\x1b]777;notify;teamchat;waiting: max asks kai, or\\x1b[2J\a"),
        ({"TERM": "foot", "TMUX": "/tmp/tmux"}, DONE, "\a"),
        ({"TERM": "xterm-kitty", "STY": "1.pts"}, DONE, "\a"),
    ],
)
def test_a_terminal_gets_the_sequence_that_it_knows(env: Mapping[str, str], end: Conclusion, sequence: str) -> None:
    assert alert(end, env) == sequence


def printed_at_terminal(term: str, *args: str, program: Path = SOON) -> str:
    env = {**os.environ, "TERM": term, "TERM_PROGRAM": ""}
    terminal = Terminal(sys.executable, [str(program), *args], env=env, encoding="utf-8", timeout=60)
    terminal.expect(pexpect.EOF)
    terminal.close()
    return str(terminal.before)


def test_a_long_run_rings_once_at_a_terminal(world: Path) -> None:
    crew(world, {"max": ["One. [NEXT: sarah]"], "sarah": ["Two."]})
    shown = printed_at_terminal("xterm-kitty", "send", "[NEXT: max] Go")
    assert shown.count("\a") == 2  # the bell, and the end of the notification
    assert shown.count("\x1b]9;teamchat: done\a") == 1


def is_told(text: str) -> bool:
    """Whether the last result that the command was given has this reply."""
    file = Path("told")
    lines = file.read_text().splitlines() if file.exists() else []
    return bool(lines) and json.loads(lines[-1])["text"] == text


def test_chat_rings_and_runs_the_command_at_the_end_of_each_run(world: Path) -> None:
    crew(world, {"max": ["One.", "Two."]})
    env = {**os.environ, "TERM": "xterm-kitty", "TERM_PROGRAM": ""}
    words = [str(SOON), "chat", "--notify", "cat >> told"]
    terminal = Terminal(sys.executable, words, env=env, encoding="utf-8", timeout=60)
    terminal.expect_exact("›")
    for told in ("One.", "Two."):
        terminal.send("Go\r")
        terminal.expect_exact("\x1b]9;teamchat: done\a")
        assert eventually(partial(is_told, told))
    terminal.send("\x04")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_a_dumb_terminal_gets_nothing_of_it(world: Path) -> None:
    crew(world, {"max": ["One."]})
    assert "\a" not in printed_at_terminal("dumb", "send", "[NEXT: max] Go")


def test_a_short_run_rings_nowhere(world: Path) -> None:
    crew(world, {"max": ["One."]})
    file = SOON.with_name("patient.py")
    assert "\a" not in printed_at_terminal("xterm-kitty", "send", "[NEXT: max] Go", program=file)


def test_a_pipe_gets_nothing_of_it(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crew(world, {"max": ["One."]})
    monkeypatch.setattr(notify, "AFTER_S", 0.0)
    monkeypatch.setenv("TERM", "xterm-kitty")
    ran = run_here("send", "[NEXT: max] Go")
    assert "\a" not in ran.out + ran.err


def test_the_command_gets_the_result_of_json_once(world: Path) -> None:
    crew(world, {"max": ["One. [NEXT: sarah]"], "sarah": ["Two. [NEXT: kailai]"]})
    ran = run_here("send", "--json", "--notify", "cat >> told", "[NEXT: max] Go")
    assert ran.code == 9
    assert [json.loads(line) for line in Path("told").read_text().splitlines()] == objects(ran)[-1:]
    ran = run_here("resume", "--skip", "--notify", "cat >> told")
    assert (ran.code, len(Path("told").read_text().splitlines())) == (0, 2)


def test_the_command_may_continue_the_conversation(world: Path) -> None:
    crew(world, {"max": ["One.", "Two."]})
    command = f"{sys.executable} -m teamchat send --no-wait --quiet Again > said"
    assert cli("send", "--quiet", "--notify", command, "[NEXT: max] Go").code == 0
    assert Path("said").read_text() == "Two.\n"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo no display >&2; exit 3", "· --notify failed with exit code 3: no display\n"),
        ("nowhere-to-be-found 2> /dev/null", "· --notify failed with exit code 127\n"),
        ("exec sleep 600", "· --notify took longer than 0.2 s and was ended\n"),
        ("nul\0", "· --notify failed: embedded null byte\n"),
    ],
)
def test_its_failure_is_a_note_and_changes_no_exit_code(
    world: Path, monkeypatch: pytest.MonkeyPatch, command: str, told: str
) -> None:
    crew(world, {"max": ["One."]})
    if "sleep" in command:
        monkeypatch.setattr(notify, "PATIENCE_S", 0.2)
    ran = run_here("send", "--quiet", "--notify", command, "[NEXT: max] Go")
    assert (ran.code, ran.out, ran.err) == (0, "One.\n", told)


def test_nothing_of_it_is_left_behind(world: Path) -> None:
    crew(world, {"max": ["One."]})
    assert run_here("send", "--notify", "sleep 600 & echo $! > pid", "[NEXT: max] Go").code == 0
    assert eventually(lambda: not lives(int(Path("pid").read_text())))


@pytest.mark.usefixtures("world")
def test_a_failure_is_told_as_well() -> None:
    actors({"max": ["exit", "1"]})
    ran = run_here("send", "--notify", "cat > told", "[NEXT: max] Go")
    told = json.loads(Path("told").read_text())
    assert (ran.code, told["code"], [route["target"] for route in told["held"]]) == (1, 1, ["max"])
