"""Turns as recordings: all that crossed the process boundary, kept while a real agent runs and played back without one.

A turn is found by its member, its agent type, its system text and its stdin, and by its number among equal ones. So a
replay can only give an answer to the prompt that it answered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.receipt import Ran
from teamchat.core.turn.watching import Wrapped
from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.child.running import Chunk, CutShort, Exit, Identity, Launch, Running, SpawnFailed, Stays
from teamchat.runners.child.supervisor import Stopper

LONGEST_PAUSE_S = 600.0  # the longest pause of a replay, however long the recorded silence was
LOOK_S = 0.005  # how often a turn checks whether it may begin or end
PATIENCE = 20  # looks at which nothing happens, until what was recorded before is no longer expected
STOPPED = -15  # the exit code of a stopped replayed agent: ended by SIGTERM


class NotStarted(Struct, frozen=True):
    """Why a turn did not start: `kind` is the caller's name for such errors."""

    kind: str
    text: str
    hint: str | None = None


SPAWN = "spawn"  # the kind of a `NotStarted` by the operating system


class RecordedTurn(Struct, frozen=True):
    """One turn as it crossed the process boundary."""

    identity: Identity
    stdin: bytes
    argv: tuple[str, ...]
    env_names: tuple[str, ...]
    """The names of the variables that it was given."""
    chunks: tuple[Chunk, ...]
    exit: Exit | None
    """None where `error` says why it was not even started."""
    cut: CutShort | None = None
    """The reason why it ended before its own end."""
    error: NotStarted | None = None
    at: float = 0.0
    """When it began, in seconds from the beginning of its run."""
    ran: tuple[Ran, bool] | None = None
    """Where it ran if that was another machine, and whether that machine told its end."""

    @property
    def key(self) -> tuple[Identity, bytes]:
        return self.identity, self.stdin


class NotRecorded(Exception):
    """No recording is left for this turn."""

    def __init__(self, identity: Identity, stdin: bytes) -> None:
        super().__init__(f"no recording of this turn of {identity.member}")
        self.identity, self.stdin = identity, stdin


class Recorder:
    """Hands every finished turn that `start` starts to `keep`. Its run begins when it is made.

    A turn begins with the last time that it `begins`: its process may start after that of a later turn, because git
    looks at their files first.
    """

    def __init__(self, start: Callable[[Launch], Running], keep: Callable[[RecordedTurn], None]) -> None:
        self._start, self._keep = start, keep
        self._began = time.monotonic()
        self._begun: dict[tuple[Identity, bytes], float] = {}

    def now(self) -> float:
        """Return the seconds since its run began."""
        return time.monotonic() - self._began

    def begins(self, turn: tuple[Identity, bytes]) -> None:
        self._begun[turn] = time.monotonic()

    def __call__(self, what: Launch) -> Running:
        started = time.monotonic()
        key = what.identity, nameless(what.stdin, what.scratch)
        turn = RecordedTurn(
            *key, normalised(what), tuple(sorted(what.env)), (), None, at=self._begun.pop(key, started) - self._began
        )
        try:
            return Recording(self._start(what), what, turn, started, self._keep)
        except SpawnFailed as error:
            self._keep(replace(turn, error=NotStarted(SPAWN, str(error))))
            raise


class Recording(Wrapped):
    """A turn that is recorded while it runs."""

    def __init__(
        self, process: Running, what: Launch, turn: RecordedTurn, started: float, keep: Callable[[RecordedTurn], None]
    ) -> None:
        super().__init__(process)
        self._what, self._turn, self._started, self._keep = what, turn, started, keep

    async def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        seen = []
        async with aclosing(self.process.chunks()) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, CutShort):  # a playback that is recorded again
                    self.cut = self.cut or chunk
                else:
                    seen.append(chunk)
                yield chunk
        if end := self.process.exit:
            version = self._what.version if end.version is None else end.version
            login = self._what.login if end.login is None else end.login
            exit_ = replace(end, cwd=end.cwd or self._what.cwd, version=version, login=login)
            again = self.process.turn.ran if isinstance(self.process, Playback) else None
            ran = again or (self._what.elsewhere and _ran(self._what.elsewhere))
            self._keep(replace(self._turn, chunks=tuple(seen), exit=exit_, cut=self.cut, ran=ran))


