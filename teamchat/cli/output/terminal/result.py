"""The result of a process at a terminal: its outcome, bars in proportion, and what led to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.voice import WIDEST
from teamchat.cli.output.terminal.wrap import cells, cut, wrapped
from teamchat.core.engine.processes.words import Bar, Result
from teamchat.core.text.clean import printable

INDENT = "  "
BLOCK = "█"
WIDEST_BAR = 24  # columns
WIDEST_LABEL = 30


def drawn(result: Result, width: int, look: Look) -> Iterator[str]:
    """Draw the lines of the result, each at most `width` columns wide."""
    yield from map(look.bold, wrapped(printable(result.title), width))
    if result.bars:
        yield ""
        yield from _bars(result.bars, width, look)
        yield ""
    for line in result.lines:
        yield from rows_of(f"{INDENT}{printable(line)}", width)


def rows_of(line: str, width: int) -> Iterator[str]:
    """Break an indented line of a result, or its title, into rows."""
    if not line.startswith(INDENT):
        yield from wrapped(line, width)
        return
    first, *more = wrapped(line.removeprefix(INDENT), max(width - 2 * len(INDENT), 1))
    yield INDENT + first
    yield from (2 * INDENT + rest for rest in more)


def fitted(lines: Iterable[str], width: int) -> Iterator[str]:
    """Break the lines of a result that have no styles into rows, as `drawn` breaks them."""
    columns = min(width, WIDEST)
    return (row for line in lines for row in rows_of(line, columns))


def _bars(bars: Sequence[Bar], width: int, look: Look) -> Iterator[str]:
    """Draw a bar for each count: `1200  ████████  2  max, carol`."""
    most = max(1, *(bar.count for bar in bars))
    labels = [cut(printable(bar.label), min(WIDEST_LABEL, width // 3)) for bar in bars]
    wide, digits = max(map(cells, labels)), len(str(most))
    room = min(WIDEST_BAR, max(width // 2 - wide, 1))
    for label, bar in zip(labels, bars, strict=True):
        block = BLOCK * -(-bar.count * room // most)
        begin = f"{INDENT}{label.ljust(wide + len(label) - cells(label))}  {block.ljust(room)}  {bar.count:>{digits}}"
        who = cut(printable(", ".join(bar.who)), width - cells(begin) - 2)
        yield f"{begin}  {look.dim(who)}" if who else begin
