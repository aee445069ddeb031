"""The result of a process at a terminal: its outcome, bars in proportion, and what led to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.wrap import cells, cut, wrapped
from teamchat.core.engine.processes.words import Bar, Result
from teamchat.core.text.clean import printable

INDENT = "  "
BLOCK = "█"
WIDEST_BAR = 24  # columns
WIDEST_LABEL = 30


def drawn(result: Result, width: int, look: Look) -> Iterator[str]:
    """The lines of the result, each at most `width` columns wide."""
    yield from map(look.bold, wrapped(printable(result.title), width))
    if result.bars:
        yield ""
        yield from _bars(result.bars, width, look)
        yield ""
    for line in result.lines:
        first, *more = wrapped(printable(line), max(width - 2 * len(INDENT), 1))
        yield INDENT + first
        yield from (2 * INDENT + rest for rest in more)


def _bars(bars: Sequence[Bar], width: int, look: Look) -> Iterator[str]:
    """`1200  ████████  2  max, carol`"""
    most = max(1, *(bar.count for bar in bars))
    labels = [cut(printable(bar.label), min(WIDEST_LABEL, width // 3)) for bar in bars]
    wide, digits = max(map(cells, labels)), len(str(most))
    room = min(WIDEST_BAR, max(width // 2 - wide, 1))
    for label, bar in zip(labels, bars, strict=True):
        block = BLOCK * -(-bar.count * room // most)
        begin = f"{INDENT}{label.ljust(wide + len(label) - cells(label))}  {block.ljust(room)}  {bar.count:>{digits}}"
        who = cut(printable(", ".join(bar.who)), width - cells(begin) - 2)
        yield f"{begin}  {look.dim(who)}" if who else begin
