"""One turn of an agent: follow its process, turn its output into events, and end it when a clock runs out.

Three clocks of our own, because those of the CLIs are minutes (cli-contracts section 2, point 6): until the first
byte, between signs of life (stopped while a tool call is open; retries are no life), and in all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from teamchat.runners.base import (
    AgentEvent,
    Denied,
    EventParser,
    Failure,
    FailureKind,
    Note,
    Retry,
    Started,
    ToolCall,
    ToolResult,
    Usage,
    VendorSession,
    Verdict,
)
from teamchat.runners.framing import LineFramer
from teamchat.runners.process import Chunk, Running

TAIL_BYTES = 64 * 1024
SILENCE_NOTE_S = 60.0
TICK_S = 0.1
MAX_OUTPUT_BYTES = 2 * 1024**3  # an agent that writes without end is stopped before it fills the disk


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds. Each failure says which clock ran out."""

    first_byte_s: float = 60.0
    stall_s: float = 300.0
    total_s: float = 1800.0


class Stopper:
    """How a turn is stopped from outside: `request` once for the soft way, twice for SIGKILL at once."""

    def __init__(self) -> None:
        self.asked = 0

    def request(self) -> None:
        self.asked += 1


@dataclass(slots=True)
class TurnEnd:
    """Everything known about a finished turn. `text` is the reply, or the partial text when it failed."""

    text: str
    failure: Failure | None
    exit_code: int
    seconds: float
    first_byte_s: float | None = None
    usage: Usage | None = None
    denied: tuple[Denied, ...] = ()
    vendor_session: str | None = None
    model: str | None = None
    stderr_tail: str = ""
    left: tuple[str, ...] = ()


@dataclass(slots=True)
class _Facts:
    """What the events of a turn have told so far."""

    open_tools: set[str] = field(default_factory=set)
    denied: list[Denied] = field(default_factory=list)
    usage: Usage | None = None
    vendor_session: str | None = None
    model: str | None = None

    def learn(self, event: AgentEvent) -> None:
        match event:
            case ToolCall(id=tool):
                self.open_tools.add(tool)
            case ToolResult(id=tool):
                self.open_tools.discard(tool)
            case Denied():
                self.denied.append(event)
            case Usage():
                self.usage = event
            case VendorSession(id=session):
                self.vendor_session = session
            case Started(model=str(model)):
                self.model = model
            case _:
                pass


class _Turn:
    def __init__(
        self,
        process: Running,
        parser: EventParser,
        clocks: Clocks,
        stopper: Stopper,
        emit: Callable[[AgentEvent], None],
    ) -> None:
        self.process, self.parser, self.clocks, self.stopper, self.emit = process, parser, clocks, stopper, emit
        self.facts = _Facts()
        self.framers = {"out": LineFramer(), "err": LineFramer()}
        self.tail = b""
        self.received = 0
        self.started = self.alive = self.noted = time.monotonic()
        self.first_byte: float | None = None
        self.cut: Failure | None = None  # why we ended it, when we did
        self.stops_sent = 0

    async def run(self) -> TurnEnd:
        watch = asyncio.ensure_future(self._watch())
        try:
            async for chunk in self.process.chunks():
                self._take(chunk)
        finally:
            watch.cancel()
        for stream, framer in self.framers.items():
            for line in framer.flush():
                self._line(stream, line)
        return self._end()

    def _take(self, chunk: Chunk) -> None:
        if chunk.stream == "out" and self.first_byte is None:
            self.first_byte = time.monotonic() - self.started
        if chunk.stream == "err":
            self.tail = (self.tail + chunk.data)[-TAIL_BYTES:]
        self.received += len(chunk.data)
        if self.received > MAX_OUTPUT_BYTES:
            self._end_process(
                Failure(FailureKind.AGENT, f"wrote more than {MAX_OUTPUT_BYTES >> 30} GiB and was stopped")
            )
            return
        for line in self.framers[chunk.stream].push(chunk.data):
            self._line(chunk.stream, line)

    def _line(self, stream: str, line: bytes) -> None:
        for event in self.parser.feed(line) if stream == "out" else self.parser.feed_stderr(line):
            self.facts.learn(event)
            if not isinstance(event, Retry | Note):
                self.alive = self.noted = time.monotonic()
            self.emit(event)
            if isinstance(event, Retry) and event.kind is FailureKind.LOGIN:
                # a rejected login does not heal by trying again, which Claude does for three minutes
                self._end_process(Failure(FailureKind.LOGIN, event.reason))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            if self.stopper.asked > self.stops_sent:
                self.stops_sent = self.stopper.asked
                self._end_process(Failure(FailureKind.INTERRUPTED, "was interrupted"), hard=self.stopper.asked > 1)
            elif self.cut is None and (reason := self._clock(now)):
                self._end_process(Failure(FailureKind.TIMEOUT, reason))
            elif now - self.noted > SILENCE_NOTE_S:
                self.noted = now
                self.emit(Note(f"silent for {now - self.alive:.0f} s"))

    def _clock(self, now: float) -> str | None:
        if now - self.started > self.clocks.total_s:
            return f"was still running after {_seconds(self.clocks.total_s)} (its timeout)"
        if self.first_byte is None:
            limit = self.clocks.first_byte_s
            return f"wrote nothing in its first {_seconds(limit)} (first_byte)" if now - self.started > limit else None
        if not self.facts.open_tools and now - self.alive > self.clocks.stall_s:
            return f"gave no sign of life for {_seconds(self.clocks.stall_s)} (stall)"
        return None

    def _end_process(self, why: Failure, *, hard: bool = False) -> None:
        self.cut = self.cut or why
        self.process.stop(hard=hard)

    def _end(self) -> TurnEnd:
        ended = self.process.exit
        code = ended.code if ended else -9
        tail = self.tail.decode(errors="replace")
        verdict = self.parser.finish(code, tail)
        return TurnEnd(
            text=verdict.text,
            failure=self._failure(verdict),
            exit_code=code,
            seconds=time.monotonic() - self.started,
            first_byte_s=self.first_byte,
            usage=self.facts.usage,
            denied=tuple(self.facts.denied),
            vendor_session=self.facts.vendor_session,
            model=self.facts.model,
            stderr_tail=tail,
            left=ended.left if ended else (),
        )

    def _failure(self, verdict: Verdict) -> Failure | None:
        """What we ended it for rules over what its dying words say, but a reply that was complete by then counts."""
        if self.cut is None or (verdict.failure is None and self.cut.kind is not FailureKind.LOGIN):
            return verdict.failure
        if self.cut.kind is FailureKind.LOGIN and verdict.failure and verdict.failure.kind is FailureKind.LOGIN:
            return verdict.failure  # the same in its own words, with the hint
        return self.cut


def _seconds(value: float) -> str:
    minutes, seconds = divmod(value, 60)
    return f"{minutes:.0f} min" if minutes and not seconds else f"{value:g} s"


async def run_turn(
    process: Running,
    parser: EventParser,
    clocks: Clocks,
    stopper: Stopper,
    emit: Callable[[AgentEvent], None],
) -> TurnEnd:
    """Follow `process` to its end and judge it; `emit` gets every event as it comes."""
    return await _Turn(process, parser, clocks, stopper, emit).run()
