"""The standard streams, whatever the caller made of them: closed, of another encoding, full, or read by nobody."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any, TextIO


class OutputLost(OSError):
    """Standard output cannot be written; `strerror` says why. A closed pipe remains a `BrokenPipeError`."""


class _Stream(io.FileIO):
    """The file of a standard stream. The caller keeps its descriptor."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)

    def write(self, data: Any, /) -> int:
        written: Any
        while (written := super().write(data)) is None:
            select.select([], [self], [])  # another program has made the terminal non-blocking
        return int(written)


class _Out(_Stream):
    """Standard output. Its errors are told from those of all other files."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error


class _Err(_Stream):
    """Standard error, which never fails: nobody reads it, and the exit code still tells."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            silence(self)
            return memoryview(data).nbytes


def prepare() -> None:
    """Open what the caller has closed (`<&-`, `>&-`), and let every text be written.

    The number of a closed stream would go to the next file that is opened, to be read or written by mistake.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 (open as long as the program runs)
    sys.stdout, sys.stderr = _text(_Out(1)), _text(_Err(2))


def _text(raw: _Stream) -> TextIO:
    """Agents write every script, whatever this locale can."""
    by_lines = raw.isatty() or isinstance(raw, _Err)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=by_lines)


def silence(stream: TextIO | io.FileIO) -> None:
    """Nobody reads it any more, or its disk is full: what is still in it goes nowhere when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
