"""The changes on the disk while a turn ran, also of files that make other tools run something."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future
from contextlib import aclosing, suppress
from functools import partial
from threading import Thread
from typing import TypeVar

from msgspec.structs import replace

from teamchat.core.turn.files_that_run import look
from teamchat.runners.agent_events import Failure
from teamchat.runners.child.running import Chunk, CutShort, Exit, Launch, Running
from teamchat.runners.untrusted.file_changes import NoCheckpoint

T = TypeVar("T")


Compare = Callable[[Exit], Exit]
"""Looks at the disk again and returns the exit with the changes. It may block."""


def watched(what: Launch) -> Callable[[Running], Running]:
    """Return a wrapper for the launch's process, whose exit then has `changed`, `not_all_looked_at` and `files`."""
    compared = [compare for compare in (look(what), _files_of(what)) if compare]
    return (lambda process: _Watched(process, compared)) if compared else (lambda process: process)


def _files_of(what: Launch) -> Compare | None:
    """Return the function that adds the changed files at the end; None if nothing is known of them."""
    match what.tree:
        case None:
            return None
        case NoCheckpoint() as unknown:
            return lambda ended: replace(ended, files=unknown)
        case tree:
            return lambda ended: replace(ended, files=tree.changes(what.cwd))


async def in_thread(work: Callable[[], T]) -> T:
    """Do blocking work in a thread, so that other members continue; do it here if no thread can be started."""
    future: Future[T] = Future()

    def run() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 (raised where the result is awaited)
                future.set_exception(error)

    try:
        Thread(target=run).start()
    except RuntimeError:
        return work()
    return await asyncio.wrap_future(future)


def threadsafe(tell: Callable[[T], object]) -> Callable[[T], None]:
    """Return a function that calls `tell` in the thread of the running loop, or nothing once that is closed."""
    loop = asyncio.get_running_loop()

    def told(what: T) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, what)

    return told


class Wrapped:
    """A process that passes on every call. `cut` is why it was ended early."""

    def __init__(self, process: Running) -> None:
        self.process = process
        self.cut: CutShort | None = None
        self._started = time.monotonic()

    @property
    def exit(self) -> Exit | None:
        return self.process.exit

    def over(self) -> None:
        self.process.over()

    def end_input(self) -> bool:
        return self.process.end_input()

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        if why and self.cut is None:
            self.cut = CutShort(why, time.monotonic() - self._started)
        self.process.stop(why, hard=hard)


class _Watched(Wrapped):
    def __init__(self, process: Running, compared: Sequence[Compare]) -> None:
        super().__init__(process)
        self._compared = compared
        self._exit: Exit | None = None
        self._read = False  # Whether somebody reads it and will compare at its end.

    @property
    def exit(self) -> Exit | None:
        """The exit, without changed files while its output is read: comparing the disk takes long and is done once."""
        ended = self.process.exit
        if self._exit is None and ended and not self._read:
            self._exit = self._compare(ended)
        return self._exit or ended

    def _compare(self, ended: Exit) -> Exit:
        for compare in self._compared:
            ended = compare(ended)
        return ended

    async def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        self._read = True
        try:
            async with aclosing(self.process.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk
            if self._exit is None and (ended := self.process.exit):
                self._exit = await in_thread(partial(self._compare, ended))
        finally:
            self._read = False
