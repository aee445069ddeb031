"""One turn of an agent: follow its process, turn its output into events, and end it when a clock runs out.

teamchat has its own clocks, because those of the CLIs take minutes or do not exist (observed): until the first byte,
between signs of life (paused while a tool call is open; retries are no signs of life), from the CLI's own result to its
exit, and in total.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.runners.agent_events import (
    NOTHING_YET,
    AgentEvent,
    Denied,
    Done,
    Error,
    Failure,
    FailureKind,
    Note,
    Retry,
    Started,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    VendorSession,
)
from teamchat.runners.base import EventParser, Verdict
from teamchat.runners.child.running import Chunk, CutShort, Exit, Running
from teamchat.runners.longest import ESCAPED, KEPT, LONGEST_REPLY, ShortenedLine, cut
from teamchat.runners.untrusted.json import one_line


class Framer(Protocol):
    """Cuts a stream into the units that a parser takes."""

    def push(self, chunk: bytes) -> list[bytes]: ...

    def flush(self) -> list[bytes]:
        """Return the rest when the stream has ended."""
        ...


class LineFramer:
    """Cuts a stream into lines. One over `longest` bytes comes as a `ShortenedLine`."""

    def __init__(self, longest: int = ESCAPED * LONGEST_REPLY) -> None:
        self._longest = longest
        self._open: list[bytes] = []  # pieces of the open line
        self._head = b""  # the beginning of a line that is too long; `_open` has its end
        self._size = self._held = 0  # bytes of the line, and of `_open`

    def push(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes, without their newlines."""
        first, *others = chunk.split(b"\n")
        self._add(first)
        if not others:
            return []
        line, self._open = self._whole(), []
        *lines, rest = others
        self._size = self._held = 0
        self._add(rest)
        return [line, *lines]

    def _add(self, piece: bytes) -> None:
        if piece:
            self._open.append(piece)
            self._size += len(piece)
            self._held += len(piece)
        if self._size > self._longest and self._held > 2 * KEPT:
            held = b"".join(self._open)
            self._head = self._head or held[:KEPT]
            self._open = [held[-KEPT:]]
            self._held = KEPT

    def _whole(self) -> bytes:
        line, head = b"".join(self._open), self._head
        self._head = b""
        return ShortenedLine(head, line, self._size) if head else line

    def flush(self) -> list[bytes]:
        """Return the last line, if the stream ended without a newline."""
        line, self._open, self._size = self._whole(), [], 0
        return [line] if line else []


class Unframed:
    """The chunks as they come."""

    def push(self, chunk: bytes) -> list[bytes]:
        return [chunk]

    def flush(self) -> list[bytes]:
        return []


def framer_of(parser: EventParser) -> Framer:
    return LineFramer(ESCAPED * max(parser.longest, LONGEST_REPLY)) if parser.by_lines else Unframed()


_TEXTS = (TextDelta, Text, Thinking)
_NO_SIGNS = (Retry, Note)  # events that are no signs of life
_ACTED_ON = (Retry, Done, VendorSession)
SILENT = "silent for"
UNSAID = "did not report at once that its turn is over"
NO_LIMITS: Mapping[FailureKind, int] = MappingProxyType({})
INTERRUPTED = Failure(FailureKind.INTERRUPTED, "was interrupted")
TAIL_BYTES = 64 * 1024
TICK_S = 0.1  # the wait before a clock is judged: output of that time is read meanwhile
ANSWERED_S = 0.7  # silence after a complete answer; Claude's terminal event comes within 0.1 s (2.1.197 to 2.1.330)
LATE_S = 0.5  # a check that comes later than this may find unread output


class Clocks(Struct, frozen=True):
    """The limits of a turn, in seconds. Each failure says which clock ran out.

    `exit_s` is from the CLI's own terminal event to its exit; after `note_s` of silence there is a note.
    """

    first_byte_s: float
    stall_s: float
    total_s: float
    exit_s: float = 10.0
    note_s: float = 60.0


