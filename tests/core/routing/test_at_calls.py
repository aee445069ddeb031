"""Calls by `@` at the beginning of a line: who is called, what is left as text, and what is told about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.core.routing.at_calls import at_notes, first_strangers, split_calls, with_calls
from teamchat.core.team.team import Member
from tests.core.routing.marker_texts import grows_linearly

MEMBERS = (
    Member("kai", "human", Path("/work")),
    Member("max", "ai", Path("/work"), "the architect"),
    Member("sarah", "ai", Path("/work")),
)
INSIDE = "calls nobody here: it stands inside a line; @ calls at the beginning of one"


@pytest.mark.parametrize(
    ("typed", "to", "text"),
    [
        ("@max Fix it", "max", "Fix it"),
        ("  @MAX, fix it", "MAX", "fix it"),
        ("@max: fix it", "max", "fix it"),
        ("@max? fix it", "max", "fix it"),
        ("@max:fix it", "max", "fix it"),
        ("@nobody:fix it", None, "@nobody:fix it"),
        ("@max+sarah\nLook", "max+sarah", "Look"),
        ("@max,sarah Look", "max,sarah", "Look"),
        ("@max!P1 Look", "max!P1", "Look"),
        ("@max\n@sarah!P1", None, "[NEXT: max,sarah!P1]"),
        ("@max one\n@sarah two\r\n@max\nthree", "max,sarah,max", "one\ntwo\r\nthree"),
        ("Fix it\n@sarah", "sarah", "Fix it\n"),
        ("@README.md is old", None, "@README.md is old"),
        ("@max+carol Look", None, "@max+carol Look"),
        ("@max's plan", None, "@max's plan"),
        ("Ask @max", None, "Ask @max"),
        ("a@max\n-@max", None, "a@max\n-@max"),
        ("> @max\n\n`@max`\n    @max\n```\n@max\n", None, "> @max\n\n`@max`\n    @max\n```\n@max\n"),
        ("@ max", None, "@ max"),
        ("@@max", None, "@@max"),
        ("", None, ""),
    ],
)
def test_a_line_calls_the_members_at_its_beginning(typed: str, to: str | None, text: str) -> None:
    assert split_calls(typed, MEMBERS)[:2] == (to, text)


def test_a_queued_message_is_edited_as_a_text_that_was_typed() -> None:
    for text in ("Look", "    Look", "\nLook", "@nobody Look"):
        assert split_calls(with_calls("max+sarah", text), MEMBERS) == ("max+sarah", text, ())
    assert with_calls(None, "Look") == "Look"


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("@planner Plan it", "planner"),
        ("\n  @planner: plan it", "planner"),
        ("@max+planner Plan it", "max+planner"),
        ("@all Hi", "all"),
        ("@max Hi", ""),
        ("@max's plan", ""),
        ("Hi\n@dataclass\nclass X", ""),
        ("@README.md is old", ""),
        ("@app.route('/')", ""),
        ("@src/app", ""),
        ("@Override(x)", ""),
        ("`@planner`", ""),
        ("me@planner", ""),
    ],
)
def test_nobody_of_that_name_is_only_called_by_the_beginning_of_a_text(typed: str, word: str) -> None:
    assert first_strangers(typed, MEMBERS) == word


@pytest.mark.parametrize(
    ("typed", "notes"),
    [
        ("Look at what @sarah wrote, @sarah.", [f"'@sarah' {INSIDE}"] * 2),
        ("Ask (@SARAH)", [f"'@SARAH' {INSIDE}"]),
        ("Fix this:\n@dataclass\nclass X", ["'@dataclass' is text: nobody is called 'dataclass'"]),
        ("Ask @max, `@sarah`, kai@sarah.org, a@sarah and @nobody", []),
        ("@property.setter\n@src/a", []),
    ],
)
def test_a_name_that_calls_nobody_is_told(typed: str, notes: list[str]) -> None:
    assert list(at_notes(typed, MEMBERS, {"max", "kai"})) == notes


@pytest.mark.parametrize("line", ["@sarah @sarah x\n", "@nobody\n", "@" * 20, "@max " * 4])
def test_a_large_text_takes_time_in_proportion(line: str) -> None:
    assert grows_linearly(lambda text: (split_calls(text, MEMBERS), list(at_notes(text, MEMBERS, ()))), line)
