"""Programs that open their own output by name, such as `> /dev/stdout`, which empties a regular file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from teamchat.runners.child.process import EMPTIED
from teamchat.runners.child.running import Chunk, CutShort
from tests.cli.helpers import objects
from tests.program import run_here
from tests.runners.conftest import Start
from tests.runners.processes import PATIENCE_S, follow, shell
from tests.shell_team import shell as team


def cuts(start: Start, script: str) -> list[CutShort]:
    """Why the turn is cut short at its end."""
    process = start(shell(script))

    async def main() -> list[Chunk | CutShort]:
        return [chunk async for chunk in process.chunks()]

    return [one for one in asyncio.run(asyncio.wait_for(main(), PATIENCE_S)) if isinstance(one, CutShort)]


@pytest.mark.parametrize(
    "script",
    [
        "echo one; echo two > /dev/stdout; echo three",
        "echo one; echo two | tee /dev/stdout; echo three",
        "echo one > /dev/stdout",  # whole, but nobody can know
        "echo a first line that is rather long; sleep 0.2; echo two > /dev/stdout; sleep 0.2; echo three",
        "echo one; : > /proc/self/fd/1",
        """python3 -c 'print("one", flush=True); open("/dev/stdout", "r+").write("two")'""",
    ],
)
def test_a_reply_that_its_own_program_overwrites_fails_the_turn(start: Start, script: str) -> None:
    assert [cut.why for cut in cuts(start, script)] == [EMPTIED]


@pytest.mark.parametrize(
    "script", ["echo one; echo two >> /dev/stdout", "echo one; echo two | tee -a /dev/stdout", ":"]
)
def test_a_program_that_appends_empties_nothing(start: Start, script: str) -> None:
    assert cuts(start, script) == []


def test_a_program_that_fails_keeps_the_reason_of_its_own(start: Start) -> None:
    assert cuts(start, "echo one; echo two > /dev/stdout; exit 3") == []


@pytest.mark.parametrize(
    "again", ["echo two > /dev/stderr", "echo two | tee /dev/stderr > /dev/null", "echo two >> /dev/stderr"]
)
def test_standard_error_that_is_opened_again_is_whole(start: Start, again: str, tmp_path: Path) -> None:
    ran = follow(start(shell(f"echo one >&2; {again}; echo three >&2; exit 1")))
    assert ran.err == b"one\ntwo\nthree\n" == (tmp_path / "turn0" / "stderr").read_bytes()


def test_standard_error_takes_more_than_a_pipe_holds(start: Start) -> None:
    ran = follow(start(shell("head -c 5000000 /dev/zero >&2; echo said")))
    assert (ran.out, len(ran.err), ran.exit.code) == (b"said\n", 5_000_000, 0)


def test_standard_error_without_end_ends_the_agent_at_the_limit(start: Start) -> None:
    ran = follow(start(shell("cat /dev/zero >&2"), max_output=3_000_000))
    assert (ran.exit.over_limit, len(ran.err)) == (3_000_000, 3_000_000)


def test_the_error_says_why_and_how_to_write_it_right() -> None:
    team(max="echo one; echo two > /dev/stdout")
    ran = run_here("send", "[NEXT: max] Hi", "--json")
    assert ran.code == 1
    assert objects(ran)[-1]["reason"] == f"max {EMPTIED.reason}"
