"""A second Ctrl-C ends the program even while it reads or stores a large reply.

The event loop does not answer then, and Python runs no signal handler inside a call of C code. But Python writes
the number of each signal to a pipe at once, and a thread waits at that pipe. Only a call that holds the
interpreter's lock delays the thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from io import RawIOBase
from threading import Event, Thread

NOTICE_S = 0.1  # how long the event loop may take over the first signal without a note; a slow disk causes none
ANSWER_S = 0.5  # how long the event loop may take to answer the second signal
LOOK_S = 0.05
BUSY = "still busy; Ctrl-C now ends teamchat at once"


@contextlib.contextmanager
def ends_at_second(codes: Mapping[int, int], before_exit: Callable[[], None] | None = None) -> Iterator[None]:
    """Exit after a second signal, with the first one's code of `codes`, if the running loop does not answer.

    If the loop is still busy after the first signal, a line on stderr says so. A loop that answers ends by itself:
    it waits for an agent that is being killed. The exit is a hard one: the store keeps what was committed, and
    recovery treats the rest as after `kill -9`. A thread calls `before_exit`. For the main thread only.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    ended = Event()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    watch = Thread(target=_watch, args=(read, asyncio.get_running_loop(), codes, ended, before_exit), daemon=True)
    with contextlib.suppress(RuntimeError):  # no thread can start, so no agent can either
        watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        os.close(write)
        if watch.ident is None:
            os.close(read)


def _watch(
    read: int,
    loop: asyncio.AbstractEventLoop,
    codes: Mapping[int, int],
    ended: Event,
    before_exit: Callable[[], None] | None,
) -> None:
    with os.fdopen(read, "rb", buffering=0) as pipe:  # open until the end: the interpreter warns about a broken pipe
        first = _next(pipe, codes)
        asked, warned, again = _Asked(loop), False, False
        while first is not None and not ended.wait(LOOK_S):
            again = again or (_readable(pipe) and _next(pipe, codes) is not None)
            if asked.answered.is_set():
                asked = _Asked(loop)
            elif again and time.monotonic() - asked.at > ANSWER_S:
                if before_exit:
                    before_exit()
                os._exit(codes[first])
            elif not warned and time.process_time() - asked.worked > NOTICE_S:
                warned = True
                _tell(BUSY)


def _next(pipe: RawIOBase, numbers: Collection[int]) -> int | None:
    """Wait for the next signal of `numbers`; None if the run has ended."""
    while byte := pipe.read(1):
        if byte[0] in numbers:
            return byte[0]
    return None


def _readable(pipe: RawIOBase) -> bool:
    return bool(select.select((pipe,), (), (), 0)[0])


class _Asked:
    """A request to the loop for an answer: `at` which time it was sent, and how many seconds of work before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.at, self.worked = time.monotonic(), time.process_time()
        self.answered = Event()
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run has ended
            loop.call_soon_threadsafe(self.answered.set)


def _tell(line: str) -> None:
    """Print a line on stderr if it can be written at once: the second signal must not wait for it."""
    with contextlib.suppress(OSError):
        if select.select((), (2,), (), 0)[1]:
            before = "\n" if os.isatty(2) else ""  # the terminal has printed ^C, perhaps in the middle of a line
            os.write(2, f"{before}· {line}\n".encode())