NO_CLOCKS = Clocks(math.inf, math.inf, math.inf, math.inf, math.inf)  # a recording's own have run out already


class Alarm:
    """Ends the sleep of a task. For the event loop that runs."""

    def __init__(self) -> None:
        self._loop, self._rung = asyncio.get_running_loop(), asyncio.Event()

    def ring(self) -> None:
        """End the sleep, or the next one."""
        self._rung.set()

    def ring_from_outside(self) -> None:
        """Ring in another thread, or in the handler of a signal."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.ring)

    async def sleep(self, seconds: float) -> None:
        """Sleep so long (infinity: without an end), or until it rings."""
        later = None if math.isinf(seconds) else self._loop.call_later(seconds, self.ring)
        try:
            await self._rung.wait()
        finally:
            self._rung.clear()
            if later:
                later.cancel()


class Stopper:
    """Stops a turn from outside: `request` once for the soft way, twice for SIGKILL at once.

    After a first request with `only_turn`, whatever waits behind the turn still runs. Any thread and a signal's handler
    may request it. A request also reaches the stoppers `within` this one; each stops one turn of several.
    `why` is the failure of the turn that it stops. The first request sets it; by default a person interrupted the turn.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.why = INTERRUPTED
        self.only_turn = False
        self._alarms: tuple[Alarm, ...] = ()
        self._within: tuple[Stopper, ...] = ()

    def request(self, why: Failure = INTERRUPTED, *, only_turn: bool = False) -> None:
        if not self.asked:
            self.why = why
        self.asked += 1
        self.only_turn = only_turn and self.asked == 1
        for alarm in self._alarms:
            alarm.ring_from_outside()
        for inner in self._within:
            inner.request(why, only_turn=only_turn)

    @contextmanager
    def within(self) -> Iterator[Stopper]:
        """Make a stopper of one turn, which this one stops, too."""
        inner = Stopper()
        inner.asked, inner.why = self.asked, self.why
        self._within += (inner,)
        try:
            yield inner
        finally:
            self._within = tuple(other for other in self._within if other is not inner)

    @contextmanager
    def alarm(self) -> Iterator[Alarm]:
        """Make an alarm that rings at each request."""
        alarm = Alarm()
        self._alarms += (alarm,)
        try:
            yield alarm
        finally:
            self._alarms = tuple(other for other in self._alarms if other is not alarm)

    def reset(self) -> None:
        """Let further turns run."""
        self.asked, self.only_turn = 0, False

    async def sleep(self, seconds: float) -> None:
        """Sleep, at most until a stop is requested."""
        with self.alarm() as alarm:
            if not self.asked:
                await alarm.sleep(seconds)


class TurnEnd(Struct):
    """Everything known about a finished turn."""

    text: str
    """The reply, or the partial text when the turn failed."""
    failure: Failure | None
    exit: Exit
    interrupted: bool = False
    """Whether it was stopped from outside, by a person or because it is not needed any more."""
    first_byte_s: float | None = None
    usage: Usage | None = None
    denied: tuple[Denied, ...] = ()
    vendor_session: str | None = None
    model: str | None = None
    version: str | None = None
    """The version of the CLI, as its output or its recording tells it; "" where a recording has none."""
    stderr_tail: str = ""
    untold: bool = False
    """Whether its process ended by itself, and the CLI told neither an end of the turn nor an error."""
    own_cost: bool = False
    """As in `Verdict`."""
    last_row: str = ""
    """As in `Verdict`."""


