"""`teamchat export`: the checks of a conversation, in every format, and read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.core.transcripts.reading import read
from tests.cli.checked import checked_crew, repository, until
from tests.program import run_here

KEY = "sk-ant-api03-" + "k3Y9" * 10


@pytest.fixture(autouse=True)
def _talk(world: Path) -> None:
    checked_crew(world, {"tests": f"test -e done || {{ echo '# {KEY}'; touch done; exit 1; }}"})
    repository()
    assert until("tests", "true", rounds=2).code == 0


def exported(format_: str, *options: str) -> str:
    ran = run_here("export", "--format", format_, *options)
    assert ran.code == 0
    return ran.out


def test_json_has_them_in_place_without_secrets() -> None:
    made = json.loads(exported("json"))
    order = [(one["type"], one.get("id") or f"{one['name']} {one['status']}") for one in made["entries"]]
    assert order == [
        ("message", "msg-1"),
        ("message", "msg-2"),
        ("check", "tests red"),
        ("check", " green"),
        ("message", "msg-3"),
        ("check", "tests green"),
        ("check", " green"),
    ]
    red = made["entries"][2]
    assert red["output"] == f"# {'*' * len(KEY)}\n"
    assert (red["number"], red["exit_code"], red["by_hand"], red["undone"]) == (1, 1, False, False)
    assert [file["path"] for file in red["files"]] == ["done"]
    assert KEY not in json.dumps(made)


def test_they_are_imported_and_exported_again() -> None:
    run_here("export", "-o", "talk.json")
    assert run_here("import", "talk.json", "--session", "again").code == 0
    first, second = json.loads(Path("talk.json").read_text()), json.loads(exported("json"))
    assert second["entries"] == first["entries"]


def test_markdown_and_the_page_show_a_line_and_what_was_written() -> None:
    markdown = exported("md")
    assert "## check tests: red, exit code 1 · " in markdown
    assert f"\n>     # {'*' * len(KEY)}\n" in markdown
    page = exported("html")
    assert '<article id="n3" class="check">' in page
    assert '<span class="failed">check tests: red, exit code 1 · ' in page
    assert f"<pre># {'*' * len(KEY)}\n</pre>" in page


def test_a_cast_and_a_picture_show_what_a_terminal_showed() -> None:
    for name in ("cast", "svg"):
        shown = exported(name).replace("&#160;", " ")
        assert "✗ check tests: red, exit code 1 · " in shown
        assert "✓ check tests: green · " in shown


def test_older_files_without_checks_are_read() -> None:
    made = json.loads(exported("json"))
    made["entries"] = [one for one in made["entries"] if one["type"] != "check"]
    assert len(tuple(read(json.dumps(made).encode()).transcript.entries)) == 3
