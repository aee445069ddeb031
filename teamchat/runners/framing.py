"""Lines out of a byte stream.

Lines end at a newline byte and nowhere else (agent CLIs print U+2028 raw inside JSON strings), may be of any length,
and cost time linear in their bytes.
"""

from __future__ import annotations

from typing import Protocol

from teamchat.runners.base import EventParser


class Framer(Protocol):
    """Cuts a stream into what a parser is given."""

    def push(self, chunk: bytes) -> list[bytes]: ...

    def flush(self) -> list[bytes]:
        """What is left when the stream has ended."""
        ...


class LineFramer:
    def __init__(self) -> None:
        self._open: list[bytes] = []

    def push(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their newlines."""
        *lines, rest = chunk.split(b"\n")
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


class Unframed:
    """The chunks as they come."""

    def push(self, chunk: bytes) -> list[bytes]:
        return [chunk]

    def flush(self) -> list[bytes]:
        return []


def framer_of(parser: EventParser) -> Framer:
    return LineFramer() if parser.by_lines else Unframed()
