"""Writes an exported conversation to a file or to standard output."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import mkstemp

from teamchat.cli.output.long import whole, write_pieces
from teamchat.core.errors import UsageError
from teamchat.core.text.clean import printable


def write_to(file: Path | None, pieces: Iterable[str]) -> int:
    """Write the pieces; how many bytes a file then has.

    A file is replaced as a whole, so that after an error there is what was there before. Raises `UsageError`.
    """
    if file is None:
        write_pieces(whole(pieces))
        return 0
    try:
        if file.exists() and not file.is_file():  # such as /dev/stdout, which leads to a pipe without a name
            return _write(file, pieces)
        return _replace(Path(os.path.realpath(file)), pieces)  # a link stays a link
    except OSError as error:
        raise UsageError(f"{printable(str(file))} cannot be written: {error.strerror}") from error


def _write(path: Path, pieces: Iterable[str]) -> int:
    with path.open("wb") as opened:
        return sum(map(opened.write, _encoded(pieces)))


def _replace(path: Path, pieces: Iterable[str]) -> int:
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    number, name = mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    new = Path(name)
    try:
        with os.fdopen(number, "wb") as opened:
            written = sum(map(opened.write, _encoded(pieces)))
        new.chmod(mode)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return written


def _encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode(errors="replace") for piece in pieces)


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
