"""A process that plays a script and a parser that reads plain words: `run_turn` without real programs and CLIs.

And a clock for them: in an event loop of `HurriedLoop` nobody waits, and time is exact however busy the machine is.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass

from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Done,
    Failure,
    FailureKind,
    Note,
    Retry,
    Started,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    VendorSession,
)
from teamchat.runners.base import Verdict
from teamchat.runners.child.running import Chunk, Exit

HANG = 3600.0


def loop_time() -> float:
    """What the running loop takes for the time; of any other loop than a hurried one this is `time.monotonic`."""
    return asyncio.get_running_loop().time()


class HurriedSelector(selectors.DefaultSelector):
    """Where others would wait, the time it says has come."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing would ever happen"
        self.now += timeout
        return super().select(0)


class HurriedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when all in it sleep, and then at once."""

    def __init__(self) -> None:
        self.clock = HurriedSelector()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now

    def stall(self, seconds: float) -> None:
        """Let time pass while nothing in the loop runs."""
        self.clock.now += seconds


@dataclass(frozen=True, slots=True)
class Err:
    """Bytes on stderr."""

    data: bytes


class ScriptedProcess:
    """Says its bytes, waits its seconds, exits with `code`. Stopped, it skips to `last_words` and exits with -15 or -9.

    As a real one it goes by the clock: while nobody reads, its time passes all the same. `stops` has one
    entry for each stop it was asked for: whether it was a hard one. A deaf one heeds only those.
    """

    def __init__(
        self,
        *script: bytes | float | Err,
        code: int = 0,
        last_words: tuple[bytes | Err, ...] = (),
        stopped_code: int | None = None,
        deaf: bool = False,
        over_limit: int | None = None,
        left: tuple[str, ...] = (),
    ) -> None:
        self.script, self.last_words = script, last_words
        self.code, self.stopped_code, self.deaf = code, stopped_code, deaf
        self.over_limit, self.left = over_limit, left
        self.stops: list[bool] = []
        self.exit: Exit | None = None
        self.closed = self.said_over = False
        self._stopped = asyncio.Event()
        self._started = self._due = loop_time()

    def over(self) -> None:
        self.said_over = True

    def end_input(self) -> bool:
        return False

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        del why
        self.stops.append(hard)
        if hard or not self.deaf:
            self._stopped.set()

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        try:
            for step in self.script:
                if isinstance(step, float):
                    await self._wait(step)
                else:
                    yield self._chunk(step)
                if self._stopped.is_set():
                    break
            for step in self.last_words if self._stopped.is_set() else ():
                yield self._chunk(step)
            self.exit = Exit(self._code(), self.left, self.over_limit, self._time())
        finally:
            self.closed = True

    async def _wait(self, seconds: float) -> None:
        self._due += seconds
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), self._due - loop_time())

    def _chunk(self, step: bytes | Err) -> Chunk:
        return Chunk("err", step.data, self._time()) if isinstance(step, Err) else Chunk("out", step, self._time())

    def _code(self) -> int:
        if not self._stopped.is_set():
            return self.code
        return self.stopped_code if self.stopped_code is not None else -9 if self.stops[-1] else -15

    def _time(self) -> float:
        return loop_time() - self._started


WORDS: dict[bytes, AgentEvent] = {
    b"started": Started("m-1"),
    b"session": VendorSession("s-1"),
    b"tool": ToolCall("1", "Bash", "make"),
    b"other tool": ToolCall("2", "Bash", "make test"),
    b"result": ToolResult("1", "ok"),
    b"denied": Denied("Write", "a.txt"),
    b"usage": Usage(3, output_tokens=4),
    b"retry": Retry("rate limit"),
    b"login": Retry("login was refused", FailureKind.LOGIN),
    b"note": Note("noted"),
    b"done": Done(ok=True),
    b"failed": Done(ok=False),
}


class WordParser:
    """Each line is a word of `WORDS`, or nothing at all (`thinking`), or else text."""

    by_lines = True
    at_end = False
    answered = False
    longest = 16 << 20

    def __init__(self, own_failure: Failure | None = None) -> None:
        self.own_failure = own_failure
        self.text: list[str] = []
        self.done = False

    def feed(self, *lines: bytes) -> Iterable[AgentEvent]:
        return tuple(event for line in lines for event in self._events(line))

    def _events(self, line: bytes) -> Iterable[AgentEvent]:
        self.done = self.done or line == b"done"
        if line == b"thinking":
            return ()
        if line in WORDS:
            return (WORDS[line],)
        self.text.append(line.decode())
        return (Text(line.decode()),)

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:
        return (WORDS[line],) if line in WORDS else ()

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        text = "\n".join(self.text)
        if self.own_failure:
            return Verdict(text, self.own_failure)
        if exit_code == 0 and self.done:
            return Verdict(text)
        return Verdict(text, Failure(FailureKind.AGENT, f"code {exit_code}: {stderr_tail}"))
