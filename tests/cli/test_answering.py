"""A question to the person at the terminal, answered where it is asked: `send`, `run` and `resume` with `--ask`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import queue, select
from tests.program import cli, run_here
from tests.screens import Screen, screen
from tests.scripted_team import Crew, crew

ASKS = "Which one?\n[NEXT: kailai]"


@pytest.fixture
def asking(world: Path) -> Crew:
    return crew(world, {"max": [ASKS, "Good."], "sarah": ["Me too."]})


def said() -> list[str]:
    rows = select("SELECT speaker_name, content FROM messages ORDER BY id")
    return [f"{name}: {content}" for name, content in rows]


def asked(shown: Screen, times: int = 1) -> None:
    """Wait for the question to be asked, so many times."""
    shown.until(lambda text: text.count("Enter sends your answer") == times and text.split("\n")[-1] == "you → max")


@pytest.mark.usefixtures("asking")
def test_a_question_is_answered_where_it_is_asked() -> None:
    with screen("send", "--ask", "--to", "max", "Write it") as shown:
        asked(shown)
        shown.child.sendline("The second")
        rows = shown.to_the_end()
        assert shown.child.exitstatus == 0
    assert [row for row in rows if "The second" in row] == ["you → max   The second"]
    assert said() == ["kailai: Write it", f"max: {ASKS}", "kailai: The second", "max: Good."]


@pytest.mark.usefixtures("asking")
def test_an_empty_line_leaves_it_open() -> None:
    with screen("send", "--ask", "--to", "max", "Write it") as shown:
        asked(shown)
        shown.child.sendline("")
        text = "\n".join(shown.to_the_end())
        assert shown.child.exitstatus == 9
    assert "the question is open; teamchat send" in text
    assert queue() == [("kailai", "asked")]


@pytest.mark.usefixtures("asking")
def test_the_end_of_input_leaves_it_open() -> None:
    with screen("send", "--ask", "--to", "max", "Write it") as shown:
        asked(shown)
        shown.child.send("\x04")
        shown.to_the_end()
        assert shown.child.exitstatus == 9


@pytest.mark.usefixtures("asking")
def test_an_answer_that_looks_like_a_call_is_asked_for_again() -> None:
    with screen("send", "--ask", "--to", "max", "Write it") as shown:
        asked(shown)
        shown.child.sendline("(NEXT: sarah) you say")
        shown.until(lambda text: "is not a marker" in text and text.split("\n")[-1].startswith("you → max"))
        shown.child.sendline("The second")
        shown.to_the_end()
        assert shown.child.exitstatus == 0


def test_what_was_typed_before_the_question_does_not_answer_it(world: Path) -> None:
    made = crew(world, {"max": []})
    made.say("max", {"say": ASKS, "touch": str(world / "began"), "wait": str(world / "go")}, "Good.")
    with screen("send", "--ask", "--to", "max", "Write it") as shown:
        shown.until(lambda _: (world / "began").exists())
        shown.child.sendline("too early")
        (world / "go").touch()
        asked(shown)
        shown.child.sendline("The second")
        shown.to_the_end()
    assert said()[2:] == ["kailai: The second", "max: Good."]


@pytest.mark.usefixtures("world")
def test_every_question_is_asked(world: Path) -> None:
    crew(world, {"max": [ASKS, ASKS, "Good."]})
    with screen("send", "--ask", "--to", "max", "Write it") as shown:
        for number in (1, 2):
            asked(shown, number)
            shown.child.sendline(f"answer {number}")
        shown.to_the_end()
        assert shown.child.exitstatus == 0
    assert said()[-1] == "max: Good."


@pytest.mark.usefixtures("asking")
def test_resume_asks_too() -> None:
    run_here("send", "--to", "max", "Write it")
    with screen("resume", "--ask") as shown:
        asked(shown)
        shown.child.sendline("The second")
        shown.to_the_end()
        assert shown.child.exitstatus == 0


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("options", [(), ("--no-input",), ("--ask", "--quiet"), ("--ask", "--json")])
def test_nobody_is_asked_who_did_not_ask_for_it(options: tuple[str, ...]) -> None:
    with screen("send", *options, "--to", "max", "Write it") as shown:
        shown.to_the_end()
        assert shown.child.exitstatus == 9


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("command", [("send", "Write it"), ("run", "hierarchical", "Write it"), ("resume",)])
def test_the_next_line_that_is_typed_is_a_command(command: tuple[str, ...]) -> None:
    """Without `--ask` the question and the command that answers it are shown, and the exit code is 9."""
    if command == ("resume",):
        run_here("send", "--to", "max", "Write it")
    with screen(*command) as shown:
        shown.child.sendline("echo $?")
        rows = shown.to_the_end()
        assert shown.child.exitstatus == 9
    assert rows[-2:] == ["? max asks you", "  answer: teamchat send 'Your answer'"]
    assert not [row for row in rows if row.startswith("you → max   echo")]
    assert "kailai: echo $?" not in said()


@pytest.mark.usefixtures("asking")
def test_asking_excludes_asking_nothing() -> None:
    for command in (("send", "Hi"), ("run", "sequential", "Hi"), ("resume",)):
        refused = run_here(*command, "--ask", "--no-input")
        assert (refused.code, refused.err) == (2, "teamchat: --ask and --no-input exclude each other\n")


@pytest.mark.usefixtures("asking")
def test_a_pipe_is_never_asked() -> None:
    ran = cli("send", "--ask", "--to", "max", "Write it")
    assert ran.code == 9
    assert "answer: teamchat send 'Your answer'" in ran.err


@pytest.mark.usefixtures("world")
def test_another_person_is_not_asked_here(world: Path) -> None:
    crew(world, {"max": ["Which one?\n[NEXT: carol]"]}, humans=("kailai", "carol"))
    with screen("send", "--ask", "--as", "kailai", "--to", "max", "Write it") as shown:
        shown.to_the_end()
        assert shown.child.exitstatus == 9


@pytest.mark.usefixtures("asking")
def test_the_answer_is_in_the_recording(world: Path) -> None:
    cassette = world / "cassette.jsonl"
    with screen("send", "--ask", "--record", str(cassette), "--to", "max", "Write it") as shown:
        asked(shown)
        shown.child.sendline("The second")
        shown.to_the_end()
    assert '"The second"' in json.dumps([json.loads(line) for line in cassette.read_text().splitlines()])
    assert cli("replay", str(cassette), "--verify").code == 0
