"""Files that are replaced as a whole, which nobody reads in part, and temporary folders."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from teamchat.core.errors import StoreError
from teamchat.core.files.folders import WRITABLE, state_dir
from teamchat.runners.child.removal import remove

PRIVATE = 0o600


@contextlib.contextmanager
def locked_beside(file: Path) -> Iterator[Path]:
    """Hold the lock of `file`, which lies beside it, and get the place where its next content is prepared.

    Files left there by a killed process are removed first, and leftovers at the end as well. Raises `OSError`.
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


FOLDER = "temporary"


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Make a new folder for the user alone, which is removed at the end; those of killed processes are removed first.

    Raises `StoreError` if it cannot be made.
    """
    try:
        folder, lock = _made(purpose)
    except OSError as error:
        raise StoreError(f"no temporary folder can be made: {error.strerror}; {WRITABLE}") from error
    try:
        yield folder
    finally:
        remove(folder)
        os.close(lock)


def _made(purpose: str) -> tuple[Path, int]:
    """Make a new folder, and the lock on it that says that its owner lives."""
    import tempfile  # only some commands make one

    parent = state_dir() / FOLDER
    parent.mkdir(mode=0o700, exist_ok=True)
    making = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(making, fcntl.LOCK_EX)  # nobody sweeps a folder between its making and its lock
        for left in parent.iterdir():
            with suppress(OSError):  # it is another process's
                os.close(_locked(left))
                remove(left)
        folder = Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=parent))
        return folder, _locked(folder)
    finally:
        os.close(making)


def _locked(folder: Path) -> int:
    """Lock a folder until the lock is closed. Raises `OSError` if another process has it."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
