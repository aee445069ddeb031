"""The manual: its commands run, every command line in it exists, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from generators.cli_page import context_of
from teamchat.cli.app import program
from tests.installed import install
from tests.program import ROOT, TIMEOUT_S
from tests.test_readme import ANYTHING, assert_runs_as_written, plain, steps

DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md"))]
FILES = re.compile(r"^```(?:python|toml)\n# (agent\.py|teamchat\.toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(?:console|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\a]*\a|\r")
DECORATED = re.compile(r"·|\[NEXT|> |msg-|$|\w+:$")  # notes, markers, quotes and speakers
LINK = re.compile(r"\]\(([^)\s]+)\)")


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    ["tutorial", "undo", "processes", "howto/panel", "howto/own-agent", "howto/export", "howto/record-and-replay"],
)
def test_a_page_is_true(page: str, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "kai")
    install(world, monkeypatch, "claude", "codex", "gemini")
    Path("examples").symlink_to(ROOT / "examples")
    for name, text in FILES.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")):
        Path(name).write_text(text, encoding="utf-8")
    assert_runs_as_written(f"docs/{page}.md")


def test_the_tutorial_is_true_at_a_terminal(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command line is typed into a shell, and the next one when the shell prompts again.

    A terminal shows turns in another form: what stands in the tutorial without decoration is looked for.
    """
    monkeypatch.setenv("LOGNAME", "kai")
    install(world, monkeypatch, "claude", "codex", "gemini")
    environment = {**os.environ, "TERM": "xterm-256color", "PAGER": "cat", "PS1": "ready> ", "PS2": ""}
    bash = pexpect.spawn(
        "bash",
        ["--norc", "--noprofile", "--noediting"],
        env=environment,
        echo=False,
        timeout=TIMEOUT_S,
        encoding="utf-8",
        dimensions=(50, 120),
    )
    try:
        bash.expect_exact("ready> ")
        for command, expected in steps((DOCS / "tutorial.md").read_text(encoding="utf-8")):
            bash.sendline(command)
            bash.expect_exact("ready> ")
            shown = SEQUENCE.sub("", bash.before)
            undecorated = [line for line in expected if line != ANYTHING and not DECORATED.match(line)]
            missing = [line for line in undecorated if plain(line) not in plain(shown)]
            assert not missing, (command, missing, shown)
    finally:
        bash.close(force=True)


def test_every_command_of_the_tutorial_is_one_that_is_run() -> None:
    """Only the installation stands in a block that no test runs."""
    (block,) = re.findall(
        r"^```sh\n(.*?)^```$", (DOCS / "tutorial.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert block.startswith("pipx install")
    assert block.count("\n") == 1


def command_lines(page: Path) -> Iterator[list[str]]:
    """Every `teamchat ...` of a page's code blocks, as arguments."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in re.findall(r"(?:^|[$|;(] |&& )teamchat ([^\n]*)", block, re.MULTILINE):
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>()")
            lexer.whitespace_split = True
            arguments = []
            for word in lexer:
                if set(word) <= set("|;&<>()"):
                    break
                arguments.append(word)
            yield [word for word in arguments if not word.startswith("2>")]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_a_command_line_has_a_command_and_options_that_are_there(page: Path) -> None:
    for line in command_lines(page):
        group = program()
        command, rest = group, line
        while rest and (inner := group.get_command(None, rest[0]) if command is group else inner_of(command, rest[0])):
            command, rest = inner, rest[1:]
        assert command.make_parser(context_of("teamchat", command)).parse_args(rest)


def inner_of(command: Any, name: str) -> Any:
    return getattr(command, "commands", {}).get(name)


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_a_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    for link in LINK.findall(without_code(page)):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def without_code(page: Path) -> str:
    return re.sub(r"`[^`\n]*`", "", without_blocks(page))


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What a link can name of a page: the headings that the project page and the site write alike."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return {slug for slug in slugs if slug == re.sub("-+", "-", slug)}


@pytest.mark.parametrize("page", [*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), ROOT / "README.md"], ids=relative)
def test_a_page_of_the_manual_is_named_by_a_link(page: Path) -> None:
    """Which works on the project page, in the site and in an editor."""
    assert re.findall(r"docs/[\w/-]+\.md", LINK.sub("", without_blocks(page))) == []


def test_the_manual_lists_every_page() -> None:
    listed = {(DOCS / link).resolve() for link in LINK.findall((DOCS / "index.md").read_text(encoding="utf-8"))}
    there = {page for page in DOCS.rglob("*.md") if page.parent.name != "contributing" and page.name != "index.md"}
    assert listed == there
