"""Turns as recordings: what crossed the process boundary, kept while a real agent runs and played back without one.

A turn is found by its member, its agent type, its system text and its stdin, and is then the nth of that kind; so a
replay can only ever give an answer to the very prompt that it was an answer to.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from teamchat.runners.process import Chunk, Exit, Identity, Launch, Launcher, Running

STOPPED = -15  # the exit code of a replayed agent that was stopped: ended by SIGTERM


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One turn as it crossed the process boundary; `env_names` are the variables it was given."""

    identity: Identity
    stdin: bytes
    argv: tuple[str, ...]
    env_names: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    exit: Exit

    @property
    def key(self) -> tuple[Identity, bytes]:
        return self.identity, self.stdin


class NotRecorded(Exception):
    """No recording is left for this turn."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(f"no recording of this turn of {launch.identity.member}")
        self.launch = launch


class Recorder:
    """A launcher that hands every finished turn of another one to `keep`."""

    def __init__(self, launcher: Launcher, keep: Callable[[RecordedTurn], None]) -> None:
        self._launcher, self._keep = launcher, keep

    def __call__(self, what: Launch) -> Running:
        return _Recording(self._launcher(what), what, self._keep)


class _Recording:
    def __init__(self, process: Running, what: Launch, keep: Callable[[RecordedTurn], None]) -> None:
        self._process, self._what, self._keep = process, what, keep

    @property
    def exit(self) -> Exit | None:
        return self._process.exit

    def stop(self, *, hard: bool = False) -> None:
        self._process.stop(hard=hard)

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        seen = []
        async with aclosing(self._process.chunks()) as chunks:
            async for chunk in chunks:
                seen.append(chunk)
                yield chunk
        if self._process.exit is not None:
            self._keep(
                RecordedTurn(
                    identity=self._what.identity,
                    stdin=self._what.stdin,
                    argv=normalised(self._what),
                    env_names=tuple(sorted(self._what.env)),
                    chunks=tuple(seen),
                    exit=self._process.exit,
                )
            )


def normalised(what: Launch) -> tuple[str, ...]:
    """The command without the folders of one machine and one turn."""
    program, *words = what.argv
    folders = {str(what.scratch): "$TMPDIR", str(what.cwd): "."} if what.scratch else {str(what.cwd): "."}
    for folder, name in folders.items():
        words = [word.replace(folder, name) for word in words]
    return (Path(program).name, *words)


class Player:
    """A launcher that starts nothing: it plays recordings, `speed` times as fast (infinity: without waiting).

    Raises `NotRecorded` for a turn that no recording is left for; there is never a live call.
    """

    def __init__(self, turns: Iterable[RecordedTurn], speed: float) -> None:
        self._speed = speed
        self._waiting: defaultdict[tuple[Identity, bytes], deque[RecordedTurn]] = defaultdict(deque)
        for turn in turns:
            self._waiting[turn.key].append(turn)

    def __call__(self, what: Launch) -> Running:
        waiting = self._waiting[what.identity, what.stdin]
        if not waiting:
            raise NotRecorded(what)
        return _Playback(waiting.popleft(), self._speed)


class _Playback:
    def __init__(self, turn: RecordedTurn, speed: float) -> None:
        self._turn, self._speed = turn, speed
        self._stopped = asyncio.Event()
        self.exit: Exit | None = None

    def stop(self, *, hard: bool = False) -> None:
        del hard
        self._stopped.set()

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        at = 0.0
        for chunk in self._turn.chunks:
            if await self._stopped_within(chunk.at - at):
                self.exit = Exit(STOPPED, seconds=at)
                return
            at = chunk.at
            yield chunk
        stopped = await self._stopped_within(self._turn.exit.seconds - at)
        self.exit = Exit(STOPPED, seconds=at) if stopped else self._turn.exit

    async def _stopped_within(self, seconds: float) -> bool:
        """Let recorded time pass; True when the turn was stopped meanwhile."""
        try:
            await asyncio.wait_for(self._stopped.wait(), max(seconds, 0.0) / self._speed)
        except TimeoutError:
            return False
        return True