def _ran(elsewhere: Stays) -> tuple[Ran, bool] | None:
    from teamchat.core.dispatch.hosted import HostedTurn
    from teamchat.core.turn.hosting import ran_on

    return ran_on(elsewhere) if isinstance(elsewhere, HostedTurn) else None


def nameless(stdin: bytes, scratch: Path | None) -> bytes:
    """Replace the turn's own folder in the prompt, where the paths of images contain it."""
    return stdin.replace(str(scratch).encode(), b"$TMPDIR") if scratch else stdin


def normalised(what: Launch) -> tuple[str, ...]:
    """Return the command without the folders of one machine and one turn."""
    program, *words = what.argv
    for folder, name in ((what.scratch, "$TMPDIR"), (what.cwd, "."), (what.env.get("HOME"), "~")):
        if folder and str(folder) != "/":
            words = [word.replace(str(folder), name) for word in words]
    return (Path(program).name, *words)


class Player:
    """A launcher that starts nothing: it plays recordings, `speed` times as fast (infinity: without waiting).

    `clock` is when the last of them ended, in seconds from the beginning of the recorded run. Raises `NotRecorded`
    for a turn without a recording; it never starts a live one.
    """

    lenient = False  # about what differs from the recording

    def __init__(self, turns: Iterable[RecordedTurn], speed: float) -> None:
        self.waiting = list(turns)
        self.clock = 0.0
        self._speed = speed
        self._coming: list[RecordedTurn] = []
        self._ends: list[float] = []  # when the playing turns end
        self._playing = 0  # turns that do not wait for their end

    def __call__(self, what: Launch) -> Running:
        turn = self.take(what.identity, nameless(what.stdin, what.scratch))
        if turn.exit is None:
            raise SpawnFailed(turn.error.text if turn.error else "it was not started")
        self._playing += 1
        self._ends.append(turn.at + turn.exit.seconds)
        return Playback(turn, turn.exit, self._speed, self._ending, self._ended)

    async def passes(self, at: float, seconds: float, stopper: Stopper) -> bool:
        """Let the time of a check pass that began `at`. Return False if a person ends it before."""
        pause = min(seconds, LONGEST_PAUSE_S) / self._speed
        await (stopper.sleep(pause) if pause > 0 else asyncio.sleep(0))
        self.clock = max(self.clock, at + seconds)
        return not stopper.asked

    async def _ending(self, turn: RecordedTurn, end: Exit) -> None:
        """Wait until the turns that began before this one ended have begun: who may begin can depend on its end."""
        self._playing -= 1
        try:
            await self._in_order(turn, turn.at + end.seconds, begins=False)
        finally:
            self._playing += 1

    def _ended(self, turn: RecordedTurn, end: Exit) -> None:
        self._playing -= 1
        self._ends.remove(turn.at + end.seconds)
        self.clock = max(self.clock, turn.at + end.seconds)

    async def comes(self, identity: Identity, stdin: bytes) -> None:
        """Wait for that turn to be the next that begins.

        Turns that began or ended before it in the recorded run go first, if they can still be expected.
        """
        mine = self.find(identity, stdin)
        if mine is None or mine in self._coming:  # one with the same prompt comes, which is played first
            return
        self._coming.append(mine)
        try:
            await asyncio.sleep(0)  # the rest of its group follows
            await self._in_order(mine, mine.at, begins=True)
        finally:
            self._coming.remove(mine)

    async def _in_order(self, mine: RecordedTurn, at: float, *, begins: bool) -> None:
        idle = 0
        while idle < PATIENCE and self._comes_first(mine, at, begins=begins):
            await asyncio.sleep(LOOK_S)
            idle = 0 if self._playing or _earlier(mine, at, self._coming) else idle + 1

    def _comes_first(self, mine: RecordedTurn, at: float, *, begins: bool) -> bool:
        """Whether another turn is to begin or to end before `at`."""
        return _earlier(mine, at, self.waiting) or (begins and any(end <= at for end in self._ends))

    def waits(self, member: str | None = None) -> bool:
        """Whether a turn of that member, or of anybody, was not played yet."""
        return any(member in (None, turn.identity.member) for turn in self.waiting)

    def take(self, identity: Identity, stdin: bytes) -> RecordedTurn:
        """Take the recording of that turn; it is then played. Raises `NotRecorded`."""
        turn = self.find(identity, stdin)
        if turn is None:
            raise NotRecorded(identity, stdin)
        self.waiting.remove(turn)
        return turn

    def find(self, identity: Identity, stdin: bytes) -> RecordedTurn | None:
        """Find the first recording of that turn that was not played yet."""
        return next((turn for turn in self.waiting if turn.key == (identity, stdin)), None)