class _Facts(Struct):
    """The facts that the events of a turn have reported so far."""

    open_tools: set[str] = field(default_factory=set)
    denied: list[Denied] = field(default_factory=list)
    usage: Usage | None = None
    vendor_session: str | None = None
    model: str | None = None
    version: str | None = None
    done: bool | None = None  # what the CLI's own terminal event said, once it came
    error: bool = False
    trouble: str | None = None  # the last retry or error, until the agent goes on

    def learn(self, event: AgentEvent) -> None:
        if isinstance(event, _TEXTS):
            self.trouble = None
        else:
            match event:
                case ToolCall(id=tool):
                    self.trouble = None
                    self.open_tools.add(tool)
                case ToolResult(id=tool):
                    self.open_tools.discard(tool)
                case Denied():
                    self.denied.append(event)
                case Usage():
                    self.usage = event
                case VendorSession(id=session):
                    self.vendor_session = session
                case Started(model=model, version=version):
                    self.model, self.version = model or self.model, version or self.version
                case Error(text=text):
                    self.error, self.trouble = True, one_line(text)
                case Retry(reason=reason):
                    self.trouble = one_line(reason)
                case Done(ok=ok):
                    self.done = ok


class _Turn:
    def __init__(
        self,
        process: Running,
        parser: EventParser,
        clocks: Clocks,
        stopper: Stopper,
        emit: Callable[[Sequence[AgentEvent]], None],
        patience: Mapping[FailureKind, int],
        resumes: str | None,
    ) -> None:
        self.resumes = resumes
        self.patience = {FailureKind.LOGIN: 1, **patience}
        self.retries: Counter[FailureKind] = Counter()
        self.process, self.parser, self.clocks, self.stopper, self.emit = process, parser, clocks, stopper, emit
        self.facts = _Facts()
        self.framers: dict[str, Framer] = {"out": framer_of(parser), "err": LineFramer()}
        self.tail = b""
        self.started = self.alive = self.noted = time.monotonic()
        self.first_byte: float | None = None
        self.cut: Failure | None = None  # why teamchat ended it, if it did
        self.failed_before_cut = False
        self.stops_sent = 0
        self.doubted = False  # whether the turn is over, if the CLI does not report it
        self.broken: BaseException | None = None  # what `emit` or the watch raised
        self.rests_until = -math.inf  # the watch sleeps until then

    async def run(self) -> TurnEnd:
        with self.stopper.alarm() as alarm:
            watch = asyncio.ensure_future(self._watch(alarm))
            watch.add_done_callback(self._watch_ended)
            try:
                async with aclosing(self.process.chunks()) as chunks:
                    async for chunk in chunks:
                        if isinstance(chunk, CutShort):
                            self._was_cut(chunk.why)
                        else:
                            self._take(chunk)
                            if self._due() < self.rests_until:
                                alarm.ring()
            finally:
                watch.cancel()
            for stream, framer in self.framers.items():
                self._lines(stream, framer.flush())
            end = self._end()
            if self.broken:
                raise self.broken
            return end

    def _was_cut(self, why: Failure) -> None:
        """Remember why the turn was cut short, now or in the recording."""
        if self.cut is None:
            self.cut, self.failed_before_cut = why, self.facts.done is False

    def _take(self, chunk: Chunk) -> None:
        lines = self.framers[chunk.stream].push(chunk.data)
        if chunk.stream == "err":
            self.tail = (self.tail + chunk.data)[-TAIL_BYTES:]
        else:
            if self.first_byte is None:
                self.first_byte = chunk.at
            if not lines:
                self._lives()  # a piece of a long line
        self._lines(chunk.stream, lines)

    def _lines(self, stream: str, lines: Sequence[bytes]) -> None:
        """Take lines that were read together."""
        if stream == "out":
            events = tuple(self.parser.feed(*lines))
        else:
            events = tuple(event for line in lines for event in self.parser.feed_stderr(line))
        # CLIs print many lines without an event while they think or write a tool's input; stderr is only noise
        signs = len(events) - sum(isinstance(event, _NO_SIGNS) for event in events)
        if signs or (stream == "out" and len(events) < len(lines)):  # no line has two retries or notes
            self._lives()
        for event in events:
            self.facts.learn(event)
        self._emit(events)
        for event in events:
            if isinstance(event, _ACTED_ON):
                self._act(event)

    def _act(self, event: AgentEvent) -> None:
        match event:
            case Retry():
                # Count a retry. A rejected login stays rejected, but Claude retries it for three minutes.
                self.retries[event.kind] += 1
                if self.retries[event.kind] == self.patience.get(event.kind):
                    self._end_process(Failure(event.kind, event.reason))
            case Done():
                self.process.over()
            case VendorSession(id=session) if self.resumes not in (None, session):
                # Codex does so silently (observed at 0.169.0): it would answer without its memory
                self._end_process(Failure(FailureKind.GONE, "began a new session instead of continuing its own"))

    def _lives(self) -> None:
        self.alive = self.noted = time.monotonic()

    def _emit(self, events: Sequence[AgentEvent]) -> None:
        """Tell the caller, unless that failed before: then the agent is killed, and `run` raises that error."""
        if self.broken or not events:
            return
        try:
            self.emit(events)
        except Exception as error:  # noqa: BLE001 (raised again at the end of the turn)
            self.broken = error
            self.process.stop(hard=True)

    async def _watch(self, alarm: Alarm) -> None:
        while True:
            self.rests_until = math.inf if self.cut or self.process.exit else self._due()
            if not self._is_to_stop():
                # no tick while nothing is due: the agent's work makes each tick expensive
                await alarm.sleep(max(self.rests_until - time.monotonic(), 0))
            self.rests_until = -math.inf
            before = time.monotonic()
            if not self._is_to_stop():
                await alarm.sleep(TICK_S)
            now = time.monotonic()
            if self._is_to_stop():
                self.stops_sent = self.stopper.asked
                self._end_process(self.stopper.why, hard=self.stopper.asked > 1)
            elif self.cut is None and self.process.exit is None and now - before < LATE_S:
                self._look(now)

    def _watch_ended(self, watch: asyncio.Task[None]) -> None:
        """Kill an agent that nobody watches any more: neither a clock nor Ctrl-C would end it."""
        if not watch.cancelled() and (error := watch.exception()):
            self.broken = self.broken or error
            self.process.stop(hard=True)

    def _is_to_stop(self) -> bool:
        return self.stopper.asked > self.stops_sent

    def _due(self) -> float:
        """Find the earliest time at which there can be something to do."""
        due = min(self.noted + self.clocks.note_s, *(since + limit for since, limit, _ in self._clocks()))
        return min(due, self.alive + ANSWERED_S) if self._may_be_over() else due

    def _may_be_over(self) -> bool:
        return self.parser.answered and not self.doubted and self.facts.done is None

    def _look(self, now: float) -> None:
        run_out = (words.format(limit_in_words(limit)) for since, limit, words in self._clocks() if now - since > limit)
        if reason := next(run_out, None):
            last = f"; the last it said: {self.facts.trouble}" if self.facts.trouble else ""
            self._end_process(Failure(FailureKind.TIMEOUT, reason + last))
        elif now - self.noted > self.clocks.note_s:
            waits, said = self.parser.at_end and self.first_byte is None, self.noted > self.started
            self.noted = now
            if not (waits and said):  # such a program may take half an hour
                self._emit((Note(NOTHING_YET if waits else f"{SILENT} {now - self.alive:.0f} s"),))
        elif self._may_be_over() and now - self.alive > ANSWERED_S:
            self.doubted = True
            if self.process.end_input():
                self._emit((Note(f"{UNSAID}: its process is kept for no other turn"),))

    def _clocks(self) -> Iterator[tuple[float, float, str]]:
        """List the clocks that run: since when, for how many seconds, and the words for when they have run out."""
        clocks = self.clocks
        yield self.started, clocks.total_s, "was still running after {} (its timeout)"
        if self.first_byte is None:
            yield self.started, clocks.first_byte_s, "wrote nothing in its first {} (first_byte)"
        elif self.facts.done is not None:
            yield self.alive, clocks.exit_s, "did not exit within {} after its result"
        elif not self.facts.open_tools:
            yield self.alive, clocks.stall_s, "was silent for {} (stall)"

    def _end_process(self, why: Failure, *, hard: bool = False) -> None:
        """End it for that reason.

        A process that has ended by itself is judged by its own end: all that it wrote is still read, however long
        telling it takes. A hard stop leaves the rest unread.
        """
        if self.process.exit and not hard and why.kind is not FailureKind.GONE:
            return
        self._was_cut(why)
        self.process.stop(why, hard=hard)

    def _end(self) -> TurnEnd:
        ended = self.process.exit or Exit(-9, seconds=time.monotonic() - self.started)
        if ended.over_limit:
            reason = f"wrote more than {ended.over_limit >> 20} MiB and was stopped"
            self.cut = self.cut or Failure(FailureKind.AGENT, reason)
        tail = self.tail.decode(errors="replace")
        verdict = _within(self.parser.longest, self.parser.finish(ended.code, tail))
        failure = self._failure(verdict)
        if self.cut and failure is None:
            self._emit((Note(f"{self.cut.reason}, but had answered in full"),))
        return TurnEnd(
            text=verdict.text,
            failure=failure,
            exit=ended,
            interrupted=self.cut is not None and self.cut.kind in (FailureKind.INTERRUPTED, FailureKind.STOPPED),
            first_byte_s=self.first_byte,
            usage=self.facts.usage or verdict.usage,
            denied=tuple(self.facts.denied),
            vendor_session=self.facts.vendor_session,
            model=self.facts.model,
            version=self.facts.version or ended.version,
            stderr_tail=tail,
            untold=self.cut is None and self.facts.done is None and not self.facts.error,
            own_cost=verdict.own_cost,
            last_row=verdict.last_row,
        )

    def _failure(self, verdict: Verdict) -> Failure | None:
        """Decide why the turn failed: teamchat's reason for ending it takes precedence over the agent's last output.

        There are three exceptions: an answer that the CLI reported as complete, a failure that it reported earlier, and
        its own words about the failure for whose retries it was ended. A turn in another vendor session always fails.
        """
        if self.cut is None:
            return verdict.failure
        if self.cut.kind is FailureKind.GONE:
            return self.cut
        if verdict.failure is None:
            return None if self.facts.done else self.cut
        retried = self.cut.kind in self.patience  # then its own words are best, with a hint
        same = retried and self.cut.kind is verdict.failure.kind
        return verdict.failure if same or self.failed_before_cut else self.cut


