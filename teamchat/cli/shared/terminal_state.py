"""Restores a terminal, whatever state a program has left it in."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator

RESET = (
    b"\x1b7\x1b[?1049l"  # save the cursor first: leaving the alternate screen restores it, even if that screen is off
    b"\x1b[?25h\x1b[?7h\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?1007l\x1b[?1016l"
    b"\x1b[?2026l\x1b[?2031l\x1b[?1l\x1b>\x1b[>4m\x1b[<u\x1b(B\x0f\x1b[0m\r\n"
)
"""Leaves the alternate screen, shows the cursor, wraps long lines; ends bracketed paste, reports of mouse, focus, keys
and colours, held drawing, special keypads, other characters and colours."""


@contextlib.contextmanager
def put_back() -> Iterator[Callable[[], None]]:
    """Restore the line settings at the end, and take the terminal from a process group that a program has given it to.

    The yielded function resets the screen, after a program that failed.
    """
    stdin = sys.stdin.fileno()
    before, group = termios.tcgetattr(stdin), os.getpgrp()
    foreground = os.tcgetpgrp(stdin) == group
    try:
        yield lambda: _write(RESET)
    finally:
        # without the terminal this process would be stopped here
        handler = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            with contextlib.suppress(OSError, termios.error):  # it was closed
                if foreground:
                    os.tcsetpgrp(stdin, group)
                termios.tcsetattr(stdin, termios.TCSADRAIN, before)
        finally:
            signal.signal(signal.SIGTTOU, handler)


def _write(data: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), data)
