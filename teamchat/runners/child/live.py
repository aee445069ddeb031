"""One process for many turns, if a CLI can be kept running (Claude's stream-json input, observed at 2.1.197).

A second turn takes 20 ms instead of 530. The first turn starts the process, under a guardian like any other, and leaves
its standard input open. Each turn writes one line there and ends with the CLI's own terminal event.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection
from pathlib import Path

from msgspec.structs import replace

from teamchat.runners.agent_events import Failure
from teamchat.runners.base import LiveRule
from teamchat.runners.child import guardian
from teamchat.runners.child.process import ChildProcess, make_private
from teamchat.runners.child.removal import remove
from teamchat.runners.child.running import (
    BEGINS,
    FIRST_LINE,
    LIVE,
    Chunk,
    CutShort,
    Exit,
    HasEnded,
    Launch,
    OwnFileFailed,
    start_error,
)

LOOK_S = 0.5  # how often the process is checked between two turns
CLOSE_S = 2.0  # how long the CLI may take to exit once its input has ended


class LiveAgent:
    """A member's process between its first turn and `close`."""

    def __init__(self, rule: LiveRule) -> None:
        self.rule = rule
        self.scratch: Path | None = None
        self.process: ChildProcess | None = None
        self._chunks: AsyncGenerator[Chunk | CutShort, None] | None = None
        self._read = 0  # bytes read of its output file
        self._pending: deque[memoryview] = deque()  # cut without a copy: a prompt may be many MB
        self._ended = False
        self._before: Collection[int] = ()  # the processes that it already runs when its turn begins
        self._look: asyncio.TimerHandle | None = None

    def rest(self) -> None:
        """Watch it until its next turn: it could fill the disk in between, too."""
        if self.runs():
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self.rest)

    def _wake(self) -> None:
        if self._look:
            self._look.cancel()

    def runs(self) -> bool:
        """Whether the process can take another turn. A recording has no process to ask."""
        if self.process and not self._ended:
            self.process.poll()
        return not self._ended and (self.process is None or self.process.exit is None)

    def turn(self, what: Launch) -> LiveTurn:
        """Begin a turn in this process, and start the process if necessary.

        Raises `SpawnFailed`, also when the process has ended, and the errors of `what.prepare`.
        """
        if not self.runs():
            raise HasEnded("the process that was kept running has ended")
        if self.process is None:
            folder = what.folder.with_suffix(LIVE)
            self.process = ChildProcess(replace(what, stdin=b"", folder=folder))
            self.scratch = what.scratch
            self._chunks = self.process.chunks()
            self._read = len(FIRST_LINE)
        else:
            what.prepare()
            self._read = self.process.begin_turn()
            self._before = guardian.below(self.process.pid, guardian.processes())
        self._wake()
        # The turn's folder has the output, too: it is what remains of the turn if teamchat is killed.
        assert self.process is not None
        try:
            make_private(what.folder)
            (what.folder / BEGINS).write_text(str(self._read))
            (what.folder / "stdout").hardlink_to(self.process.folder / "stdout")
        except OSError as error:
            raise OwnFileFailed(start_error(error)) from error
        return LiveTurn(self, what)

    async def next(self) -> Chunk | CutShort | None:
        """Return the next piece of output; None when the process has ended."""
        chunk = await anext(self._chunks, None) if self._chunks else None
        if isinstance(chunk, Chunk) and chunk.stream == "out":
            self._read += len(chunk.data)
        return chunk

    def feed(self, data: bytes) -> None:
        """Write to its standard input without blocking. Input for a process that has exited is dropped."""
        self._pending.append(memoryview(data))
        self._pump()

    def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        assert self.process is not None
        if self.process.stdin is None:
            self._pending.clear()
            return
        loop.remove_writer(self.process.stdin)
        try:
            while self._pending:
                self._pending[0] = rest = self._pending[0][os.write(self.process.stdin, self._pending[0]) :]
                if not rest:
                    self._pending.popleft()
        except BlockingIOError:
            loop.add_writer(self.process.stdin, self._pump)
        except OSError:
            self._pending.clear()  # the process has ended: the turn reports that

    def end_input(self) -> None:
        """Let it exit once it has finished its work."""
        self._ended = True
        assert self.process is not None
        if self.process.stdin is not None:
            asyncio.get_running_loop().remove_writer(self.process.stdin)
            self.process.close_stdin()

    def busy(self) -> bool:
        """Whether it runs a process that it did not run before this turn, such as a hook or a tool's."""
        assert self.process is not None
        return not guardian.below(self.process.pid, guardian.processes()).keys() <= set(self._before)

    async def close(self) -> None:
        """Let it exit, or end it. No process of it remains."""
        self._ended = True
        self._wake()
        if self.process is None or self._chunks is None:
            return
        self.end_input()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                while await self.next():
                    pass
        await self._chunks.aclose()

    def remove(self) -> str | None:
        """Remove the folders of a closed process. Returns a sentence about what cannot be removed."""
        return remove(*(folder for folder in (self.scratch, self.process and self.process.folder) if folder))


class LiveTurn:
    """One turn of a process that stays. Ending the turn early also ends the process."""

    def __init__(self, agent: LiveAgent, what: Launch) -> None:
        self.exit: Exit | None = None
        self._agent, self._what = agent, what
        self._over = False
        self._stops = 0
        self._timer: asyncio.TimerHandle | None = None

    def over(self) -> None:
        self._over = True

    def end_input(self) -> bool:
        """Close the input, so that the process exits by itself.

        After `CLOSE_S` seconds it is ended, unless it is busy: hooks run after an answer (2.1.330).
        """
        self._agent.end_input()
        self._later(CLOSE_S, self._end_idle)
        return True

    def _later(self, seconds: float, then: Callable[[], None]) -> None:
        """Call `then` after `seconds`, unless the turn is over before, or another call takes its place."""
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def _end_idle(self) -> None:
        process = self._agent.process
        assert process is not None
        process.poll()
        if process.exit is None and self._agent.busy():
            self._later(CLOSE_S, self._end_idle)
        elif process.exit is None:
            process.stop()

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        """Stop by the CLI's own interrupt first; by signal if that does not help, or at a second request."""
        del why
        process = self._agent.process
        assert process is not None
        self._stops += 1
        if hard or self._stops > 1 or process.stdin is None:
            process.stop(hard=hard)
            return
        self._agent.feed(self._agent.rule.interrupt)
        self._later(self._what.stop.grace_s, process.stop)

    async def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        agent, began = self._agent, time.monotonic()
        assert agent.process is not None
        agent.feed(agent.rule.line(self._what.stdin))
        try:
            while chunk := await agent.next():
                yield replace(chunk, at=time.monotonic() - began)
                if self._over:
                    self.exit = Exit(0, seconds=time.monotonic() - began)
                    return
            ended = agent.process.exit or Exit(-9)
            self.exit = replace(ended, seconds=time.monotonic() - began)
        finally:
            if self._timer:
                self._timer.cancel()
            if self.exit is None:
                await agent.close()
            else:
                agent.rest()
