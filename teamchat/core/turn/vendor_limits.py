"""Limits of vendors: an agent cools down after a rate limit, and the starts of a vendor's CLIs are spaced apart."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from teamchat.core.errors import StoreError
from teamchat.core.files.folders import state_dir
from teamchat.core.files.whole_files import locked_beside, write_private
from teamchat.runners.regular_files import read_regular

LARGEST = 1 << 16  # bytes
COOL_S = 60.0  # after a rate limit; CLIs do not say how long theirs lasts


_BEGAN = time.time() - time.monotonic()


def steady_now() -> float:
    """The seconds since 1970 by the clock as this program found it: a clock that is set later changes nothing."""
    return _BEGAN + time.monotonic()


class Cooldowns:
    """Remembers in a file until when agents cool down. An unusable file costs one failed attempt, never a turn."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file, self._now = file, now

    def left(self, agent: str) -> float:
        """The seconds left of the agent's cool-down; 0 when there is none."""
        return max(0.0, self._known().get(agent, 0.0) - self._now())

    def start(self, agent: str, seconds: float = COOL_S) -> None:
        """Begin a cool-down of the agent now."""
        with contextlib.suppress(OSError), locked_beside(self._file) as new:  # another process may do the same
            write_private(new, json.dumps({**self._known(), agent: self._now() + seconds}).encode())
            new.replace(self._file)

    def _known(self) -> dict[str, float]:
        """The ends of all cool-downs. An end too far ahead was written by a clock that was wrong, and is ignored."""
        now = self._now()
        try:
            known = json.loads(read_regular(self._file, LARGEST)).items()
            return {name: float(until) for name, until in known if now < float(until) <= now + COOL_S}
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return {}


APART_S = 0.25
LONGEST_S = 30.0  # the longest wait; a later moment was taken before the clock was set back
SIZE = 20  # bytes of a moment in the file
PATIENCE_S = 0.2  # longer than taking a moment lasts, unless the process that holds the lock is stopped


def take_moment(vendor: str) -> float:
    """Take the vendor's next free moment to start, in seconds since 1970: now, unless others have just started.

    The caller waits for it. With an unusable file it is always now.
    """
    gap = APART_S * (1.0 + os.urandom(1)[0] / 510)  # `random` takes half a millisecond to load
    now = steady_now()
    try:
        file = os.open(state_dir() / f"{vendor}.start", os.O_RDWR | os.O_CREAT, 0o600)
    except (OSError, StoreError):
        return now
    try:
        _lock(file)
        now = steady_now()
        next_one = _moment(os.pread(file, SIZE, 0)) + gap
        mine = next_one if now < next_one < now + LONGEST_S else now
        os.pwrite(file, f"{mine:0{SIZE}.6f}".encode(), 0)
    except OSError:
        return now
    finally:
        os.close(file)
    return mine


def _lock(file: int) -> None:
    """Raises `BlockingIOError` when another process holds the lock for too long."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.001)
        else:
            return


def _moment(written: bytes) -> float:
    try:
        return float(written)
    except ValueError:  # the file is new
        return 0.0
