"""What stands on a terminal, with its colours: the program's output drawn by a model of a terminal (pyte)."""

from __future__ import annotations

from itertools import groupby

import pyte
from pyte import graphics
from pyte.screens import Char

DIM, NOT_BOLD = 2, 22
BLINK, NOT_BLINK = 5, 25  # the model knows no dim text, and nothing here blinks
COLOURS = {name: str(code) for code, name in (graphics.FG_ANSI | graphics.FG_AIXTERM).items()}
SCROLLBACK = 1000


class Terminal(pyte.HistoryScreen):
    """A terminal that is fed with output. `styled` is its text with ANSI colours."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows, history=SCROLLBACK, ratio=1.0)
        self._stream = pyte.Stream(self)

    def feed(self, text: str) -> None:
        self._stream.feed(text)

    def select_graphic_rendition(self, *attrs: int, **_: bool) -> None:
        codes: list[int] = []
        for place, code in enumerate(attrs):
            in_colour = 38 in attrs[max(0, place - 2) : place] or 48 in attrs[max(0, place - 2) : place]
            codes += [code] if in_colour else {DIM: [BLINK], NOT_BOLD: [NOT_BOLD, NOT_BLINK]}.get(code, [code])
        super().select_graphic_rendition(*codes)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.display)

    @property
    def styled(self) -> str:
        """The rows of the scrollback and of the screen, without empty ones at the end."""
        rows = [*self.history.top, *(self.buffer[row] for row in range(self.lines))]
        return "\n".join(_styled([row[column] for column in range(self.columns)]) for row in rows).rstrip("\n")


def _styled(row: list[Char]) -> str:
    while row and row[-1].data == " ":
        row.pop()
    return "".join(
        f"{codes}{text}\x1b[0m" if codes else text
        for codes, text in ((codes, "".join(char.data for char in chars)) for codes, chars in groupby(row, _codes))
    )


def _codes(char: Char) -> str:
    """The escape sequence of a character's look."""
    colour = COLOURS.get(char.fg) or "38;2;" + ";".join(str(int(char.fg[at : at + 2], 16)) for at in (0, 2, 4))
    codes = [
        *(["1"] if char.bold else []),
        *(["2"] if char.blink else []),
        *(["3"] if char.italics else []),
        *(["4"] if char.underscore else []),
        *(["7"] if char.reverse else []),
        *([colour] if char.fg != "default" else []),
    ]
    return f"\x1b[{';'.join(codes)}m" if codes else ""
