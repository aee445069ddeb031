"""A turn on a host, which looks here like a process whose output the engine brings.

The output stands in the turn's folder as that of a process of this machine does, so that watching or recovering a turn
needs to know of no host.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from signal import SIGTERM
from typing import BinaryIO, Protocol, Self

from msgspec.structs import replace

from teamchat.core.checkpoint.packs import CheckpointPack
from teamchat.core.dispatch.dispatch import Away, Dispatch, HostSeen
from teamchat.core.dispatch.order import Began, Ended, Order, Output, Piece, Unreadable
from teamchat.core.errors import CheckpointFailed, HostUnavailable
from teamchat.core.made import made_of
from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.child.guardian import boot_time
from teamchat.runners.child.process import make_private
from teamchat.runners.child.running import FIRST_LINE, Chunk, CutShort, Exit, Launch, Running
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint

AGAIN_S = 0.5  # between two tries to reach a database that is away
REST_LOOK_S = 0.1  # between two looks for what a host says of a cancelled turn
LATE_BEATS = 3  # missed beats of a host before a person is told of the wait
MOST_MISSED = 3
ORDERED = "ordered"  # in a turn's folder: its order was given to the database
GIVES_UP_S = 20.0  # how long to wait after a stop if neither the host nor the database answers


class Returns(Protocol):
    """The files of a turn at home."""

    def bring(self, packed: CheckpointPack) -> None:
        """Write the turn's output. Raises `CheckpointFailed`."""
        ...

    def forget(self) -> None:
        """Send all files again with the next turn. Raises `CheckpointFailed`."""
        ...


