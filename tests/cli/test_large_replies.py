"""What a reply of many megabytes costs of memory, in the real program: its text once, several times with `--quiet`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.helpers import actors
from tests.program import ROOT, ended, start

MEASURED = ROOT / "tests" / "fakes" / "measured.py"
MEGABYTES = 40
LINE = "A line of a long answer, in which nothing is meant.\n"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory")


def peak(*args: str, code: int = 0) -> int:
    ran = ended(start(*args, program=MEASURED))
    assert ran.code == code, ran.err
    return int(Path("peak").read_text())


@pytest.mark.parametrize("text", [LINE.replace("\n", "|"), LINE.replace("A", "Ä")], ids=["one", "lines"])
def test_a_large_reply_takes_less_than_twice_its_size(text: str) -> None:
    actors({"max": ["reply", "Short."]})
    idle = peak("send", "Go")
    actors({"max": ["again", text, str(MEGABYTES)]})
    size = MEGABYTES * 1_000_000
    for typed in (
        "send --new Go",
        "show --reply",
        "log --full msg-2",
        "log",
        "send --new --json Go",
    ):
        assert peak(*typed.split()) - idle < 1.5 * size, typed


@pytest.mark.parametrize("text", ["`a ``b ```c [NEXT ", "a [TODO: x] \\[NEXT: a] "])
def test_a_large_reply_takes_less_than_eight_times_its_size_without_its_markers(text: str) -> None:
    actors({"max": ["reply", "Short."]})
    idle = peak("send", "Go")
    actors({"max": ["again", text, str(MEGABYTES)]})
    assert peak("send", "--quiet", "Go") - idle < 8 * MEGABYTES * 1_000_000


def test_what_a_failed_turn_has_left_takes_less_than_twice_its_size() -> None:
    actors({"max": ["reply", "Short."]})
    idle = peak("send", "Go")
    actors({"max": ["again", LINE, str(MEGABYTES), "+", "exit-with", "1"]})
    assert peak("send", "Go", code=1) - idle < 1.5 * MEGABYTES * 1_000_000
    for typed in ("show", "show --reply", "show --json"):
        assert peak(*typed.split()) - idle < 1.5 * MEGABYTES * 1_000_000, typed
