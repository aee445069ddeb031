"""One conversation runs at a time per session: a lock on a file, with who holds it written inside."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from teamchat.core.errors import SessionBusy, StoreError


@contextlib.contextmanager
def session_lock(path: Path, command: str) -> Iterator[None]:
    """Hold the lock at `path` while `command` runs. Raises `SessionBusy` and names the holder when it is taken.

    The operating system lets go of it when the process ends, however it ends.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"the lock {path} can not be opened: {error.strerror}") from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(file, 4096).decode(errors="replace").strip() or "another process"
            raise SessionBusy(
                f"this conversation is being run by {holder}",
                "wait for it to end, or begin another one: teamchat send --new ...",
            ) from error
        os.ftruncate(file, 0)
        os.write(file, f"process {os.getpid()} ({command})\n".encode())
        yield
    finally:
        os.close(file)
