"""One conversation runs at a time per session: a lock on a file, with its holder written inside."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from teamchat.core.errors import DiskFull, SessionBusy, StoreError
from teamchat.core.files.folders import FULL, NO_ROOM, WRITABLE
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote, saying
from teamchat.patterns import regex
from teamchat.runners.child.guardian import FIRST_PID, depth_of, named, number_here, processes

POLL_S = 0.1
STARTING_S = 2.0
"""How long to wait for a lock whose holder has ended: a child it was just starting holds it until its exec."""
_PROCESS = regex(r"process ([1-9]\d{0,8}) ")  # 0 is many
LONGEST_HOLDER = 300  # characters of a lock file that are shown


class Holder(Struct, frozen=True):
    """The process that holds a lock, by its number where it runs, and its own description.

    `name` is the one that the guardian's `named` gives; None where an older teamchat wrote the lock, or could not see
    itself.
    """

    process: int
    said: str
    name: str | None

    @property
    def here(self) -> int | None:
        """The number to signal it from here; None if it cannot be seen, as in another container."""
        return self.process if self.name is None else number_here(self.name)


def lock_in(state: Path, session: int) -> Path:
    """Return the lock file of a session, by its id in the store of that state folder."""
    return state / f"session-{session}.lock"


@contextlib.contextmanager
def session_lock(path: Path, command: str, waits: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock at `path` while `command` runs.

    If another process holds it, `waits` is called once with that process's description, and the call waits. Without
    `waits` it raises `SessionBusy`. The operating system releases the lock when its process ends, however it ends.
    """
    file = _open(path)
    try:
        announced, asked = False, time.monotonic()
        while not _take(file, path):
            if (holder := _read(file)[0]) and _is_around(holder):
                raise SessionBusy(
                    f"you are inside this conversation: {_holder(file)} waits for your turn to end; "
                    "a NEXT marker in your reply calls another member",
                    "teamchat log",
                )
            starting = _has_ended(file) and time.monotonic() < asked + STARTING_S
            if not (announced or starting):
                if waits is None:
                    raise SessionBusy(
                        f"this conversation is being run by {_holder(file)}; wait, stop it, or start another one",
                        f"teamchat stop\n{saying('--new')}",
                    )
                waits(_holder(file))
                announced = True
            time.sleep(POLL_S)
        try:
            os.ftruncate(file, 0)
            os.pwrite(file, f"process {os.getpid()} ({command})\n{named(os.getpid()) or ''}\n".encode(), 0)
        except OSError as error:
            if error.errno in FULL:
                raise DiskFull(f"the lock {path} {NO_ROOM}") from error
            raise
        try:
            yield
        finally:
            os.ftruncate(file, 0)  # otherwise the next holder would be mistaken for this one until it writes its own
    finally:
        os.close(file)


def holder_of(path: Path) -> tuple[int, str] | None:
    """Find the process that holds the lock at `path`, and its own description; None when nobody does.

    Raises `StoreError` if the lock names no process that could hold it.
    """
    holder = look_at(path)
    return (holder.process, holder.said) if holder else None


def look_at(path: Path) -> Holder | None:
    """Find the holder of the lock at `path`, with everything that is needed to signal it; None when nobody holds it.

    Raises `StoreError` if the lock names no process that could hold it.
    """
    if not path.exists():
        return None
    file = _open(path)
    try:
        # only leftovers of a killed process are looked at with the lock: others that want the lock then would be
        # refused
        if not _written(file) or _take(file, path):
            return None
        holder, written = _read(file)
    finally:
        os.close(file)
    if not written:
        return None  # it has just been taken
    if holder is None:
        raise StoreError(f"the lock {path} is held, and names no process that could hold it: {written}")
    return holder


def is_held(path: Path) -> bool:
    """Whether a process holds the lock at `path`, or the lock cannot be opened."""
    try:
        return look_at(path) is not None
    except StoreError:
        return True


def _has_ended(file: int) -> bool:
    """Whether the holder was killed, or has released the lock, and no other process claims it."""
    holder, written = _read(file)
    if holder is None:
        return not written
    try:
        os.kill(holder.process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # it is there, and somebody else's
    return False


def _open(path: Path) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(f"the lock {path} cannot be opened: {error.strerror}; {WRITABLE}") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise StoreError(f"the lock {path} is not a file", f"rm {quote(str(path))}")
    return file


def _take(file: int, path: Path) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # such as ENOLCK: a file system without locks
        raise StoreError(
            f"the lock {path} cannot be taken: {error.strerror}; set TEAMCHAT_HOME to a folder of another file system"
        ) from error
    return True


def _is_around(holder: Holder) -> bool:
    """Whether this process runs inside an agent of a turn of the holder: it descends from it.

    In a container everything descends from process 1: there the turn's mark decides.
    """
    here = holder.here
    if here is not None and here < FIRST_PID:
        return depth_of("self") != depth_of(here)
    parents = {pid: parent for pid, (parent, _) in processes().items()} if here else {}
    ancestor = os.getppid()
    while ancestor in parents and ancestor != here:
        ancestor = parents[ancestor]
    return ancestor == here


def _holder(file: int) -> str:
    return _written(file) or "another process"


def _written(file: int) -> str:
    return _read(file)[1]


def _read(file: int) -> tuple[Holder | None, str]:
    """Read the lock's holder, if that could hold it, and its own description.

    Process 1 of a machine holds none and that of a container may: it counts only where the lock names it whole.
    """
    try:
        said, _, name = os.pread(file, 4096, 0).decode(errors="replace").strip().partition("\n")
    except OSError:
        return None, ""
    said = printable(said)[:LONGEST_HOLDER]
    match = _PROCESS.match(said)
    if not match:
        return None, said
    number, _, start = name.partition("@")
    whole = start and number == match[1]
    holder = Holder(int(match[1]), said, name if whole else None)
    return holder if whole or holder.process >= FIRST_PID else None, said
