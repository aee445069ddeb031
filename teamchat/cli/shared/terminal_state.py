"""A terminal as it was before a program had it, whatever that program has left it in."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from collections.abc import Callable, Iterator

RESET = (
    b"\x1b7\x1b[?1049l"  # the cursor saved first: leaving the alternate screen restores it, and it may not be on
    b"\x1b[?25h\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[<u\x1b[0m\r\n"
)
"""The alternate screen left, the cursor shown; no bracketed paste, mouse, focus or keyboard reports; no colours."""


@contextlib.contextmanager
def put_back() -> Iterator[Callable[[], None]]:
    """Put the line settings back at the end. What it yields resets the screen, after a program that failed."""
    before = termios.tcgetattr(sys.stdin)
    try:
        yield lambda: _write(RESET)
    finally:
        with contextlib.suppress(termios.error):  # it was closed
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _write(data: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), data)
