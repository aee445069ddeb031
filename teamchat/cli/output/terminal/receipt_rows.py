"""The rows of a receipt's line at a terminal: broken at words, and continued under their column."""

from __future__ import annotations

from collections.abc import Iterator

from teamchat.cli.output.receipt import COLUMN, TRY
from teamchat.cli.output.terminal.wrap import wrapped


def rows_of(line: str, width: int) -> Iterator[str]:
    """Break a line of `receipt_lines` into rows of at most `width` columns. A command to try is not broken."""
    if line.startswith(TRY):
        yield line
        return
    under = COLUMN if line.startswith("  ") and width >= 2 * COLUMN else 0
    first, *more = wrapped(line[under:], width - under)
    yield f"{line[:under]}{first}".rstrip()
    yield from (f"{' ' * under}{row}" for row in more)