def _within(longest: int, verdict: Verdict) -> Verdict:
    """Limit the reply of a judgement. One of more than `longest` bytes fails, and keeps its beginning and its end."""
    if not verdict.cut and len(verdict.text.encode(errors="replace")) <= longest:
        return verdict
    over = f"wrote a reply of more than {longest:,} bytes; limits.reply in the team file allows no longer one"
    return replace(verdict, text=cut(verdict.text), failure=verdict.failure or Failure(FailureKind.AGENT, over))


def limit_in_words(value: float) -> str:
    """Write a number of seconds as `10 s` or `30 min`."""
    minutes, seconds = divmod(value, 60)
    return f"{minutes:.0f} min" if minutes and not seconds else f"{value:g} s"


async def run_turn(
    process: Running,
    parser: EventParser,
    clocks: Clocks,
    stopper: Stopper,
    emit: Callable[[Sequence[AgentEvent]], None],
    patience: Mapping[FailureKind, int] = NO_LIMITS,
    resumes: str | None = None,
) -> TurnEnd:
    """Follow `process` to its end and judge it; `emit` gets all events; events read together come together.

    `patience` is how many retries of its own, by their kind, the CLI may report before it is ended.
    It is also ended when it continues another vendor session than `resumes`.
    """
    return await _Turn(process, parser, clocks, stopper, emit, patience, resumes).run()
