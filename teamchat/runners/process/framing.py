"""Cuts the output of an agent into what its parser takes: lines, or the bytes as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from teamchat.runners.base import EventParser

if TYPE_CHECKING:
    from teamchat.runners.long_lines import LongLineReader

LONG_LINE = 1 << 20  # bytes; shorter lines are kept whole


class Framer(Protocol):
    """Cuts a stream into the units that a parser takes."""

    def push(self, chunk: bytes) -> list[bytes]: ...

    def flush(self) -> list[bytes]:
        """What remains when the stream has ended."""
        ...


class LineFramer:
    """Cuts a stream into lines."""

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


class JsonFramer:
    """Cuts a stream into lines of JSON. Those over `LONG_LINE` come as a `LongLine`."""

    def __init__(self) -> None:
        self._lines = LineFramer()
        self._size = 0  # of the line that is open
        self._long: LongLineReader | None = None

    def push(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their newlines."""
        if self._long:
            return self._push_long(self._long, chunk)
        lines = self._lines.push(chunk)
        self._size = len(chunk) - chunk.rfind(b"\n") - 1 + (0 if lines else self._size)
        if self._size > LONG_LINE:
            from teamchat.runners.long_lines import LongLineReader

            self._long = LongLineReader()
            for piece in self._lines.flush():
                self._long.push(piece)
            self._size = 0
        return lines

    def _push_long(self, line: LongLineReader, chunk: bytes) -> list[bytes]:
        end, newline, rest = chunk.partition(b"\n")
        line.push(end)
        if not newline:
            return []
        self._long = None
        return [line.end(), *self.push(rest)]

    def flush(self) -> list[bytes]:
        """The last line, if the stream ended without a newline."""
        line, self._long, self._size = self._long, None, 0
        return [line.end()] if line else self._lines.flush()


class Unframed:
    """The chunks as they come."""

    def push(self, chunk: bytes) -> list[bytes]:
        return [chunk]

    def flush(self) -> list[bytes]:
        return []


def framer_of(parser: EventParser) -> Framer:
    return JsonFramer() if parser.by_lines else Unframed()
