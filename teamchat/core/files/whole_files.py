"""Files that are replaced as a whole: who reads one finds the old content or the new, never a part of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

PRIVATE = 0o600


@contextlib.contextmanager
def locked_beside(file: Path) -> Iterator[Path]:
    """Hold the lock of `file`, which lies beside it, and get the place where its next content is prepared.

    What a killed process has left there is removed first, and what is left at the end as well. Raises `OSError`.
    """
    lock = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    new = file.with_name(f"{file.name}.new")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        new.unlink(missing_ok=True)
        try:
            yield new
        finally:
            new.unlink(missing_ok=True)
    finally:
        os.close(lock)


def put_in_place(new: Path, file: Path) -> None:
    """Make `new` the content of `file`; on the disk when this returns."""
    _sync(new)
    new.replace(file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_private(path: Path, content: bytes) -> None:
    """Make a file that was not there, for its owner alone; nothing is left of one that could not be written whole."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
