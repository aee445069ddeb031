"""Every command of chat with every option that it has, typed at the prompt: none of them ends the chat."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from teamchat.cli.app import program
from teamchat.cli.chatting.slash import WAITS, WORDS, WORKING
from teamchat.core.engine.workflow import Kind
from tests.cli.test_chat import CTRL_U, ENTER, ESCAPE, PROMPT, begun, chat, leave, line, prompt_of, said, stands, types
from tests.program import TIMEOUT_S, run_here
from tests.screens import Screen, screen
from tests.scripted_team import Crew, crew

ARGUMENTS = {
    "send": "@max Hi",
    "run": "sequential Hi",
    "check": "true",
    "show": "1",
    "diff": "1",
    "undo": "1",
    "open": "max",
    "adopt": "max",
    "search": "Hello",
    "branch": "",
    "compare": "first first",
    "todo": "add A test",
    "task": "A parser",
    "learn": "Tests first",
    "merge": "max",
    "help": "send",
    "sessions rename": "other Another",
    "sessions delete": "other",
    "worktrees remove": "max",
}
"""What a command needs, or takes, beside its options."""
OWN = {
    "-n": "1",
    "--as": "kailai",
    "--session": "first",
    "--format": "md",
    "--patches": "all -o patches.html",
    "--from": "1h",
    "--full": "msg-1",
    "--at": "msg-1",
}
VALUES = {
    "NAMES": "max", "NAME": "max", "MEMBER": "max", "PATH": "note.txt", "FILE": "made.txt",
    "FILE|NAME": "teamchat.toml", "TITLE": "Another", "CMD": "true", "WORDS": "Yes,No", "N": "1", "TIME": "1m",
    "A,B,...": "yes,no", "SECONDS": "1", "CHECK": "true",
}  # fmt: skip
"""Of an option by its name, or by what `--help` says that it takes. A kind of value that is new fails here."""
CHOOSES = "Esc opens none"


def lines_of(word: str) -> Iterator[str]:
    """The command and its own commands, each by itself and with each of its options, as typed."""
    command = program().get_command(None, WORDS[word][0])
    yield from _lines(word, command)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _lines(f"{word} {name}", inner)
    if word == "run":
        yield from (f"/run {kind} --dry-run {'--options yes,no ' * (kind is Kind.VOTE)}Hi" for kind in Kind)


def _lines(words: str, command: Any) -> Iterator[str]:
    for typed in ("", "--help", *(option for parameter in command.params for option in _typed(parameter))):
        yield " ".join(filter(None, (f"/{words}", typed, ARGUMENTS.get(words, ""))))


def _typed(parameter: Any) -> Iterator[str]:
    for name in (*parameter.opts, *parameter.secondary_opts):
        if name.startswith("-"):
            yield name if parameter.is_flag else f"{name} {OWN.get(name) or VALUES[parameter.metavar]}"


def does(shown: Screen, typed: str, behind: str, told: str) -> None:
    """Types the line, answers with no what it asks, and waits for what is told of the line typed behind it."""
    shown.scrolled()
    types(shown, typed + ENTER)
    asked, end = "", time.monotonic() + TIMEOUT_S
    while not ((typed in shown.rows or asked == CHOOSES) and prompt_of(shown.text).startswith(PROMPT)):
        goes_on(shown, typed, end)
        last = shown.rows[-1] if shown.rows else ""
        if last.endswith(("[y/N]", "?", ":")) and last != asked:
            asked = last
            types(shown, "n" + ENTER)
        if CHOOSES in shown.text and asked != CHOOSES:
            asked = CHOOSES
            types(shown, ESCAPE)
    refused = shown.text.count(f"✗ {WORKING}")
    types(shown, f"{CTRL_U}{behind}{ENTER}")
    while told not in shown.text:
        goes_on(shown, typed, end)
        if shown.text.count(f"✗ {WORKING}") > refused:
            refused += 1
            types(shown, f"{CTRL_U}{behind}{ENTER}")


def goes_on(shown: Screen, typed: str, end: float) -> None:
    assert shown.read(), f"{typed} has ended the chat:\n{shown.text}"
    assert time.monotonic() < end, f"{typed} does not end:\n{shown.text}"
    assert "Traceback" not in shown.text, typed
    assert f"{typed.split(maxsplit=1)[0]} failed: " not in shown.text, f"{typed}:\n{shown.text}"


@pytest.fixture
def team(world: Path) -> Crew:
    made = crew(world, {"max": ["I did it."] + ["Yes."] * 80, "sarah": ["Looks right."] * 80})
    Path("note.txt").write_text("A note.\n")
    for session in ("other", "first"):
        run_here("send", "--new", "--session", session, "--to", "max", "Hello")
    return made


@pytest.mark.long
@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("word", WORDS)
def test_every_command_with_every_option_leaves_the_chat_as_it_was(word: str) -> None:
    with chat("--session", "first", columns=120, rows=50) as shown:
        for number, typed in enumerate(lines_of(word)):
            does(shown, typed, f"/compare first none-{number}", f"'none-{number}'")  # waits until nobody works
        types(shown, CTRL_U)
        assert leave(shown) == 0


@pytest.mark.long
@pytest.mark.parametrize("word", [word for word in WORDS if word not in WAITS])
def test_every_command_with_every_option_leaves_the_turn_that_runs(word: str, world: Path, team: Crew) -> None:
    team.say("max", "", "", {"say": "I wrote it.", "touch": str(world / "began"), "wait": str(world / "go")})
    with chat("--session", "first", columns=120, rows=50) as shown:
        line(shown, "@max Write it")
        begun(world, shown)
        for number, typed in enumerate(lines_of(word)):
            does(shown, typed, f"/show msg-9{number}", f"'msg-9{number}'")
        (world / "go").touch()
        shown.until(lambda text: "I wrote it." in text)
        types(shown, CTRL_U)
        leave(shown)
    assert "max: I wrote it." in said()


BUG = """\
from teamchat.cli.chatting import chat
from teamchat.__main__ import main

def run_command(words, session, team):
    raise LookupError("nobody\\x1b[2J\\nhas thought of it")

chat.run_command = run_command
main()
"""


@pytest.mark.parametrize("works", [False, True])
def test_a_bug_in_a_command_is_a_line_and_the_turn_that_runs_goes_on(world: Path, *, works: bool) -> None:
    Path("bug.py").write_text(BUG)
    crew(world, {"max": [{"say": "I wrote it.", "touch": str(world / "began"), "wait": str(world / "go")}]})
    with screen("chat", script=Path("bug.py")) as shown:
        shown.until(lambda text: PROMPT in text)
        if works:
            line(shown, "@max Write it")
            begun(world, shown)
        for typed in ("/todo", "/team"):  # one that takes the terminal, and one that does not
            line(shown, f"{typed} add Tests" if typed == "/todo" else typed)
            shown.until(partial(stands, rf"{typed} failed: LookupError: nobody\x1b[2J\nhas thought of it"))
        (world / "go").touch()
        if not works:
            line(shown, "@max Write it")
        shown.until(lambda text: "I wrote it." in text)
        assert leave(shown) == 0
