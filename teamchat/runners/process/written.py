"""Waits until another process writes to a file.

Linux reports it by inotify, which Python's library lacks. Elsewhere, and where the user has no inotify instance left,
the caller looks again after a short wait.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Collection, Sequence
from functools import cache
from threading import Thread

POLL_S = 0.01  # seconds between two looks at files that are not watched
LOOK_S = 0.5  # at watched ones: inotify does not report writes through a mapping, or from another machine
FIRST_WATCHED = 3  # the wait from which on files are watched: an agent that answers at once is not worth it
MODIFIED = 0x2  # IN_MODIFY of <sys/inotify.h>
NOTICES = 64 * 1024  # bytes of notices that are read at once
NOTICE = 16  # bytes of a notice; it begins with the number of the watch


class Written:
    """Waits for writes to open files. Used by one event loop."""

    def __init__(self, files: Sequence[int]) -> None:
        self._files = files
        self._woken = asyncio.Event()
        self._waits = 0
        self._watched: list[int] = []

    def wake(self) -> None:
        """End the wait that runs, or the next one."""
        self._woken.set()

    async def wait(self) -> None:
        """Wait until one of the files may have been written to since the last wait."""
        self._waits += 1
        if self._waits == FIRST_WATCHED:
            self._watched = _watches().add(self._files, self.wake)
        later = asyncio.get_running_loop().call_later(LOOK_S if self._watched else POLL_S, self.wake)
        try:
            await self._woken.wait()
        finally:
            later.cancel()
            self._woken.clear()

    def close(self) -> None:
        if self._watched:
            _watches().remove(self._watched)
            self._watched = []


class _Watches:
    """The watches of an event loop. They share one inotify instance, of which a user has 128, while there are any."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._wakes: dict[int, Callable[[], None]] = {}
        self._instance = -1

    def add(self, files: Sequence[int], wake: Callable[[], None]) -> list[int]:
        """Have `wake` called when one of the files is written to. The numbers of the watches; none if that fails."""
        if not self._wakes:
            self._open()
        watched = [self._watch(file) for file in files] if self._instance >= 0 else []
        self._wakes |= dict.fromkeys(watched, wake)
        if not watched or min(watched) < 0:
            self.remove(set(watched))
            return []
        return watched

    def remove(self, watched: Collection[int]) -> None:
        for watch in watched:
            del self._wakes[watch]
            _call("inotify_rm_watch", self._instance, watch)
        if not self._wakes:
            self._close()

    def _watch(self, file: int) -> int:
        return _call("inotify_add_watch", self._instance, b"/proc/self/fd/%d" % file, MODIFIED)

    def _open(self) -> None:
        try:
            self._instance = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        except (ImportError, OSError):  # this system has no inotify
            return
        if self._instance >= 0:
            self.loop.add_reader(self._instance, self._noticed)

    def _close(self) -> None:
        if self._instance >= 0:
            self.loop.remove_reader(self._instance)
            _close_in_a_thread(self._instance)
            self._instance = -1

    def _noticed(self) -> None:
        try:
            notices = os.read(self._instance, NOTICES)
        except BlockingIOError:
            return
        for at in range(0, len(notices), NOTICE):
            watch = int.from_bytes(notices[at : at + 4], sys.byteorder, signed=True)
            if wake := self._wakes.get(watch):  # others are of removed watches, or say that notices were lost: `LOOK_S`
                wake()


_last: list[_Watches] = []


def _watches() -> _Watches:
    """Those of the loop that runs."""
    loop = asyncio.get_running_loop()
    if not _last or _last[0].loop is not loop:
        _last[:] = [_Watches(loop)]
    return _last[0]


def _close_in_a_thread(instance: int) -> None:
    """Close an inotify instance that had watches, for which Linux takes 6 to 14 ms, while the turn is stored."""
    try:
        Thread(target=os.close, args=(instance,), daemon=True).start()
    except RuntimeError:  # the system starts no more threads
        os.close(instance)


def _call(name: str, *given: int | bytes) -> int:
    """Call a function of the C library. Raises `OSError` if it has none of that name."""
    import _ctypes  # `ctypes` takes 2 ms longer to load

    result: int = _ctypes.call_function(_ctypes.dlsym(_program(), name), given)
    return result


@cache
def _program() -> int:
    import _ctypes

    return _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # this one, which may be None as in C
