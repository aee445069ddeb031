"""Starts of one vendor's CLIs are spaced apart, whichever process of teamchat starts them.

Those that start together damage each other's state, or are refused as a burst. A small file a vendor in the user's
state folder has the last moment that was taken, which may be still to come: who starts next takes the one after it.
"""

from __future__ import annotations

import fcntl
import os
import random
import time

from teamchat.core.errors import StoreError
from teamchat.core.folders import state_dir

APART_S = 0.25
LONGEST_S = 30.0  # that anybody waits: a later moment was taken by a clock that has been set back since
SIZE = 20  # bytes of a moment in the file
PATIENCE_S = 0.2  # with a process that is stopped while it takes a moment, which is done in much less


def take_moment(vendor: str) -> float:
    """Take the vendor's next free moment to start, in seconds since 1970: now, unless others have just started.

    It is not waited for. Where the file cannot be used it is always now, which stops no turn.
    """
    gap = APART_S * random.uniform(1.0, 1.5)  # noqa: S311 (no secret)
    now = time.time()
    try:
        file = os.open(state_dir() / f"{vendor}.start", os.O_RDWR | os.O_CREAT, 0o600)
    except (OSError, StoreError):
        return now
    try:
        _lock(file)
        now = time.time()
        next_one = _moment(os.pread(file, SIZE, 0)) + gap
        mine = next_one if now < next_one < now + LONGEST_S else now
        os.pwrite(file, f"{mine:0{SIZE}.6f}".encode(), 0)
    except OSError:
        return now
    finally:
        os.close(file)
    return mine


def _lock(file: int) -> None:
    """Raises `BlockingIOError` where another process holds it for longer than it needs."""
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
    except ValueError:  # there was none yet
        return 0.0
