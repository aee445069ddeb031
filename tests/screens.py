"""A terminal's screen, as a person sees it: the program's output drawn by a model of a terminal (pyte)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pyte

from tests.program import TIMEOUT_S, argv
from tests.terminals import Terminal

LOOK_S = 0.05
SCROLLBACK = 1000


class Screen:
    """What stands on the screen of a program that runs. `rows` has the scrollback, too."""

    def __init__(self, child: pexpect.spawn, columns: int, rows: int) -> None:
        self.child = child
        self._screen = pyte.HistoryScreen(columns, rows, history=SCROLLBACK, ratio=1.0)
        self._stream = pyte.Stream(self._screen)

    @property
    def rows(self) -> list[str]:
        """All rows, without spaces at the end and empty rows at the bottom."""
        columns = self._screen.columns
        above = ["".join(row[at].data for at in range(columns)) for row in self._screen.history.top]
        rows = [row.rstrip() for row in (*above, *self._screen.display)]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def colour(self, text: str) -> str:
        """The name of the colour in which the last row with this text begins it; `default` if it has none."""
        columns = self._screen.columns
        rows = [*self._screen.history.top, *(self._screen.buffer[at] for at in range(self._screen.lines))]
        for row in reversed(rows):
            at = "".join(row[column].data for column in range(columns)).find(text)
            if at >= 0:
                return str(row[at].fg)
        raise AssertionError(f"{text!r} is not on the screen:\n{self.text}")

    @property
    def display(self) -> list[str]:
        """The rows that stand on the screen, without the scrollback."""
        return [row.rstrip() for row in self._screen.display]

    def scrolled(self) -> list[str]:
        """The rows that have left the screen since the last call."""
        left, columns = list(self._screen.history.top), self._screen.columns
        self._screen.history.top.clear()
        return ["".join(row[at].data for at in range(columns)).rstrip() for row in left]

    @property
    def text(self) -> str:
        return "\n".join(self.rows)

    @property
    def cursor_is_visible(self) -> bool:
        return not self._screen.cursor.hidden

    def read(self, seconds: float = LOOK_S) -> bool:
        """Draw what the program writes within this time. False if it has ended."""
        try:
            self._stream.feed(self.child.read_nonblocking(64 * 1024, seconds))
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        return True

    def until(self, holds: Callable[[str], object]) -> str:
        """The first screen for which `holds` is true. Fails with the last screen otherwise."""
        end = time.monotonic() + TIMEOUT_S
        while not holds(self.text):
            if not self.read() or time.monotonic() > end:
                assert holds(self.text), f"the screen did not come to this:\n{self.text}"
        return self.text

    def to_the_end(self) -> list[str]:
        """The rows when the program has ended."""
        while self.read():
            pass
        self.child.wait()
        return self.rows

    def resize(self, columns: int, rows: int) -> None:
        self.child.setwinsize(rows, columns)
        self._screen.resize(rows, columns)


@contextmanager
def screen(
    *args: str,
    columns: int = 80,
    rows: int = 24,
    env: Mapping[str, str] | None = None,
    echo: bool = False,
    script: Path | None = None,
) -> Iterator[Screen]:
    """The program, or another Python `script`, at a terminal with this many columns and rows."""
    program, *rest = argv(*args) if script is None else [sys.executable, str(script), *args]
    variables = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "", **(env or {})}
    size = (rows, columns)
    child = Terminal(program, rest, env=variables, dimensions=size, timeout=TIMEOUT_S, echo=echo, encoding="utf-8")
    try:
        yield Screen(child, columns, rows)
    finally:
        child.close(force=True)
