"""Starts of one vendor's CLIs keep apart, also those of other processes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import open_store
from teamchat.core.errors import ExitCode
from teamchat.core.files.folders import state_dir
from teamchat.core.store.turns import turns_of
from teamchat.core.turn.machine import APART_S, LONGEST_S, Machine, steady_now, take_moment
from tests.core.fake_conversation import Stage, team_of
from tests.program import ROOT, run_here
from tests.scripted_team import crew

TAKER = """
import json, sys
from teamchat.core.turn.machine import take_moment
sys.stdin.readline()  # so that all of them begin at once
print(json.dumps([take_moment("claude") for _ in range(3)]))
"""


def file(vendor: str = "claude") -> Path:
    return state_dir() / f"{vendor}.start"


def test_the_first_starts_at_once_and_further_ones_of_its_vendor_a_little_apart() -> None:
    before = steady_now()
    first = take_moment("claude")
    assert before <= first <= steady_now()
    moments = [first, *(take_moment("claude") for _ in range(5))]
    assert all(later - earlier >= APART_S - 1e-5 for earlier, later in pairwise(moments))
    assert take_moment("codex") <= steady_now()


def test_processes_that_start_at_once_take_different_moments() -> None:
    takers = [
        subprocess.Popen([sys.executable, "-c", TAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        for _ in range(6)
    ]
    for taker in takers:
        assert taker.stdin
        taker.stdin.write(b"\n")
        taker.stdin.flush()
    moments = sorted(moment for taker in takers for moment in json.loads(taker.communicate(timeout=60)[0]))
    assert len(moments) == 18
    assert all(later - earlier >= APART_S - 1e-5 for earlier, later in pairwise(moments))


@pytest.mark.parametrize(
    "left", [b"", b"half a numb", b"nan", b"inf", b"1e999", b"\xff\0", b"9" * 100, b"x" * 100, b"-1"]
)
def test_what_a_crash_or_a_wrong_clock_has_left_keeps_nobody_waiting(left: bytes) -> None:
    file().write_bytes(left)
    first = take_moment("claude")
    assert first <= steady_now()
    assert first + APART_S - 1e-5 <= take_moment("claude") < steady_now() + LONGEST_S


def test_a_clock_that_was_set_back_is_not_waited_for() -> None:
    file().write_text(str(steady_now() + 2 * LONGEST_S))
    assert take_moment("claude") <= steady_now()


def test_a_process_that_is_stopped_while_it_takes_a_moment_holds_nobody_up() -> None:
    with file().open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert take_moment("claude") <= steady_now()


def test_a_file_that_can_not_be_used_stops_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file().mkdir()
    assert take_moment("claude") <= steady_now()
    (tmp_path / "state").touch()
    monkeypatch.setenv("TEAMCHAT_HOME", str(tmp_path / "state"))
    assert take_moment("claude") <= steady_now()


# --- in a conversation


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "claude", "sarah": "claude", "carol": "plain"}))


def test_turns_begin_at_their_moments_and_programs_on_a_pipe_need_none(stage: Stage) -> None:
    taken: list[float] = []

    def moment(vendor: str) -> float:
        assert vendor == "claude"
        taken.append(steady_now() + 0.1 * len(taken))
        return taken[-1]

    stage.moment = moment
    assert stage.send("[NEXT: max + sarah + carol] Go").code == 0
    began = {turn.member: turn.started_at for turn in stage.turns}
    assert len(taken) == 2
    assert began["max"] >= taken[0]
    assert began["sarah"] >= taken[1]


def test_who_is_stopped_before_its_moment_is_not_started(stage: Stage) -> None:
    def moment(_vendor: str) -> float:
        asyncio.get_running_loop().call_later(0.05, stage.stopper.request)
        return steady_now() + 60

    stage.moment = moment

    assert stage.send("[NEXT: max] Go").code is ExitCode.INTERRUPTED
    assert stage.launched == []
    assert stage.queue == ["max held"]


def test_a_command_waits_for_the_moment_after_those_that_others_have_taken(world: Path) -> None:
    crew(world, {"max": ["Hi."]}, like={"max": "claude"})
    *_, last = (take_moment("claude") for _ in range(5))
    assert run_here("send", "Go").code == 0
    with open_store(Path.cwd()) as db:
        (turn,) = turns_of(db, 1)
    assert turn.started_at >= last + APART_S - 1e-5


def test_a_clock_that_is_set_during_a_run_changes_no_time_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before, clock = Machine().now(), time.time
    taken = take_moment("claude")
    for hours in (1, -1, 24 * 40):
        monkeypatch.setattr(time, "time", lambda hours=hours: clock() + hours * 3600)
        assert 0 <= Machine().now() - before < 600
        assert 0 <= take_moment("claude") - taken < LONGEST_S
