"""A second Ctrl-C ends the program even while it reads or stores a large reply.

The event loop answers nothing meanwhile, and Python runs no signal handler inside a call of C code. But it writes the
number of each signal to a pipe at once, and a thread waits there. Only a call that holds the interpreter's lock delays
that thread, so large texts are searched in pieces.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection, Iterator, Mapping
from io import RawIOBase
from threading import Event, Thread

PATIENCE_S = 0.5  # for the event loop to answer after the second signal
LOOK_S = 0.05


@contextlib.contextmanager
def ends_at_second(codes: Mapping[int, int]) -> Iterator[None]:
    """Exit with the first signal's code of `codes` once the running loop does not answer after a second one.

    A loop that answers is left to end by itself: it waits for an agent that is being killed. The exit is a hard one:
    the store keeps what was committed, and recovery finds the rest as after `kill -9`. For the main thread only.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    ended = Event()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    Thread(target=_watch, args=(read, asyncio.get_running_loop(), codes, ended), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        os.close(write)


def _watch(read: int, loop: asyncio.AbstractEventLoop, codes: Mapping[int, int], ended: Event) -> None:
    with os.fdopen(read, "rb", buffering=0) as pipe:  # open to the end: the interpreter complains of a broken pipe
        asked = _first_two(pipe, codes)
        while len(asked) == 2 and not ended.wait(LOOK_S):
            if not _answers(loop) and not ended.is_set():
                os._exit(codes[asked[0]])


def _first_two(pipe: RawIOBase, numbers: Collection[int]) -> list[int]:
    """The first two signals, of `numbers` alone; fewer where the run has ended before."""
    asked: list[int] = []
    while len(asked) < 2 and (byte := pipe.read(1)):
        asked += (number for number in byte if number in numbers)
    return asked


def _answers(loop: asyncio.AbstractEventLoop) -> bool:
    answered = Event()
    with contextlib.suppress(RuntimeError):  # it was closed: the run has ended
        loop.call_soon_threadsafe(answered.set)
    return answered.wait(PATIENCE_S)
