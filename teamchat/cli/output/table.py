"""Rows in columns, for a person; a script reads `--json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from teamchat.core.printable import printable


def table(rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    """The rows as lines, each column as wide as its widest cell; the first `left` are text, the others numbers."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        pads = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [cell + pad if at < left else pad + cell for at, (cell, pad) in enumerate(zip(row, pads, strict=True))]
        yield "  ".join(cells).rstrip()
