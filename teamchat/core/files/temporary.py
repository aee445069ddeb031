"""Temporary folders in the state folder, where no other user of the machine looks, and the end of left ones."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from teamchat.core.errors import StoreError
from teamchat.core.files.folders import WRITABLE, state_dir
from teamchat.runners.process.removal import remove

FOLDER = "temporary"


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """A new folder for the user alone, which is removed at the end. Those of killed processes are removed first.

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
    """A new folder, and the lock on it that says that its owner lives."""
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
    """The lock on a folder, held until it is closed. Raises `OSError` if another process has it."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
