"""`--window`: how many earlier messages the prompts of one run quote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import objects
from tests.cli.inner import team
from tests.program import cli, run_here


@pytest.fixture
def said() -> None:
    """A conversation of six messages: three of a person, and a reply to each."""
    team(max="true")
    for text in ("First words", "Second words", "Third words"):
        assert run_here("send", text).code == 0


def prompt(turn: int = 4) -> str:
    return run_here("show", str(turn), "--prompt").out


@pytest.mark.usefixtures("said")
def test_a_window_of_one_call_respects_the_override_and_the_next_call_does_not_have_it() -> None:
    assert run_here("send", "--window", "2", "Now").code == 0
    assert "Third words" in prompt()
    assert "Second words" not in prompt()
    assert run_here("send", "Again").code == 0
    assert "First words" in prompt(5)


@pytest.mark.usefixtures("said")
def test_a_window_of_none_quotes_no_history() -> None:
    assert run_here("send", "--window", "0", "Now").code == 0
    assert "Third words" not in prompt()
    assert "Now" in prompt()


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("command", [("send", "Now"), ("run", "sequential", "Now")])
def test_a_dry_run_shows_the_prompt_with_it(command: tuple[str, ...]) -> None:
    shown = run_here(*command, "--window", "2", "--dry-run").out
    assert "Third words" in shown
    assert "Second words" not in shown


def test_resume_takes_one_too() -> None:
    world = team(max="test -e ../fails && exit 1; echo")
    assert run_here("send", "First words").code == 0
    (world / "fails").touch()
    assert cli("send", "Now").code == 1
    (world / "fails").unlink()
    assert cli("resume", "--window", "0").code == 0
    assert "First words" in prompt(2)
    assert "First words" not in prompt(3)


@pytest.mark.usefixtures("said")
def test_a_recording_of_it_is_replayed() -> None:
    assert cli("send", "--new", "--record", "it.cassette", "First words").code == 0
    assert cli("send", "--window", "0", "--record", "it.cassette", "Now").code == 0
    assert '"window":0' in Path("it.cassette").read_text().replace(" ", "")
    assert cli("test", "it.cassette").code == 0
    assert "--window 0" in cli("replay", "it.cassette").out + cli("replay", "it.cassette").err


@pytest.mark.parametrize("window", ["-1", "x", "9" * 20])
def test_what_is_no_number_of_messages_is_refused(window: str) -> None:
    team(max="true")
    assert run_here("send", "--window", window, "Hi").code == 2


@pytest.mark.usefixtures("said")
def test_json_says_which_agent_of_which_type_begins() -> None:
    (begun,) = [line for line in objects(run_here("send", "--json", "Now")) if line["type"] == "turn_started"]
    assert (begun["member"], begun["agent"], begun["agent_type"]) == ("max", "max-agent", "plain")
