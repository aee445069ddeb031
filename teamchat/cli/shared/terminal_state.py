"""Restores a terminal, whatever state a program has left it in."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from collections.abc import Callable, Iterator

RESET = (
    b"\x1b7\x1b[?1049l"  # save the cursor first: leaving the alternate screen restores it, even if that screen is off
    b"\x1b[?25h\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[<u\x1b[0m\r\n"
)
"""Leaves the alternate screen, shows the cursor, ends bracketed paste, mouse, focus and keyboard reports, colours."""


@contextlib.contextmanager
def put_back() -> Iterator[Callable[[], None]]:
    """Restore the line settings at the end. The yielded function resets the screen, after a program that failed."""
    before = termios.tcgetattr(sys.stdin)
    try:
        yield lambda: _write(RESET)
    finally:
        with contextlib.suppress(termios.error):  # it was closed
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _write(data: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), data)
