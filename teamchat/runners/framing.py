"""Lines out of a byte stream.

Lines end at a newline byte and nowhere else (agent CLIs print U+2028 raw inside JSON strings), may be of any length,
and cost time linear in their bytes.
"""

from __future__ import annotations


class LineFramer:
    """`joined` gives all lines that one chunk completes as one piece, with the newlines between them."""

    def __init__(self, *, joined: bool = False) -> None:
        self._joined = joined
        self._open: list[bytes] = []

    def push(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their newlines."""
        *lines, rest = chunk.rsplit(b"\n", 1) if self._joined else chunk.split(b"\n")
        if lines and self._open:
            lines[0] = b"".join((*self._open, lines[0]))
            self._open.clear()
        if rest:
            self._open.append(rest)
        return lines

    def flush(self) -> list[bytes]:
        """The last line, if the stream ended without a newline."""
        rest = b"".join(self._open)
        self._open.clear()
        return [rest] if rest else []
