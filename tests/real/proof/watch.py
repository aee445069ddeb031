"""One watched turn of a real CLI: run as `send` runs it, with its events counted and its processes listed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from teamchat.core.doctor.ask import PATIENCE, LoneTurn, not_started, private_folder
from teamchat.runners.agent_events import AgentEvent, FailureKind
from teamchat.runners.base import Runner, Verdict
from teamchat.runners.child import guardian
from teamchat.runners.child.process import ChildProcess
from teamchat.runners.child.removal import remove
from teamchat.runners.child.running import OwnFileFailed, SpawnFailed
from teamchat.runners.child.supervisor import Clocks, Stopper, TurnEnd, run_turn
from teamchat.runners.untrusted.json import decode
from tests.real.model.table import SELF_TESTS

CLOCKS = Clocks(first_byte_s=30.0, stall_s=30.0, total_s=90.0)
LOOK_S = 0.05
SETTLE_S = 0.5  # a killed process may take a moment to disappear


class StoppedTurn(Struct, frozen=True):
    """How a hanging turn was ended: its processes, those that outlived it, and how long the end took."""

    tree: Mapping[int, str]
    survivors: tuple[str, ...]
    seconds: float


class Observed(Struct, frozen=True):
    """What was seen of one turn: its end, its events, their vendor names, and how it was stopped, if it was.

    `ours` says why it could not be tried, if that is not the CLI's fault.
    """

    end: TurnEnd
    events: tuple[AgentEvent, ...] = ()
    names: tuple[str, ...] = ()
    stopped: StoppedTurn | None = None
    ours: str | None = None

    @property
    def began(self) -> bool:
        """True if the CLI reported an event of its own. False if it failed at its start."""
        return bool(self.names)

    @property
    def is_hopeless(self) -> bool:
        """True if further turns would only fail as slowly."""
        return not self.began or bool(self.end.failure and self.end.failure.kind is FailureKind.TIMEOUT)

    def had(self, kind: type[AgentEvent]) -> bool:
        return any(isinstance(event, kind) for event in self.events)


class _Witness:
    """A parser that notes the vendor's name of every event before another parser reads it."""

    by_lines = True
    at_end = False

    def __init__(self, runner: Runner) -> None:
        self.parser = runner.parser()
        self.longest = self.parser.longest
        self.test = SELF_TESTS[runner.vendor] if runner.vendor else None
        self.names: list[str] = []

    @property
    def answered(self) -> bool:
        return self.parser.answered

    def feed(self, *lines: bytes) -> Iterable[AgentEvent]:
        for line in lines:
            if self.test and (event := decode(line)) and (name := self.test.event_name(event)):
                self.names.append(name)
        return self.parser.feed(*lines)

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:
        return self.parser.feed_stderr(line)

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        return self.parser.finish(exit_code, stderr_tail)


class Watch(LoneTurn, frozen=True):
    """A turn to run and to watch.

    `hangs` gets the names of its processes by their pids and returns whether it hangs. A turn that hangs is
    stopped.
    """

    hangs: Callable[[Mapping[int, str]], bool] | None = None


async def observe(watch: Watch) -> Observed:
    """Run the turn to its end. If it cannot start, the end says why. Raises `StoreError`."""
    scratch = private_folder(watch.folder)
    try:
        return await _observe(watch, scratch)
    finally:
        if watch.life is None or watch.life.scratch != scratch:  # a process that stays keeps its own folder
            remove(scratch)


async def _observe(watch: Watch, scratch: Path) -> Observed:
    try:
        process, env = watch.start(scratch)
    except (SpawnFailed, OSError) as error:
        ours = f"a file of teamchat's own could not be made: {error}"
        return Observed(not_started(error), ours=ours if isinstance(error, OwnFileFailed | OSError) else None)
    witness, stopper, events = _Witness(watch.runner), Stopper(), list[AgentEvent]()
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(
            run_turn(process, witness, CLOCKS, stopper, events.extend, PATIENCE, watch.job.resumes)
        )
        stopped = None
        if watch.hangs and isinstance(process, ChildProcess):
            stopped = await _stop(process.pid, turn, stopper, watch.hangs)
    return Observed(watch.with_login(turn.result(), env), tuple(events), tuple(witness.names), stopped)


async def _stop(
    pid: int, turn: asyncio.Task[TurnEnd], stopper: Stopper, hangs: Callable[[Mapping[int, str]], bool]
) -> StoppedTurn | None:
    """Stop the turn once it hangs, and see which processes remain; None if it ended by itself."""
    while not hangs(_tree(pid)):
        await asyncio.sleep(LOOK_S)
        if turn.done():
            return None
    await asyncio.sleep(SETTLE_S)  # whatever else it starts besides its tool
    tree = _tree(pid)
    begin = time.monotonic()
    stopper.request()
    await asyncio.wait([turn])
    seconds = time.monotonic() - begin
    await asyncio.sleep(SETTLE_S if _alive(tree) else 0)
    return StoppedTurn(tree, tuple(sorted(_alive(tree).values())), seconds)


def _tree(pid: int) -> dict[int, str]:
    table = guardian.processes()
    return {one: table[one][1] for one in (pid,) if one in table} | guardian.below(pid, table)


def _alive(tree: Mapping[int, str]) -> dict[int, str]:
    table = guardian.processes()
    return {pid: name for pid, name in tree.items() if table.get(pid, (0, ""))[1] == name}
