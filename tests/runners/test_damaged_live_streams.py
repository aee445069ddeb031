"""Claude kept running, and its output damaged at random: no turn crashes, none is waited for, none succeeds falsely.

1,600 damaged turns of a process that is played, and 40 of a real one, the same ones in every run; `make fuzz` takes
40,000 and 2,000 others.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings

from teamchat.runners.agent_events import AgentEvent, Done, Error, Failure, Note
from teamchat.runners.base import StopRule
from teamchat.runners.child import live
from teamchat.runners.child import supervisor as turn
from teamchat.runners.child.live import LiveAgent
from teamchat.runners.child.running import Chunk, Exit, HasEnded, Launch, Running
from teamchat.runners.child.supervisor import UNSAID, Clocks, Stopper, TurnEnd, run_turn
from teamchat.runners.claude.events import ClaudeEvents
from teamchat.runners.claude.runner import LIVE
from tests.leftovers import marked
from tests.runners.mutations import PLANS, Damaged, damaged
from tests.runners.processes import PATIENCE_S
from tests.runners.scripted import HurriedLoop, loop_time
from tests.runners.test_damaged_streams import EXAMPLES, FUZZ, assert_sound

FUZZES = settings.get_current_profile_name() == "fuzz"
AT_ONCE_S = 1.0
STALL_S = 5.0
CLOCKS = Clocks(first_byte_s=STALL_S, stall_s=STALL_S, total_s=1800.0)
TURNS = 2_000 if FUZZES else 40
PARTS = range(4 if FUZZES else 1)  # which several processes can share; steady ones would all try the same


class Kept:
    """A process that says these chunks and stays until its turn is over, its input ends or it is stopped; or `dies`."""

    def __init__(self, stream: Damaged, *, dies: bool) -> None:
        self._stream, self._dies = stream, dies
        self._ends = asyncio.Event()
        self.exit: Exit | None = None
        self.is_over = self.has_no_input = False

    def over(self) -> None:
        self.is_over = True

    def end_input(self) -> bool:
        self.has_no_input = True
        self._ends.set()
        return True

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        del why, hard
        self._ends.set()

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        end_of_line = () if self._dies else (Chunk("out", b"\n", 0.0),)
        for chunk in (*self._stream.chunks, *end_of_line):
            yield chunk
            if self.is_over:
                self.exit = Exit(0)
                return
        if not self._dies:
            await self._ends.wait()
        self.exit = Exit(self._stream.code if self._dies else 0 if self.has_no_input else -2)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Runner]:
    """A loop in which time passes at once."""
    monkeypatch.setattr(turn, "time", SimpleNamespace(monotonic=loop_time))
    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        yield runner


async def follow(process: Running, parser: ClaudeEvents, clocks: Clocks) -> tuple[list[AgentEvent], TurnEnd, float]:
    events: list[AgentEvent] = []
    began = asyncio.get_running_loop().time()
    end = await run_turn(process, parser, clocks, Stopper(), events.extend)
    return events, end, asyncio.get_running_loop().time() - began


@pytest.mark.parametrize("part", PARTS)
def test_a_damaged_turn_of_a_process_that_stays_ends_at_once_or_is_run_again(
    hurried: asyncio.Runner, part: int
) -> None:
    del part

    @settings(FUZZ, max_examples=FUZZ.max_examples if FUZZES else EXAMPLES)
    @given(plan=PLANS)
    def check(plan: bytes) -> None:
        stream, dies = damaged("claude", plan), plan[0] % 2 == 0
        parser = ClaudeEvents()
        process, events, end, seconds = hurried.run(_played(stream, parser, dies=dies))
        assert_sound("claude", stream, events, end)
        told = any(isinstance(event, Done) for event in events)
        assert process.is_over == told
        assert not (end.untold and told)
        if told or dies or parser.answered:
            assert seconds < AT_ONCE_S
        if parser.answered and not told:
            assert end.untold or any(isinstance(event, Error) for event in events)
            assert end.failure is not None
        doubts = [event for event in events if isinstance(event, Note) and event.text.startswith(UNSAID)]
        assert len(doubts) == process.has_no_input

    check()


async def _played(
    stream: Damaged, parser: ClaudeEvents, *, dies: bool
) -> tuple[Kept, list[AgentEvent], TurnEnd, float]:
    process = Kept(stream, dies=dies)
    return process, *await follow(process, parser, CLOCKS)


# --- a real process


def test_damaged_turns_of_a_real_process_leave_none_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says its nth turn at the nth line of its input, and may die then; each turn that is over may have another."""
    monkeypatch.setattr(turn, "ANSWERED_S", 0.05)
    monkeypatch.setattr(turn, "TICK_S", 0.01)
    monkeypatch.setattr(live, "CLOSE_S", 0.2)
    plans = Random(1)  # noqa: S311 (no secret)
    asyncio.run(_assert_many_turns_end(tmp_path, [plans.randbytes(36) for _ in range(TURNS)]))


SAYS = """\
n=0
while read -r line; do
    n=$((n + 1))
    cat "$0/$n"
    if [ -e "$0/$n.dies" ]; then exit "$(cat "$0/$n.dies")"; fi
    if [ -e "$0/$n.deaf" ]; then exec sleep 600; fi
done
"""


async def _assert_many_turns_end(folder: Path, plans: list[bytes]) -> None:
    life, served, reused = LiveAgent(LIVE), 0, 0
    try:
        for number, plan in enumerate(plans):
            if not life.runs():
                await life.close()
                life, served = LiveAgent(LIVE), 0
            reused += served > 0
            served += 1
            stream = damaged("claude", plan)
            says = folder / str(number - served + 1)
            says.mkdir(exist_ok=True)
            (says / str(served)).write_bytes(stream.stdout + b"\n")
            if plan[0] % 8 < 2:
                how = ("dies", "deaf")[plan[0] % 8]
                (says / f"{served}.{how}").write_text(str(stream.code % 256))
            with suppress(HasEnded):  # it died when it had told the end of its last turn
                await _turn(folder, says, number, life, stream)
    finally:
        await life.close()
    assert reused > len(plans) // 10


async def _turn(folder: Path, says: Path, number: int, life: LiveAgent, stream: Damaged) -> None:
    env = marked({"PATH": os.environ["PATH"]})
    argv, stop = ("/bin/sh", "-c", SAYS, str(says)), StopRule(grace_s=0.05)
    what = Launch(argv, folder, env, b"Hi", folder / f"turn{number}", stop=stop, stays=life)
    parser, clocks = ClaudeEvents(), Clocks(first_byte_s=1.0, stall_s=0.3, total_s=2.0)
    events, end, _ = await asyncio.wait_for(follow(life.turn(what), parser, clocks), 2 * PATIENCE_S)
    assert_sound("claude", stream, events, end)
    assert end.failure is None or "after its result" not in end.failure.reason
