"""Lines of JSON of any length, read in little more memory than their texts take.

A line may hold a reply of hundreds of megabytes. Its long strings are decoded while it comes, and leave references in
the line.
"""

from __future__ import annotations

import json
import os
import re
from codecs import getincrementaldecoder

from teamchat.patterns import regex
from teamchat.runners.growing import GrowingText
from teamchat.runners.untrusted_json import LongLine, bare, scalar

LONG_TEXT = 64 * 1024  # bytes of a string in a long line from which on it is decoded in pieces
HEAD = 64 * 1024  # bytes that are kept of a line that is no JSON
_ESCAPE = 6  # bytes of the longest one
_BODY = rb'[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+'  # of a string, up to its end or to half an escape
_IN_STRING = regex(_BODY, re.DOTALL)
_BETWEEN = regex(rb'(?:[^"]++|"' + _BODY + rb'")*+', re.DOTALL)  # whole strings and what is between them


class LongLineReader:
    """Reads one long line in pieces."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._line = bytearray()
        self._texts: dict[str, str] = {}
        self._mark = os.urandom(16).hex()  # a reference begins with what no line can have
        self._half = b""  # an escape that is not complete
        self._string: _String | None = None  # that is open
        self._damaged = False

    def push(self, piece: bytes) -> None:
        if not self._head:
            piece = bare(piece)
        if len(self._head) < HEAD:
            self._head += piece[: HEAD - len(self._head)]
            if (begin := self._head.lstrip()) and not begin.startswith(b"{"):
                self._damage()
        if not self._damaged:
            try:
                self._read(self._half + piece)
            except ValueError:
                self._damage()

    def end(self) -> LongLine:
        if self._half or self._string:
            self._damage()
        return LongLine(self._head, None if self._damaged else bytes(self._line), self._texts)

    def _damage(self) -> None:
        """Keep only the beginning of a line that is no JSON object."""
        self._damaged, self._string = True, None
        self._texts.clear()
        self._line.clear()

    def _read(self, data: bytes) -> None:
        self._half, at = b"", 0
        while at < len(data):
            begin = at
            if self._string is None:
                found = _BETWEEN.match(data, at)
                at = found.end() if found else at
                self._line += data[begin:at]
                if at < len(data):
                    self._string = _String()
                    at += 1
                continue
            found = _IN_STRING.match(data, at)
            at = found.end() if found else at
            self._string.add(data[begin:at])
            if data[at : at + 1] == b'"':
                self._close(self._string)
                at += 1
            elif at < len(data):
                self._half = data[at:]
                if len(self._half) >= _ESCAPE:
                    raise ValueError("an escape that JSON does not have")
                return

    def _close(self, string: _String) -> None:
        self._string = None
        if string.text is None:
            self._line += b'"' + string.taken() + b'"'
        else:
            reference = f"{self._mark}{len(self._texts)}"
            self._texts[reference] = string.text.end()
            self._line += f'"{reference}"'.encode()


class _String:
    """A string that is open: its bytes as they came or, once it is long, its text. Raises `ValueError`."""

    def __init__(self) -> None:
        self.text: _Text | None = None
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        self._bytes += data
        if self.text is None and len(self._bytes) > LONG_TEXT:
            self.text = _Text()
        if self.text:
            self.text.add(self.taken())

    def taken(self) -> bytes:
        taken = bytes(self._bytes)
        self._bytes.clear()
        return taken


class _Text:
    """Decodes the inside of a string that comes in pieces. None ends inside an escape. Raises `ValueError`."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._half = ""  # the first surrogate of a pair
        self._text = GrowingText()

    def add(self, data: bytes, *, final: bool = False) -> None:
        text: str = self._half + json.loads(f'"{self._decoder.decode(data, final)}"')
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" and not final else ""
        self._text.add(scalar(text[:-1] if self._half else text))

    def end(self) -> str:
        self.add(b"", final=True)
        return self._text.take()
