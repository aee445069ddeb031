"""`teamchat help PAGE` prints the pages of docs/ that ship with the program."""

from __future__ import annotations

import re

import pytest

from teamchat.cli.app import COMMANDS
from teamchat.cli.help import pages
from tests.cli.helpers import refused
from tests.program import ROOT, Result, cli, run_here

DOCS = ROOT / "docs"


@pytest.mark.parametrize("name", ["json", "routing", "team-file", "security", "cassette.schema.json"])
def test_a_page_is_printed_as_it_is(name: str) -> None:
    file = DOCS / (name if name.endswith(".json") else f"{name}.md")
    assert run_here("help", name) == Result(0, file.read_text(encoding="utf-8"), "")


def test_a_program_that_is_installed_prints_it_too() -> None:
    assert cli("help", "json").out == (DOCS / "json.md").read_text(encoding="utf-8")


def test_without_a_page_it_lists_all_commands_and_pages() -> None:
    ran = run_here("help")
    assert (ran.code, ran.err) == (0, "")
    commands, listed = ran.out.split("\nPages (teamchat help PAGE):\n")
    assert commands == run_here("--help").out
    assert [line.split()[0] for line in listed.splitlines()] == list(pages())
    assert "  json                  --json: what scripts read" in listed
    assert "  teamchat.schema.json  JSON Schema, for editors" in listed


def test_a_command_is_explained_and_its_page_follows() -> None:
    assert run_here("help", "send") == run_here("send", "--help")
    assert run_here("help", "status") == run_here("log", "--help")
    assert run_here("help", "doctor").out == run_here("doctor", "--help").out + pages()["doctor"].read_text()


def test_a_page_that_is_not_there_is_one_line() -> None:
    ran = run_here("help", "sned")
    assert (ran.code, refused(ran)) == (2, "there is no command or page 'sned': did you mean send?")
    ran = run_here("help", "rooting")
    assert (ran.code, refused(ran)) == (2, "there is no command or page 'rooting': did you mean routing?")


def test_a_terminal_is_shown_it_formatted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from teamchat.cli import help as module

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    module.print_page("# JSON\n\nOne `object` a line.\n")
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert [line.strip() for line in shown.splitlines()] == ["JSON", "", "One object a line."]


def test_every_message_that_points_to_a_page_names_one_that_is_there() -> None:
    program = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("teamchat/**/*.py"))
    assert "docs/" not in re.sub(r'"""(?s:.*?)"""|#.*', "", program)
    named = {name.rstrip(".") for name in re.findall(r"teamchat help ([a-z][\w.-]*)", program)}
    assert named >= {"json", "team-file"}
    assert named <= {*pages(), *COMMANDS, "commands"}
