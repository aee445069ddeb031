"""Reads files that a CLI or another member may have replaced: only regular files, and without waiting.

A pipe in a file's place would block its reader for ever, and with it every turn of the conversation. A check before
opening is not enough: the file may be replaced after it.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO

LARGEST = 1 << 26  # bytes: Claude's record of all folders may be large


def open_regular(file: Path) -> BinaryIO:
    """Open a file for reading. Raises `OSError`, also for a pipe, a device or a folder."""
    opened = open(file, "rb", opener=_without_waiting)  # noqa: SIM115 (pathlib takes no opener)
    if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        return opened
    opened.close()
    raise OSError(errno.EINVAL, "it is not a file", str(file))


def read_regular(file: Path, most: int = LARGEST) -> bytes:
    """Read a file. Raises `ValueError` for more than `most` bytes, and `OSError` as `open_regular` does."""
    with open_regular(file) as opened:
        content = opened.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{file} is larger than {most:,} bytes")
    return content


def read_regular_text(file: Path, encoding: str = "utf-8", errors: str = "strict", most: int = LARGEST) -> str:
    """Read the text of a file, with the line ends of `Path.read_text`. Raises as `read_regular` does."""
    return io.TextIOWrapper(io.BytesIO(read_regular(file, most)), encoding, errors).read()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
