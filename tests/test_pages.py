"""What docs/ holds of the program is what the program says now: `make pages` writes it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from generators.__main__ import files
from generators.picture import TYPED, WIDTHS, chat_with_a_queued_message, printed, until
from generators.team_file import schema, without_nulls
from teamchat.cli.app import COMMANDS
from teamchat.core.team.schema import TeamFile
from tests.program import ROOT

DOCS = ROOT / "docs"


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_a_page_is_what_the_program_makes(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == files()[path], "make pages"


def test_the_page_of_commands_has_every_command_and_option() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("## ") and line.count(" ") == 2] == [
        f"## `teamchat {name}`" for name in COMMANDS
    ]
    for text in ("## `teamchat sessions delete`", "| `--to NAMES` | Who answers: max", "| `--quiet`, `-q` | "):
        assert text in page
    assert "teamchat send [OPTIONS] [TEXT]...\n" in page


def test_every_key_of_the_team_file_has_a_description_and_its_row() -> None:
    page = (DOCS / "team-file.md").read_text(encoding="utf-8")
    for table in schema()["$defs"].values():
        for key, about in table["properties"].items():
            assert about["description"].endswith("."), key
            assert "$ref" in about or f"| `{key}` | " in page


def test_the_schema_knows_what_the_team_file_may_say() -> None:
    member = schema()["$defs"]["MemberTable"]["properties"]
    assert member["timeout"]["anyOf"] == [{"type": "string"}, {"type": "number"}]
    assert member["access"] == {
        "default": "read",
        "description": "What the member may do to files and commands.",
        "enum": ["read", "edit", "full"],
        "type": "string",
    }
    assert schema()["$defs"]["MemberTable"]["required"] == ["name"]


def kinds(part: Any) -> Iterator[str]:
    """Every `type` that a schema names."""
    if isinstance(part, dict):
        if isinstance(kind := part.get("type"), str):
            yield kind
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from kinds(inner)


def test_the_schema_has_no_null_which_toml_has_not() -> None:
    assert "null" not in set(kinds(schema()))
    assert "null" in set(kinds(TeamFile.model_json_schema()))
    assert without_nulls({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}) == {"type": "string"}


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*/teamchat.toml")), ids=lambda path: path.parent.name)
def test_an_example_uses_keys_of_the_schema_and_names_it(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    hint, named = text.splitlines()[0].split(" ")
    assert (hint, (example.parent / named).resolve()) == ("#:schema", DOCS / "teamchat.schema.json")
    written = json.loads((DOCS / "teamchat.schema.json").read_text(encoding="utf-8"))
    for member in tomllib.loads(text)["members"]:
        assert set(member) <= set(written["$defs"]["MemberTable"]["properties"])


def letters(text: str) -> list[str]:
    """Every letter of a text without styles, in an order of its own."""
    return sorted("".join(re.sub(r"\x1b\[[\d;]*m", "", text).split()))


def shown_in(picture: str) -> list[str]:
    svg = (DOCS / "images" / picture).read_text(encoding="utf-8")
    ET.fromstring(svg)  # noqa: S314 (our own)
    assert set(re.findall(r"\w+://[^\s\"]*", svg)) == {"http://www.w3.org/2000/svg"}, "it loads nothing"
    return letters("".join(unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)))


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_picture_shows_what_the_demo_prints(columns: int) -> None:
    # only the letters: a colour ends a text, and of a group any member may end first
    demo = letters(f"teamchat {TYPED} {printed(columns, speed=0)}")
    assert shown_in(f"demo-{columns}.svg") == demo, "make picture"


def test_the_pictures_of_the_readme_are_the_recorded_chat_and_the_recorded_until() -> None:
    assert shown_in("chat.svg") == letters(f"teamchat chat {chat_with_a_queued_message()}"), "make picture"
    assert shown_in("until.svg") == letters(f"teamchat run until {until(80)}"), "make picture"
    assert re.findall(r"!\[[^]]+\]\((.*?)\)", (ROOT / "README.md").read_text(encoding="utf-8")) == [
        "docs/images/chat.svg",
        "docs/images/until.svg",
    ]
