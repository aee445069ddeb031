"""A long text that is assembled from pieces, in little more memory than the text itself."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

LEAST = 1 << 20  # characters that are appended at once
SHARE = 16  # the text grows by a sixteenth at a time, so that copying it each time would still be linear


class GrowingText:
    """Joining a list of pieces takes twice the memory of the text.

    CPython extends a string in place where a local variable has the only reference to it. A first character that needs
    more bytes than those before it copies the text once.
    """

    def __init__(self) -> None:
        self._text = ""
        self._waiting = StringIO()  # as a list, small pieces would take several times their size
        self._size = 0  # characters that wait

    def add(self, piece: str) -> None:
        self._size += self._waiting.write(piece)
        if self._size >= max(LEAST, len(self._text) // SHARE):
            self._extend()

    def take(self) -> str:
        """The whole text, which is then no longer kept here."""
        self._extend()
        text, self._text = self._text, ""
        return text

    def _extend(self) -> None:
        pieces = self._waiting.getvalue()
        self._waiting, self._size = StringIO(), 0
        text, self._text = self._text, ""
        text += pieces
        self._text = text


def joined(pieces: Iterable[str]) -> str:
    """The text of the pieces."""
    text = GrowingText()
    for piece in pieces:
        text.add(piece)
    return text.take()
