"""The loop guard: turns that change files make progress, whatever they say, and turns that only agree make none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.helpers import objects
from tests.cli.inner import errors, team
from tests.program import cli, run_here

SAYS = "echo 'I have fixed one more of them.'; echo '[NEXT: {}]'; exit 0"
LOOP = "paused: the last 4 replies said nothing new (limits.rounds)"


def pair(max_does: str, bob_does: str, limits: str = "turns = 50") -> Path:
    """Two members that call each other with one sentence, after what they do."""
    return team(
        limits, 'access = "edit"', max=f"{max_does}; {SAYS.format('bob')}", bob=f"{bob_does}; {SAYS.format('max')}"
    )


@pytest.fixture
def repository() -> None:
    subprocess.run(["git", "init", "-q"], check=True)


def replies() -> int:
    return len(objects(run_here("log", "--json"))) - 1


@pytest.mark.long
@pytest.mark.usefixtures("repository")
def test_fifty_turns_of_one_sentence_with_a_new_file_each_are_never_paused_by_the_loop_guard() -> None:
    new = "touch file$(ls | wc -l)"
    world = pair(new, new)
    ran = cli("send", "--to", "max", "Fix them")
    assert ran.code == 7, errors(world)
    assert replies() == 50
    assert "paused: 50 turns since the last human message (limits.turns)" in ran.err


@pytest.mark.usefixtures("repository")
def test_ping_pong_is_paused_as_ever() -> None:
    pair("true", "true")
    ran = cli("send", "--to", "max", "Talk")
    assert (ran.code, replies()) == (7, 6)
    assert LOOP in ran.err


@pytest.mark.usefixtures("repository")
def test_a_turn_that_fixes_the_code_begins_the_count_anew() -> None:
    counts = "echo turn >> ../count; test $(wc -l < ../count) -ne 5 || echo fixed > code"
    pair(counts, counts)
    ran = cli("send", "--to", "max", "Fix it")
    assert (ran.code, replies()) == (7, 9)
    assert LOOP in ran.err


@pytest.mark.usefixtures("repository")
def test_files_that_only_go_to_and_fro_are_no_progress() -> None:
    pair("echo a > file", "echo b > file")
    ran = cli("send", "--to", "max", "Decide")
    assert (ran.code, replies()) == (7, 6)
    assert LOOP in ran.err


def test_outside_of_git_words_alone_count() -> None:
    new = "touch file$(ls | wc -l)"
    pair(new, new)
    ran = cli("send", "--to", "max", "Fix them")
    assert (ran.code, replies()) == (7, 6)
    assert LOOP in ran.err
