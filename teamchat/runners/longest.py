"""Shortens texts and lines of an agent that are too long to be kept."""

from __future__ import annotations

from io import StringIO
from typing import Self

from teamchat.patterns import regex

LONGEST_REPLY = 16 << 20
"""Bytes of a reply, unless `limits.reply` in the team file says otherwise."""
KEPT = 64 * 1024  # characters or bytes kept at each end of a text that is too long
ESCAPED = 2  # a JSON line with so many times the bytes of a reply loses its middle
_HALF_ESCAPE = regex(rb"\\+(?:u[0-9a-fA-F]{0,3})?$")
_BEHIND_ESCAPE = regex(rb"[^\\]")


def cut(text: str) -> str:
    """Keep the first and last `KEPT` characters of a text, and say between them how many are left out."""
    if len(text) <= 2 * KEPT:
        return text
    return f"{text[:KEPT]}{_gap(len(text) - 2 * KEPT, 'characters')}{text[-KEPT:]}"


def _gap(size: int, unit: str) -> str:
    return f"…({size:,} {unit} left out)…"  # the mark at which what is recorded looks for parts of a secret


class ShortenedLine(bytes):
    """A line of `size` bytes without its middle.

    The line is still JSON if the middle was inside a string, as in lines made long by a text or an image.
    """

    size: int

    def __new__(cls, head: bytes, tail: bytes, size: int) -> Self:
        head, tail = _HALF_ESCAPE.sub(b"", head), tail[-KEPT:]
        behind = _BEHIND_ESCAPE.search(tail)
        gap = _gap(size - len(head) - len(tail), "bytes").encode()
        made = super().__new__(cls, head + gap + tail[behind.end() if behind else 0 :])
        made.size = size
        return made


class ReplyText:
    """A text that comes in pieces. Once it is `over` the longest, only its beginning and its end are kept."""

    def __init__(self) -> None:
        self.over = False
        self._text = StringIO()  # as a list, small pieces would take several times their size
        self._head = ""
        self._bytes = self._left_out = 0

    def add(self, piece: str, longest: int) -> None:
        """Append a piece. The text may have `longest` bytes."""
        self._text.write(piece)
        self._bytes += len(piece) if piece.isascii() else len(piece.encode(errors="replace"))
        self.over = self.over or self._bytes > longest
        if self.over and self._text.tell() > 4 * KEPT:
            text = self._text.getvalue()
            if not self._head:
                self._head, text = text[:KEPT], text[KEPT:]
            self._left_out += len(text) - KEPT
            self._text = StringIO()
            self._text.write(text[-KEPT:])

    def __str__(self) -> str:
        text = self._text.getvalue()
        if not self._head:
            return text
        return f"{self._head}{_gap(self._left_out + len(text) - KEPT, 'characters')}{text[-KEPT:]}"
