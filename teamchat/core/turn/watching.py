"""A launcher whose processes tell at their exit what changed on the disk while they ran."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.turn.background import Background
from teamchat.core.turn.files_that_run import look
from teamchat.runners.events import Failure
from teamchat.runners.file_changes import FileChanges, NoCheckpoint, WorkTree
from teamchat.runners.process.running import Chunk, CutShort, Exit, Launch, Running

SOON_S = 0.002  # a look at the disk that took less time is repeated without a thread, whose start takes half of it
T = TypeVar("T")
Compare = Callable[[Exit], Exit]
"""Looks at the disk again, and returns the exit with what has changed. It may block."""


def watched(what: Launch) -> tuple[Launch, Callable[[Running], Running]]:
    """The launch, and what makes its process one whose exit has `changed`, `not_all_looked_at` and `files`."""
    began = time.monotonic()
    known, files = look(what), _files_of(what)
    soon = not isinstance(files, _Files) and time.monotonic() - began < SOON_S
    if isinstance(files, _Files):
        what = replace(what, at_exit=files.begin)
    compared = [compare for compare in (known, files) if compare]
    return what, (lambda process: _Watched(process, compared, soon=soon)) if compared else (lambda process: process)


def _files_of(what: Launch) -> Compare | None:
    """What tells the changed files at the end."""
    match what.tree:
        case None:
            return None
        case NoCheckpoint() as unknown:
            return lambda ended: replace(ended, files=unknown)
        case tree:
            return _Files(tree, what.cwd)


async def in_thread(work: Callable[[], T]) -> T:
    """Do what blocks in a thread, so that other members continue; here where the system starts no more threads."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def run() -> T:
        try:
            return work()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(over.set)

    try:
        begun = Background(run)
    except RuntimeError:
        return work()
    await over.wait()
    return begun.result()


class _Files(Struct):
    """Compares the files of a work tree, from the end of a process on: its output may still be read meanwhile."""

    tree: WorkTree
    cwd: Path
    _begun: Background[FileChanges | NoCheckpoint] | None = None

    def begin(self) -> None:
        with contextlib.suppress(RuntimeError):  # the system starts no more threads
            self._begun = Background(self._changes)

    def _changes(self) -> FileChanges | NoCheckpoint:
        return self.tree.changes(self.cwd)

    def __call__(self, ended: Exit) -> Exit:
        return replace(ended, files=self._begun.result() if self._begun else self._changes())


class _Watched:
    def __init__(self, process: Running, compared: Sequence[Compare], *, soon: bool) -> None:
        self._process, self._compared, self._soon = process, compared, soon
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
            if self._exit is None and (ended := self._process.exit):
                compare = partial(self._compare, ended)
                self._exit = compare() if self._soon else await in_thread(compare)  # other members continue
        finally:
            self._read = False
