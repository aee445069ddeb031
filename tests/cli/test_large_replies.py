"""Texts at and over the most that a reply may have, in the real program: what becomes of them, and what they cost."""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.cli.helpers import actors
from tests.fakes.scripted import spoken
from tests.program import ROOT, Result, ended, start
from tests.trials import some

MEASURED = ROOT / "tests" / "fakes" / "measured.py"
LONGEST = 16 << 20  # bytes
MOST_MEMORY = 400_000_000  # bytes
LINE = "A line of a long answer, in which nothing is meant.\n"
LIKES = ("plain", "claude", "codex", "gemini", "opencode")
REASON = "wrote a reply of more than 16,777,216 bytes; limits.reply in the team file allows no longer one"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory")


def run(*args: str, code: int = 0) -> Result:
    """Run the program, which may take `MOST_MEMORY`."""
    ran = ended(start(*args, program=MEASURED))
    assert ran.code == code, ran.err
    assert int(Path("peak").read_text()) < MOST_MEMORY
    return ran


def says(text: str, *, times: int = 1, like: str = "plain") -> None:
    """Have max say a text that many times over: as its output, or as the reply of a CLI."""
    whole = text * times
    if like == "plain":
        Path("said").write_text(whole)
    else:
        Path("said").write_text(spoken(like, whole))
    actors({"max": ["say-file", str(Path("said").absolute())]}, like=like)


@pytest.mark.parametrize(
    ("like", "text"),
    some(
        [*product(LIKES, (LINE, "Ä\n", "`a ``b ```c [NEXT ", "a [TODO: x] \\[NEXT: a] "))],
        ("claude", LINE),
    ),
)  # fmt: skip
def test_a_reply_as_long_as_it_may_be_is_whole(like: str, text: str) -> None:
    whole = text * (LONGEST // len(text.encode()) - 1)
    says(whole, like=like)
    told = whole.strip()
    assert run("send", "Go").out.removeprefix("max:\n").strip() == told
    assert run("show", "--reply").out.strip() == told
    assert run("log", "--full", "msg-2").out.strip() == told
    assert json.loads(run("log", "--json").out.splitlines()[-1])["text"].strip() == told
    run("log")
    run("send", "--new", "--quiet", "Go")
    run("send", "--new", "--json", "Go")


@pytest.mark.parametrize(
    ("like", "megabytes"),
    some(
        [*product(LIKES, (17, 40)), *(("plain", 200), ("codex", 200), ("gemini", 200))],
        ("plain", 17), ("codex", 200),
    ),
)  # fmt: skip
def test_a_longer_reply_is_a_failed_turn_that_keeps_its_beginning_and_its_end(like: str, megabytes: int) -> None:
    says(LINE, times=megabytes * 1_000_000 // len(LINE), like=like)
    ran = run("send", "Go", code=1)
    assert REASON in ran.err
    kept = run("show", "--reply").out
    assert kept.startswith(LINE * 1000)
    assert kept.strip().endswith((LINE * 1000).strip())
    assert kept.count(" left out)…") == 1
    assert len(kept) < 150_000
    assert json.loads(run("show", "--json").out)["outcome"]["failure"]["reason"] == REASON


def test_the_team_file_says_how_long_a_reply_may_be() -> None:
    actors({"max": ["reply", "x" * 1000]}, team="[team.limits]\nreply = 999")
    assert "wrote a reply of more than 999 bytes" in run("send", "Go", code=1).err
    actors({"max": ["reply", "x" * 1000]}, team="[team.limits]\nreply = 1000")
    run("send", "--new", "Go")