class LenientPlayer(Player):
    """Plays a member's next recording even if its prompt differs from the recorded one. `met` receives each turn."""

    lenient = True

    def __init__(
        self, turns: Iterable[RecordedTurn], speed: float, met: Callable[[RecordedTurn, Identity, bytes], None]
    ) -> None:
        super().__init__(turns, speed)
        self._met = met

    def take(self, identity: Identity, stdin: bytes) -> RecordedTurn:
        turn = super().take(identity, stdin)
        self._met(turn, identity, stdin)
        return turn

    def find(self, identity: Identity, stdin: bytes) -> RecordedTurn | None:
        mine = identity.member, identity.agent
        same = (turn for turn in self.waiting if (turn.identity.member, turn.identity.agent) == mine)
        return super().find(identity, stdin) or next(same, None)


class Playback:
    """A recorded turn that is played."""

    def __init__(
        self,
        turn: RecordedTurn,
        end: Exit,
        speed: float,
        ending: Callable[[RecordedTurn, Exit], Awaitable[None]],
        ended: Callable[[RecordedTurn, Exit], None],
    ) -> None:
        self.turn, self._end, self._speed, self._ending, self._ended = turn, end, speed, ending, ended
        self._stopped = asyncio.Event()
        self.exit: Exit | None = None

    def over(self) -> None:
        """Do nothing: the recorded end stands."""

    def end_input(self) -> bool:
        return False

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        """Stop, unless `why` repeats the recorded turn's own cut, which comes in its recorded time."""
        cut = self.turn.cut
        again = cut and why and cut.why.kind is why.kind is not FailureKind.INTERRUPTED
        if hard or not again:
            self._stopped.set()

    async def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        at = 0.0
        try:
            for chunk in _in_time(self.turn):
                if await self._stopped_within(chunk.at - at):
                    self.exit = self._end_at(at)
                    return
                at = chunk.at
                yield chunk
            stopped = await self._stopped_within(self._end.seconds - at)
            if not stopped:
                await self._ending(self.turn, self._end)
            self.exit = self._end_at(at) if stopped else self._end
        finally:
            self._ended(self.turn, self._end)

    def _end_at(self, seconds: float) -> Exit:
        """Build the end of a turn that is stopped before its own."""
        return replace(self._end, code=STOPPED, left=(), over_limit=None, seconds=seconds)

    async def _stopped_within(self, seconds: float) -> bool:
        """Let recorded time pass. Return whether the turn was stopped in that time."""
        pause = min(seconds, LONGEST_PAUSE_S) / self._speed
        if not pause > 0:
            await asyncio.sleep(0)
            return self._stopped.is_set()
        try:
            await asyncio.wait_for(self._stopped.wait(), pause)
        except TimeoutError:
            return False
        return True


def _earlier(mine: RecordedTurn, at: float, turns: Iterable[RecordedTurn]) -> bool:
    """Whether another one of the turns began before `at`."""
    return any(turn.at < at and turn is not mine for turn in turns)


def _in_time(turn: RecordedTurn) -> list[Chunk | CutShort]:
    """List the output of the turn, with the cut after the output that came before it."""
    if turn.cut is None:
        return list(turn.chunks)
    after = next((index for index, chunk in enumerate(turn.chunks) if chunk.at > turn.cut.at), len(turn.chunks))
    return [*turn.chunks[:after], turn.cut, *turn.chunks[after:]]