class _Over(Exception):
    """The turn is over for home, and why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class HostedTurn:
    """The turn `name` on `host`. `say` tells a person about its waits. Without an `order` it was ordered before.

    `began` is the host's report of its start. It is `lost` if the host went away while it ran, as `gone` says. It was
    `refused` if a piece of it cannot be read or is not signed. With `returns` its files went there, and `changes` finds
    the changes here once they are back.
    """

    def __init__(
        self, dispatch: Dispatch, name: str, host: str, say: Callable[[str], None], order: Order | None = None
    ) -> None:
        self.name, self.host = name, host
        self.began: Began | None = None
        self.lost, self.gone = False, ""
        self.refused = False
        self.exit: Exit | None = None
        self.returns: Returns | None = None
        self.changes: Callable[[], FileChanges | NoCheckpoint] | None = None
        self._dispatch, self._say, self._order = dispatch, say, order
        self._folder = Path()
        self._started = time.monotonic()
        self._asked: Failure | None = None  # why it is to stop
        self._asked_at = 0.0
        self._hard = False
        self._cancelling: asyncio.Task[None] | None = None
        self._looked = time.monotonic()
        self._woke = boot_time()  # the time of the last look
        self._back = -math.inf  # when the database answered again after it was away
        self._told: set[str] = set()
        self._doubted = False  # whether its host looked as if it had gone, at the last look
        self._missed = 0  # looks at which its host did not name it among what it carries out

    def limit(self, longest: int, patience: Mapping[FailureKind, int]) -> None:
        """Limit its reply to `longest` bytes, and its CLI's retries of each kind to the given numbers."""
        self._order = self._order and replace(self._order, longest=longest, patience=dict(patience))

    def turn(self, what: Launch, /) -> Running:
        """Follow it from its beginning, with its output in the launch's folder."""
        self.follow_in(what.folder)
        tree = what.tree
        if tree and not isinstance(tree, NoCheckpoint):
            self.changes = partial(tree.changes, what.cwd)
        return self

    def follow_in(self, folder: Path) -> None:
        """Keep its output in that folder, without output that is already there."""
        self._folder, self._started = folder, time.monotonic()

    def over(self) -> None:
        """Do nothing: its process ends on the host."""

    def end_input(self) -> bool:
        return False

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        """Have the host stop it. A hard stop waits for nothing more: the host ends it by itself."""
        self._hard = self._hard or (hard and self._asked is not None)
        if self._asked is None:
            self._asked = why or Failure(FailureKind.INTERRUPTED, "was interrupted")
            self._asked_at = time.monotonic()
            self._cancelling = asyncio.ensure_future(self._cancel())

    async def _cancel(self) -> None:
        while True:
            try:
                await self._dispatch.cancel(self.name)
            except Away:
                await asyncio.sleep(AGAIN_S)
            else:
                return

    async def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        make_private(self._folder)
        with _Files(self._folder) as files:
            ended = Exit(-SIGTERM)
            try:
                async for piece in self._pieces():
                    await self._check(piece, files)
                    match piece:
                        case Began():
                            self.began = self.began or piece
                        case Output() if new := files.add(piece):
                            yield Chunk(piece.stream, new, piece.at)
                        case Ended(refused=Failure() as refused):
                            if piece.lacks and self.returns:
                                await asyncio.to_thread(self.returns.forget)
                            yield CutShort(refused, self._seconds())
                        case Ended():
                            self.began = piece.began
                            if piece.cut:
                                yield CutShort(piece.cut, piece.cut_at)
                            changed, lost = await self._changed(piece)
                            if lost:
                                yield CutShort(lost, piece.seconds)
                            ended = replace(self._ended(piece), files=changed)
            except _Over as over:
                yield CutShort(over.failure, self._seconds())
                ended = Exit(-SIGTERM, seconds=self._seconds())
            finally:
                if self.exit is None:
                    self.exit = ended
                if self._cancelling:
                    self._cancelling.cancel()

    async def _check(self, piece: Piece, files: _Files) -> None:
        """Raise `_Over` for an end of another turn, or of other output than has come."""
        if not isinstance(piece, Ended):
            return
        if (piece.turn, piece.host) != (self.name, self.host):
            raise await self._refused("the end of another turn")
        if piece.refused is None and (piece.out, piece.err) != files.digests:
            raise await self._refused("other output than its end says")

    async def _refused(self, what: str) -> _Over:
        """Say why the turn is over for home. Its agent is stopped, and all further pieces are ignored."""
        self.refused = True
        with suppress(Away):
            await self._dispatch.cancel(self.name)
        return _Over(Failure(FailureKind.AGENT, f"sent from {self.host} {what}"))

    async def _changed(self, end: Ended) -> tuple[FileChanges | NoCheckpoint | None, Failure | None]:
        """Bring the files back, and return what changed in them, or why they are not back: a failure of the turn."""
        if self.returns is None:
            return None, None
        lost = None
        if end.stays:
            self._say(f"stays on {self.host}: {', '.join(end.stays)}")
        if end.files is None:
            why = end.unsent or "it does not say why"
            lost = Failure(FailureKind.AGENT, f"has changed files that stay on {self.host}: {why}")
        else:
            try:
                await asyncio.to_thread(self.returns.bring, end.files)
            except CheckpointFailed as failed:
                lost = Failure(FailureKind.AGENT, str(failed), failed.hint)
        if lost:
            return NoCheckpoint(lost.reason), lost
        return (await asyncio.to_thread(self.changes) if self.changes else None), None

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _ended(self, end: Ended) -> Exit:
        began = self.began
        return made_of(
            Exit,
            end,
            code=end.code if end.code is not None else -SIGTERM,
            cwd=Path(began.cwd) if began else None,
            version=(began.version or "") if began else None,
            login=began.login if began else None,
            files=None,
        )

    async def _pieces(self) -> AsyncIterator[Piece]:
        """Yield the pieces up to the end of the turn. Raises `_Over`."""
        offset, order = 0, self._order
        while True:
            try:
                if order:
                    await self._dispatch.enqueue(order)
                    (self._folder / ORDERED).touch(0o600)
                    order = None
                async for piece in self._dispatch.follow(self.name, offset):
                    if piece is None:
                        await self._look()
                        continue
                    offset, self._missed, self._doubted = offset + 1, 0, False
                    self._told = {key for key in self._told if not key.startswith("away")}
                    yield piece
                    if isinstance(piece, Ended):
                        return
                async for piece in self._after_stream():
                    yield piece
                    if isinstance(piece, Ended):
                        return
            except Away as away:
                self._give_up_after_stop()
                self._say_once(f"away: {str(away).partition(':')[0]}", f"{away}; waiting for it")
                await asyncio.sleep(AGAIN_S)
                self._back = time.monotonic()
            except HostUnavailable as error:
                raise _Over(Failure(FailureKind.MISSING, f"could not be ordered: {error}", error.hint)) from None
            except Unreadable as error:
                raise await self._refused(str(error)) from None

    async def _after_stream(self) -> AsyncIterator[Piece]:
        """Yield what follows when the engine expects no more of the stream: a cancelled turn's rest, or nothing."""
        turn, host = self.name, self.host
        if rest := await self._dispatch.rest(turn):
            for piece in rest:
                yield piece
            return
        state = await self._dispatch.state(turn)
        if state is None:
            raise _Over(self._lost(f"is not known to the database (TEAMCHAT_DATABASE); {host} may have run it"))
        if state.over and not state.cancelled:
            raise _Over(self._lost(f"has ended on {host} without saying how"))
        if state.cancelled and self.began is None and state.executor is None:
            raise _Over(self._asked or Failure(FailureKind.INTERRUPTED, "was cancelled before it began"))
        await self._look()
        await asyncio.sleep(REST_LOOK_S)

    def _lost(self, words: str) -> Failure:
        self.lost = True
        return Failure(FailureKind.INTERRUPTED, words)

    def _give_up_after_stop(self) -> None:
        """Raise `_Over` if a person waits no longer for the end of a stopped turn."""
        if self._asked and (self._hard or time.monotonic() - self._asked_at > GIVES_UP_S):
            raise _Over(self._asked)

    async def _look(self) -> None:
        """See whether its host is there still. Raises `_Over`."""
        self._give_up_after_stop()
        clock, now = self._dispatch.clock, time.monotonic()
        before, self._woke = self._woke, boot_time()
        if self._woke - before > clock.lease_s:  # this machine, or this process, has slept
            self._back = now
        if now - self._looked < clock.beat_s:
            return
        self._looked = now
        host = next((seen for seen in await self._dispatch.hosts() if seen.name == self.host), None)
        if now - self._back < clock.dead_s:
            return  # after an outage, or a sleep of the database too, everybody looks dead
        if host is None or self.name in host.running:
            self._missed = 0
        elif host.seen_s < 2 * clock.beat_s:  # an older row may be of before the turn began
            self._missed += 1
        if self.began:
            await self._look_at_running(host, self.began.executor)
        else:
            await self._look_at_waiting(host)

    async def _look_at_running(self, host: HostSeen | None, executor: str) -> None:
        gone = _gone(host, self._dispatch.clock.dead_s, executor)
        if gone is None and self._missed > MOST_MISSED:
            gone = "runs it no more, and says no end of it"
        if gone is None:
            self._doubted = False
        elif not self._doubted:  # it may have written its end and left since: that is read first
            self._doubted, self._looked = True, -math.inf
        else:
            await self._dispatch.cancel(self.name)  # should it be there still, it can say nothing more
            self.gone = gone
            raise _Over(self._lost(f"was interrupted: {self.host} {gone}"))

    async def _look_at_waiting(self, host: HostSeen | None) -> None:
        clock = self._dispatch.clock
        gone = _gone(host, clock.dead_s, None)
        state = await self._dispatch.state(self.name)
        if state is None or state.waits:
            self._missed = 0
        elif gone is None and host and state.executor not in (None, host.executor):
            gone = "ended before the turn began"  # the process that took it is not the one that is there
        elif gone is None and self._missed > MOST_MISSED:
            gone = "took it and does not run it"
        if gone is None:
            if host and host.seen_s > LATE_BEATS * clock.beat_s:
                self._say_once("late", f"waiting for {self.host}, {host.absence}")
            elif state and state.waits and host and host.busy > host.jobs:
                self._say_once("waits", f"waiting for a free job on {self.host}")
            return
        await self._dispatch.cancel(self.name)
        if await self._has_begun():
            return  # and the next look finds its end
        raise _Over(Failure(FailureKind.MISSING, f"waited for {self.host}: {gone}"))

    async def _has_begun(self) -> bool:
        """Whether the agent of a cancelled turn has started: otherwise it never will."""
        async for piece in self._dispatch.follow(self.name, 0):
            if piece is not None:
                return True
        return False

    def _say_once(self, key: str, text: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._say(text)


def _gone(host: HostSeen | None, dead_s: float, executor: str | None) -> str | None:
    """Say why the host, or the process `executor` of it, is no longer there; None if it is."""
    if host is None:
        return "has left"
    if host.seen_s > dead_s:
        return host.absence
    if executor is not None and host.executor != executor:
        return "was started anew"
    return None


class _Files:
    """The output of the turn in its folder, as a process writes it. Text that is already there is not written again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, BinaryIO] = {}
        self._given = {"out": 0, "err": 0}  # bytes given to the reader
        self._digests = {"out": sha256(), "err": sha256()}  # digests of these bytes

    def __enter__(self) -> Self:
        for stream, name, head in (("out", "stdout", FIRST_LINE), ("err", "stderr", b"")):
            path = self._folder / name
            if not path.exists():
                new = path.with_suffix(".new")  # nobody who follows the turn finds half of the first line
                new.write_bytes(head)
                new.chmod(0o600)
                new.replace(path)
            self._files[stream] = path.open("ab", buffering=0)
        return self

    def add(self, piece: Output) -> bytes:
        """Write the new part of a piece. Returns the part that its reader has not had."""
        file, given = self._files[piece.stream], self._given[piece.stream]
        head = len(FIRST_LINE) if piece.stream == "out" else 0
        stands = os.fstat(file.fileno()).st_size - head
        end = piece.begins + len(piece.data)
        if piece.begins <= stands < end:
            file.write(piece.data[stands - piece.begins :])
        if not piece.begins <= given < end:
            return b""
        self._given[piece.stream] = end
        new = piece.data[given - piece.begins :]
        self._digests[piece.stream].update(new)
        return new

    @property
    def digests(self) -> tuple[str, str]:
        """The SHA-256 of each stream as given to the reader."""
        return self._digests["out"].hexdigest(), self._digests["err"].hexdigest()

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()
