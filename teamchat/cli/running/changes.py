"""Waits until files change, without looking again and again."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from teamchat.core.conversation.following import LOOK_S

if TYPE_CHECKING:
    from inotify_simple import INotify

BETWEEN_S = 0.05  # between two looks where the system does not tell of changes


class Changes:
    """Waits for changes of the files in a folder. A signal ends the wait, and so does the end of stdout's reader."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._wakes: tuple[int, int] | None = None
        self._inotify: INotify | None = None
        self._poll: select.poll | None = None

    def __enter__(self) -> Self:
        return self

    def _begin(self) -> select.poll:
        self._poll = select.poll()
        self._poll.register(sys.stdout, 0)
        self._wakes = os.pipe()
        for end in self._wakes:
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wakes[1], warn_on_full_buffer=False)
        self._poll.register(self._wakes[0], select.POLLIN)
        with contextlib.suppress(OSError, ImportError):  # another system, or as many watches as it allows
            from inotify_simple import INotify, flags

            self._folder.mkdir(mode=0o700, exist_ok=True)
            inotify = INotify()
            inotify.add_watch(self._folder, flags.MODIFY | flags.MOVED_TO | flags.DELETE_SELF)
            self._poll.register(inotify.fileno(), select.POLLIN)
            self._inotify = inotify
        return self._poll

    def __exit__(self, *_: object) -> None:
        if self._wakes:
            signal.set_wakeup_fd(-1)
            for file in self._wakes:
                os.close(file)
        if self._inotify:
            self._inotify.close()

    def wait(self) -> None:
        """Wait, at most until the next look is due. Raises `BrokenPipeError` if nobody reads the output any more."""
        poll = self._poll or self._begin()
        for file, event in poll.poll(1000 * (LOOK_S if self._inotify else BETWEEN_S)):
            if self._inotify and file == self._inotify.fileno():
                self._inotify.read(timeout=0)
            elif self._wakes and file == self._wakes[0]:
                os.read(file, 64)
            elif event & (select.POLLERR | select.POLLHUP):
                raise BrokenPipeError(errno.EPIPE, "nobody reads the output")
