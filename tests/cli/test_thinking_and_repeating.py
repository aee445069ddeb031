"""Programs that print what their model thinks, or the prompt itself, before they answer: nobody is called by that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import said
from tests.program import cli, run_here
from tests.shell_team import shell

THOUGHT = "is text, no marker: it is in a block of thinking"
REPEATED = "is text, no marker: it is in what the reply repeats from its prompt"


@pytest.mark.parametrize(
    ("prints", "told"),
    [
        (r"<think>\nI could ask [NEXT: bo].\n</think>\n\n4", THOUGHT),
        (r"[NEXT: bo] or not?\n</think>\n4", THOUGHT),
        (r"<!-- [NEXT: bo] -->4", "is text, no marker: it is in an HTML comment"),
    ],
)
def test_a_marker_in_an_aside_calls_nobody_and_is_told(prints: str, told: str) -> None:
    shell(al=f"printf '{prints}\\n'; exit", bo="echo Why me?")
    ran = run_here("send", "--to", "al", "2+2?")
    assert "Why me?" not in ran.out
    assert f"· al: '[NEXT: bo]' {told}\n" in ran.err
    assert said()[1] == ("al", prints.replace(r"\n", "\n"))


def echo(before: str = "cat") -> None:
    """A team of a program that prints its prompt, and of another one."""
    shell(al="exit", bo="echo Why me?")
    (Path.cwd().parent / "scripts" / "al.sh").write_text(f"{before}; echo; echo 'The answer is 4.'\n")


@pytest.mark.parametrize("before", ["cat", "sed 's/^/    /'", "tr '\\n' '\\r' | tr '\\r' '\\n'", "sed 's/$/\\r/'"])
def test_a_program_that_prints_its_prompt_calls_nobody(before: str) -> None:
    echo(before)
    ran = run_here("send", "--trust", "--to", "al", "2+2?")
    assert "Why me?" not in ran.out
    assert f"· al: '[NEXT: bo]' {REPEATED}\n" in ran.err
    assert [who for who, _ in said()] == ["kailai", "al"]


def test_what_was_repeated_stays_text_for_the_next_one() -> None:
    echo()
    run_here("send", "--trust", "--to", "al", "2+2?")
    ran = cli("send", "--quiet", "--to", "bo", "And?")
    assert (ran.code, ran.out) == (0, "Why me?\nDone\n")
    assert run_here("show", "--prompt", "2").out.count("[NEXT: ") == 2  # its own example, and what al has repeated


def test_its_own_call_behind_the_prompt_counts() -> None:
    echo("cat; echo '[NEXT: bo]'")
    ran = run_here("send", "--trust", "--to", "al", "2+2?")
    assert "Why me?" in ran.out


def test_a_dry_run_says_where_a_marker_stands() -> None:
    shell(al="exit", bo="echo Why me?")
    ran = run_here("send", "--dry-run", "--to", "al", "<!-- [NEXT: bo] --> Hi")
    assert "text, it is in an HTML comment" in ran.out
