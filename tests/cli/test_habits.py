"""What people type out of habit does what they meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.scene import refused
from tests.crew import crew
from tests.program import run_here


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("help", "--help"),
        ("help help", "--help"),
        ("help send", "send --help"),
        ("help sessions delete", "sessions delete --help"),
        ("version", "--version"),
        ("-V", "--version"),
        ("status", "log -n 1"),
        ("status --json", "log -n 1 --json"),
        ("ls", "sessions"),
        ("ls --json", "sessions --json"),
        ("sessions list", "sessions"),
        ("sessions ls", "sessions"),
        ("log 3", "log -n 3"),
        ("log 3 --json", "log -n 3 --json"),
        ("show msg-2", "show 1"),
        ("show msg-4 --json", "show 2 --json"),
    ],
)
def test_it_prints_what_the_command_does(world: Path, typed: str, meant: str) -> None:
    crew(world, {"max": ["Hi.", "Which one?\n[NEXT: kailai]"]})
    run_here("send", "Go")
    run_here("send", "Go on")
    ran = run_here(*typed.split())
    assert ran.code == 0
    assert (ran.out, ran.err) == (run_here(*meant.split()).out, run_here(*meant.split()).err)


def test_the_status_has_what_waits(world: Path) -> None:
    crew(world, {"max": ["Which one?\n[NEXT: kailai]"]})
    run_here("send", "Go")
    ran = run_here("status")
    assert ran.out == "msg-2 max -> kailai (turn 1):\nWhich one?\n[NEXT: kailai]\n\n"
    assert ran.err == "· asked: kailai, called by max in msg-2\n"


def test_help_for_what_is_no_command_names_none(world: Path) -> None:
    del world
    ran = run_here("help", "sned")
    assert (ran.code, refused(ran)) == (2, "there is no command 'sned': did you mean send?")
