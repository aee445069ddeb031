"""What a person types or pipes in another form than expected: a mark before the text, a dash, another normal form."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.helpers import refused
from tests.program import cli, run_here
from tests.scripted_team import Crew, crew

MARK = "\ufeff"


@pytest.fixture
def team(world: Path) -> Crew:
    return crew(world, {"max": ["Hi"] * 3})


@pytest.mark.parametrize("words", [("Look",), ("-",), ("Look", "-")])
def test_a_byte_order_mark_of_piped_text_goes(team: Crew, words: tuple[str, ...]) -> None:
    assert cli("send", *words, stdin=f"{MARK}name,age\r\nx,1\r\n").code == 0
    assert MARK not in team.prompts("max")[0]
    assert "name,age" in team.prompts("max")[0]


def test_a_byte_order_mark_of_a_file_goes_and_others_stay(team: Crew) -> None:
    Path("t.csv").write_text(f"{MARK}name{MARK},age\n", encoding="utf-8")
    assert run_here("send", "--file", "t.csv", "Look").code == 0
    assert f"name{MARK},age" in team.prompts("max")[0]
    assert f"{MARK}name" not in team.prompts("max")[0]


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("text", ["-1 is wrong", "- item", "--verbose is on by default", "-x and -y", "-n is a number"])
def test_a_text_that_begins_with_a_dash_says_how_it_is_sent(text: str) -> None:
    ran = run_here("send", text)
    assert (ran.code, refused(ran)) == (
        ExitCode.USAGE,
        "a text that begins with - is read as an option; put -- before it",
    )
    assert f"  try: teamchat send -- '{text}'\n" in ran.err


@pytest.mark.usefixtures("team")
def test_a_misspelt_option_with_a_value_is_no_text() -> None:
    assert "no such option: --titel" in refused(run_here("send", "--titel=My title", "Hi"))


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize(
    ("begun", "typed"),
    [("cafe\u0301", "caf\u00e9"), ("caf\u00e9", "cafe\u0301"), ("Review", "review"), ("straße", "STRASSE")],
)
def test_a_session_is_found_in_another_normal_form_and_case(begun: str, typed: str) -> None:
    assert run_here("send", "--new", "--session", begun, "Hi").code == 0
    assert run_here("log", "--session", typed).code == 0
    assert "already exists" in refused(run_here("send", "--new", "--session", typed, "Hi"))


@pytest.mark.usefixtures("team")
def test_a_session_of_exactly_that_name_comes_first() -> None:
    assert run_here("send", "--new", "--session", "a-b", "Hi").code == 0
    assert run_here("send", "--new", "--session", "ab", "Hi").code == 0
    assert "session ab continues" in run_here("send", "--session", "AB", "Hi").err
