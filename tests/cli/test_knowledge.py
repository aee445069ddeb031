"""The files that a team file names: told to members, explained by `--dry-run`, named on receipts, trusted outside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.helpers import actors, mistake, objects, refused
from tests.program import run_here

WHOLE = '[knowledge]\npaths = ["docs", "notes.txt"]'
SMALL = f"{WHOLE}\nmax_tokens = 100"


@pytest.fixture(autouse=True)
def docs(world: Path) -> Path:
    folder = world / "work" / "docs"
    folder.mkdir()
    (folder / "tokens.md").write_text("# Tokens\n\nThey expire.\n")
    (folder / "link.md").symlink_to("/etc/passwd")
    (folder.parent / "notes.txt").write_text("Remember.\n")
    return folder


def test_a_dry_run_shows_what_would_be_told_and_why(docs: Path) -> None:
    actors({"max": []}, team=WHOLE)
    ran = run_here("send", "--dry-run", "Hi")
    assert ran.code == 0
    assert (
        "\n\nits knowledge:\n"
        "  docs/tokens.md  10 tokens  whole\n"
        "  notes.txt  6 tokens  whole\n"
        "  left out: links (1)\n\n" in ran.out
    )
    assert "From docs/tokens.md:\n# Tokens\n\nThey expire.\n\nFrom notes.txt:\nRemember.\n\n" in ran.out
    (docs / "more.md").write_text("filler " * 300)
    actors({"max": []}, team=SMALL)
    ran = run_here("send", "--dry-run", "When does a token expire?")
    assert re.search(r"\n\nits knowledge:\n  docs/tokens.md:1-3  1\d tokens  rank 1, score \d+\.\d\d\n", ran.out)
    assert "its knowledge:\n  nothing in it fits; left out: links (1)\n" in run_here("send", "--dry-run", "Hm").out


def test_a_receipt_names_the_sources() -> None:
    actors({"max": ["say Hi."]}, team=WHOLE)
    run_here("send", "Hi")
    assert "\n  knowledge docs/tokens.md, notes.txt\n" in run_here("show").out
    (shown,) = objects(run_here("show", "--json"))
    setup = shown["setup"]
    assert isinstance(setup, dict)
    assert setup["sources"] == {"knowledge__context": ["docs/tokens.md", "notes.txt"]}


def test_the_team_is_shown_with_what_each_member_knows() -> None:
    own = {"max": {"knowledge": ["notes.txt"]}}
    actors({"max": [], "sarah": []}, members=own, team='[knowledge]\npaths = ["docs"]')
    assert re.findall(r"  knowledge: (.*)\n", run_here("team").out) == ["docs, notes.txt", "docs"]


def test_a_members_own_knowledge_comes_after_the_teams() -> None:
    own = {"max": {"knowledge": ["notes.txt"]}}
    actors({"max": [], "sarah": []}, members=own, team='[knowledge]\npaths = ["docs"]')
    for name, sources in (("max", 2), ("sarah", 1)):
        assert run_here("send", "--dry-run", "--to", name, "Hi").out.count("\nFrom ") == sources


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ('paths = ["nothing"]', "knowledge: paths: no file or folder {}/nothing"),
        ('paths = ["docs/tokens.md/x"]', "knowledge: paths: no file or folder {}/docs/tokens.md/x"),
        ('paths = ["/dev/null"]', "knowledge: paths: /dev/null: not a file or folder"),
        ('path = ["docs"]', "knowledge: path: unknown key, did you mean 'paths'?"),
        ("max_tokens = 1", "knowledge: max_tokens: expected at least 100, got 1"),
    ],
)
def test_a_path_that_is_not_there_is_a_mistake_of_the_team_file(world: Path, keys: str, error: str) -> None:
    actors({"max": []}, team=f"[knowledge]\n{keys}", trusted=False)
    ran = run_here("send", "--dry-run", "Hi")
    assert ran.code == 2
    assert mistake(ran, world / "work" / "teamchat.toml") == error.format(f"{world}/work")


def test_a_members_path_that_is_not_there_names_the_member(world: Path) -> None:
    actors({"max": []}, members={"max": {"knowledge": ["nothing"]}}, trusted=False)
    error = f"members 'max': knowledge: no file or folder {world}/work/nothing"
    assert refused(run_here("team")).endswith(error)
