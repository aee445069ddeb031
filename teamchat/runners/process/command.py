"""Runs a program such as git: to its end, or read while it prints. Agents are started by `process.py`.

Each program has its own session, so that Ctrl-C reaches only teamchat. If it still runs when its caller is done with
it, its whole process group is killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any

from msgspec import Struct

from teamchat.runners.process import guardian
from teamchat.runners.process.start_errors import SpawnFailed, start_error

_LONGEST = 1 << 16  # bytes of what `capture` returns, and of stderr of a program that is read while it prints

_LOOKS_S = 0.02  # seconds between two looks at a program that runs


class Ended(Struct, frozen=True):
    """How a program ended. `code` is its exit code, None if it took too long and was killed."""

    code: int | None
    out: bytes
    err: bytes


def run(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], seconds: float, given: bytes = b"", held: Sequence[int] = ()
) -> Ended:
    """Run a program on the input `given` until it and its output end. It inherits the descriptors `held`.

    The output of a program that took too long is lost. Raises `OSError` and `ValueError` if it cannot be started.
    """
    with _started(argv, cwd, env, stdin=PIPE, stdout=PIPE, stderr=PIPE, pass_fds=held) as process:
        try:
            out, err = process.communicate(given, seconds)
        except TimeoutExpired:
            return Ended(None, b"", b"")
        return Ended(process.returncode, out, err)


def capture(argv: Sequence[str], env: Mapping[str, str], cwd: Path, timeout_s: float) -> tuple[int | None, bytes]:
    """Run a program until it ends, even if a child of it keeps its output open. Returns its exit code and its output.

    The code is None if it took longer than `timeout_s` and was killed. Raises `SpawnFailed`.
    """
    code: int | None = None
    with TemporaryFile() as out:
        try:
            with (
                _started(argv, cwd, env, stdin=DEVNULL, stdout=out, stderr=DEVNULL) as process,
                suppress(TimeoutExpired),
            ):
                code = process.wait(timeout_s)
        except (OSError, ValueError) as error:
            raise SpawnFailed(start_error(error)) from error
        out.seek(0)
        return code, out.read(_LONGEST)


def run_alone(argv: Sequence[str], cwd: Path, env: Mapping[str, str], seconds: float, given: bytes) -> Ended:
    """Run a program on the input `given`, and kill what its process group has left when it ends.

    `out` has what it wrote to stdout and stderr. Raises `OSError` and `ValueError` if it cannot be started.
    """
    with TemporaryFile() as stdin, TemporaryFile() as out:
        stdin.write(given)
        stdin.seek(0)
        with _started(argv, cwd, env, stdin=stdin, stdout=out, stderr=out) as process:
            late = not _ends_within(process, seconds)
            guardian.send_signal(process.pid, signal.SIGKILL, group=True)  # while its process still has the number
            code = process.wait()
        out.seek(0)
        return Ended(None if late else code, out.read(_LONGEST), b"")


def _ends_within(process: Popen[bytes], seconds: float) -> bool:
    """Wait for the end of a process, without releasing its number. False if it takes longer."""
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

    def end(self) -> Ended:
        """Wait for its end. `out` is what has not been read yet."""
        rest, code = self.out.read(), self._process.wait()
        self._errors.seek(0)
        return Ended(None if self._late else code, rest, self._errors.read(_LONGEST))

    def time_out(self) -> None:
        self._late = True
        _kill(self._process)


@contextmanager
def printing(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], given: bytes = b"", seconds: float | None = None
) -> Iterator[Printing]:
    """A program on the input `given`, killed after `seconds`, and at the end of the block if it has not ended.

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
    with Popen(argv, cwd=cwd, env=env, start_new_session=True, **streams) as process:
        try:
            yield process
        finally:
            _kill(process)


def _kill(process: Popen[bytes]) -> None:
    if process.poll() is None:
        guardian.send_signal(process.pid, signal.SIGKILL, group=True)
