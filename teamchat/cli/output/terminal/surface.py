"""The place to draw the blocks and the changing lines of a run: a terminal, or another program's window."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Protocol

NARROWEST, WIDEST = 20, 300
SIZE = (80, 24)
ROWS_LEFT = 2  # rows of the screen that the changing lines never take


class Surface(Protocol):
    """What draws. `write` and `show` may be called by different threads, but never at the same time."""

    @property
    def width(self) -> int:
        """The columns that a line may have now. It follows a resize."""
        ...

    @property
    def height(self) -> int:
        """The number of changing lines that have room."""
        ...

    def write(self, text: str) -> None:
        """Add finished lines, each with its line end, in place of the changing ones: `show` follows."""
        ...

    def show(self, lines: Sequence[str]) -> None:
        """Replace the changing lines; none removes them. No line is wider than `width`."""
        ...


class TerminalSurface:
    """Draws on a terminal, without any change of its modes.

    The cursor rests on an empty line above the changing lines. Keys typed meanwhile are echoed there, a resize cannot
    move them to another line of text, and a killed program leaves a visible cursor in a usable place. Without `moves`
    there are no changing lines. Raises what `to` does if the terminal is gone.
    """

    def __init__(self, to: io.RawIOBase, *, moves: bool) -> None:
        self._to, self._moves = to, moves
        self._shown: list[str] = []

    @property
    def width(self) -> int:
        return max(NARROWEST, min(self._size()[0], WIDEST))

    @property
    def height(self) -> int:
        return max(1, self._size()[1] - ROWS_LEFT)

    def _size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size(self._to.fileno())
        except OSError:
            return SIZE
        return columns or SIZE[0], rows or SIZE[1]

    def write(self, text: str) -> None:
        cleared = self._cleared()
        self._shown = []
        self._put(cleared + text)

    def show(self, lines: Sequence[str]) -> None:
        lines = list(lines)[-self.height :] if self._moves and self._in_foreground() else []
        if lines != self._shown:
            cleared = self._cleared()
            self._shown = lines
            self._put(cleared + _drawn(lines))

    def _cleared(self) -> str:
        return "\r\x1b[J" if self._shown else ""

    def _in_foreground(self) -> bool:
        """Return whether no shell has the terminal; True also for a terminal that is not the program's own."""
        try:
            return os.tcgetpgrp(self._to.fileno()) == os.getpgrp()
        except OSError:
            return True

    def _put(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "backslashreplace"))
        while data:
            data = data[self._to.write(data) or 0 :]


def _drawn(lines: Sequence[str]) -> str:
    """Draw the lines below an empty one; the cursor returns there."""
    if not lines:
        return ""
    return "".join(f"\n{line}" for line in lines) + f"\r\x1b[{len(lines)}A"
