"""Standard output and error while the prompt is on the screen: what is printed goes above it."""

from __future__ import annotations

import io
from typing import TextIO

from teamchat.cli.chatting.screen import Screen

BELL = "\a"


class Above(io.TextIOBase):
    """Writes above the prompt, and to the stream itself while the prompt is hidden."""

    def __init__(self, stream: TextIO, screen: Screen) -> None:
        self._stream, self._screen = stream, screen
        self._line = ""

    def write(self, text: str) -> int:
        if not self._screen.visible:
            return self._stream.write(text)
        *lines, self._line = (self._line + text).split("\n")
        if lines:
            self._screen.write("".join(f"{line}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        if not self._screen.visible:
            self._stream.flush()
        elif self._line.startswith(BELL):  # a bell and a notification have no line
            self._screen.write(self._line)
            self._line = ""

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding
