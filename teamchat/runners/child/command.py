"""Runs a program such as git: to its end, or read while it prints. Agents are started by `process.py`.

Each program has its own session, so that Ctrl-C reaches only teamchat. If it still runs when its caller is done with
it, its whole process group is killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any, Literal

from msgspec import Struct

from teamchat.runners.child import guardian
from teamchat.runners.child.running import SpawnFailed, start_error
from teamchat.runners.environment import for_child

_LONGEST = 1 << 16  # bytes that `capture` returns; also of stderr of a program that is read while it prints

_LOOKS_S = 0.02  # seconds between two looks at a program that runs
_WATCHES_S = 0.2  # seconds between two looks at what a program has used
_PRIVATE = 0o077


class CommandEnd(Struct, frozen=True):
    """The end of a program. `code` is its exit code, None if it was killed; `why` is then the reason."""

    code: int | None
    out: bytes
    err: bytes
    why: Literal["late", "idle", "stopped"] = "late"


def run(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    given: bytes = b"",
    *,
    idle_s: float | None = None,
    stopped: Callable[[], bool] | None = None,
) -> CommandEnd:
    """Run a program on the input `given` until it and its output end. Files that it makes are for the user alone.

    It is killed after `seconds`, after `idle_s` in which it neither used the processor nor read or wrote (where the
    system tells), and as soon as `stopped` says so; its output is lost then. Raises `OSError` and `ValueError` if it
    cannot be started.
    """
    watch = _Watch(time.monotonic() + seconds, idle_s, stopped)
    with TemporaryFile() as stdin:  # with a pipe, `communicate` writes nothing more once it has looked at the clock
        stdin.write(given)
        stdin.seek(0)
        with _started(argv, cwd, env, stdin=stdin, stdout=PIPE, stderr=PIPE, umask=_PRIVATE) as process:
            while True:
                try:
                    out, err = process.communicate(timeout=watch.longest())
                except TimeoutExpired:
                    if why := watch.over(process.pid):
                        return CommandEnd(None, b"", b"", why)
                else:
                    return CommandEnd(process.returncode, out, err)


class _Watch:
    """Tells when a program has to be killed."""

    def __init__(self, until: float, idle_s: float | None, stopped: Callable[[], bool] | None) -> None:
        self._until, self._idle_s, self._stopped = until, idle_s, stopped
        self._used: tuple[bytes, ...] | None = None
        self._since = time.monotonic()

    def longest(self) -> float:
        """Return the longest wait until the next look, in seconds."""
        return max(0.0, min(_WATCHES_S, self._until - time.monotonic()))

    def over(self, pid: int) -> Literal["late", "idle", "stopped"] | None:
        now, used = time.monotonic(), _used(pid)
        if used != self._used:
            self._used, self._since = used, now
        if self._stopped and self._stopped():
            return "stopped"
        if self._idle_s is not None and used is not None and now - self._since > self._idle_s:
            return "idle"
        return "late" if now >= self._until else None


def _used(pid: int) -> tuple[bytes, ...] | None:
    """Read a process's processor time, and how much it has read and written; None where the system does not tell."""
    try:
        times = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[11:13]
        return (*times, Path(f"/proc/{pid}/io").read_bytes())
    except OSError:
        return None


@cache
def tied() -> tuple[str, ...]:
    """Build the words before a command line that make the program end with teamchat; empty if the system has none."""
    setpriv = shutil.which("setpriv", path=os.defpath)
    if setpriv is None:
        return ()
    prefix = (setpriv, "--pdeathsig", "KILL", "--")
    try:
        tried = subprocess.run(
            (*prefix, "true"), env=for_child(os.environ), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, check=False
        )
    except OSError:
        return ()
    return prefix if tried.returncode == 0 else ()


def capture(argv: Sequence[str], env: Mapping[str, str], cwd: Path, timeout_s: float) -> tuple[int | None, bytes]:
    """Run a program until it ends, even if a child of it keeps its output open. Returns its exit code and its output.

    The code is None if it took longer than `timeout_s` and was killed. Raises `SpawnFailed`.
    """
    try:
        ended = run_alone(argv, cwd, env, timeout_s, errors=DEVNULL)
    except (OSError, ValueError) as error:
        raise SpawnFailed(start_error(error)) from error
    return ended.code, ended.out


def run_alone(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], seconds: float, given: bytes = b"", errors: int = STDOUT
) -> CommandEnd:
    """Run a program on the input `given`, and kill the rest of its process group when it ends.

    `out` has its text on stdout and, by default, on stderr. Raises `OSError` and `ValueError` if it cannot be started.
    """
    with TemporaryFile() as stdin, TemporaryFile() as out:
        stdin.write(given)
        stdin.seek(0)
        with _started(argv, cwd, env, stdin=stdin, stdout=out, stderr=errors) as process:
            late = not _ends_within(process, seconds)
            guardian.send_signal(process.pid, signal.SIGKILL, group=True)  # while its process still has the number
            code = process.wait()
        out.seek(0)
        return CommandEnd(None if late else code, out.read(_LONGEST), b"")


def _ends_within(process: Popen[bytes], seconds: float) -> bool:
    """Wait for the end of a process, without releasing its number. Return False if it takes longer than `seconds`."""
    until = time.monotonic() + seconds
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        if time.monotonic() > until:
            return False
        time.sleep(_LOOKS_S)
    return True


class Printing:
    """A program whose output is read from `out` while it runs."""

    def __init__(self, process: Popen[bytes], errors: IO[bytes]) -> None:
        assert process.stdout is not None
        self.out: IO[bytes] = process.stdout
        self._process, self._errors = process, errors
        self._late = False

    def end(self) -> CommandEnd:
        """Wait for its end. `out` is the unread output."""
        rest, code = self.out.read(), self._process.wait()
        self._errors.seek(0)
        return CommandEnd(None if self._late else code, rest, self._errors.read(_LONGEST))

    def time_out(self) -> None:
        self._late = True
        _kill(self._process)


@contextmanager
def printing(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], given: bytes = b"", seconds: float | None = None
) -> Iterator[Printing]:
    """Run a program on the input `given`; kill it after `seconds`, or at the end of the block if it still runs.

    Raises `OSError` and `ValueError` if it cannot be started.
    """
    with ExitStack() as stack:
        stdin, errors = (stack.enter_context(TemporaryFile()) for _ in range(2))
        stdin.write(given)
        stdin.seek(0)
        process = stack.enter_context(_started(argv, cwd, env, stdin=stdin, stdout=PIPE, stderr=errors))
        program = Printing(process, errors)
        if seconds is not None:
            clock = Timer(seconds, program.time_out)
            clock.start()
            stack.callback(clock.cancel)
        yield program


@contextmanager
def _started(argv: Sequence[str], cwd: Path, env: Mapping[str, str], **streams: Any) -> Iterator[Popen[bytes]]:
    with Popen(argv, cwd=cwd, env=for_child(env), start_new_session=True, **streams) as process:
        try:
            yield process
        finally:
            _kill(process)


def _kill(process: Popen[bytes]) -> None:
    if process.poll() is None:
        guardian.send_signal(process.pid, signal.SIGKILL, group=True)
