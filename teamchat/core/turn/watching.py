"""A launcher whose processes tell at their exit what changed on the disk while they ran."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TypeVar

from teamchat.core.turn.files_that_run import look
from teamchat.runners.events import Failure
from teamchat.runners.process.running import Chunk, CutShort, Exit, Launch, Launcher, Running

T = TypeVar("T")
Compare = Callable[[Exit], Exit]
"""Looks at the disk again, and returns the exit with what has changed. It may block."""


def watching(launcher: Launcher) -> Launcher:
    """The launcher whose exits have `changed`, `not_all_looked_at` and `files`."""

    def launch(what: Launch) -> Running:
        compared = [compare for compare in (look(what), _files(what)) if compare]
        return _Watched(launcher(what), compared) if compared else launcher(what)

    return launch


async def in_thread(work: Callable[[], T]) -> T:
    """Do what blocks in a thread, so that other members continue; here where the system starts no more threads."""
    executor = ThreadPoolExecutor(1)  # the one of asyncio needs another thread to be shut down
    try:
        future = executor.submit(work)
    except RuntimeError:
        return work()
    finally:
        executor.shutdown(wait=False)
    return await asyncio.wrap_future(future)


def _files(what: Launch) -> Compare | None:
    tree = what.tree
    return None if tree is None else lambda ended: replace(ended, files=tree.changes(what.cwd))


class _Watched:
    def __init__(self, process: Running, compared: Sequence[Compare]) -> None:
        self._process, self._compared = process, compared
        self._exit: Exit | None = None
        self._read = False  # whether somebody reads it, who compares at its end

    @property
    def exit(self) -> Exit | None:
        """Without what has changed while its output is read: to look at the disk takes long, and is done once."""
        ended = self._process.exit
        if self._exit is None and ended and not self._read:
            self._exit = self._compare(ended)
        return self._exit or ended

    def _compare(self, ended: Exit) -> Exit:
        for compare in self._compared:
            ended = compare(ended)
        return ended

    def over(self) -> None:
        self._process.over()

    def end_input(self) -> bool:
        return self._process.end_input()

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        self._process.stop(why, hard=hard)

    async def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        self._read = True
        try:
            async with aclosing(self._process.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk
            if self._exit is None and (ended := self._process.exit):  # other members continue
                self._exit = await in_thread(partial(self._compare, ended))
        finally:
            self._read = False
