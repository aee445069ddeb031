"""The one place that starts processes: an agent under its guardian, with regular files for stdin, stdout and stderr.

Regular files are what keeps output whole. Claude and Gemini throw away unread pipe output when they exit, and after a
crash of teamchat a file still holds the partial text. The prompt is complete before the process starts, so no writer
can block on an agent that never reads. The end of the turn is the end of the process, never the end of a stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from teamchat.runners.base import StopRule

GUARDIAN = Path(__file__).with_name("guardian.py")
POLL_S = 0.01
READ_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start. `folder` gets the files `stdout` and `stderr`.

    `scratch` is removed when the whole tree is gone.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes
    folder: Path
    scratch: Path | None = None
    stop: StopRule = field(default_factory=StopRule)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes as they came, from one stream, `at` seconds after the start."""

    stream: Literal["out", "err"]
    data: bytes
    at: float


@dataclass(frozen=True, slots=True)
class Exit:
    """How the process ended: its code (a signal is negative) and the names of what had to be ended after it."""

    code: int
    left: tuple[str, ...] = ()


class SpawnFailed(Exception):
    """The operating system refused to start the program; the message says why."""


class Running(Protocol):
    """A process that runs, really or from a recording."""

    def chunks(self) -> AsyncIterator[Chunk]:
        """Output as it comes; ends when the process has ended and everything it wrote has been given."""
        ...

    def stop(self, *, hard: bool = False) -> None:
        """Ask for the end: the CLI's soft signal first, or SIGKILL at once. Returns immediately."""
        ...

    @property
    def exit(self) -> Exit | None: ...


class Launcher(Protocol):
    """Starts processes; a replay puts recordings in its place. Raises `SpawnFailed`."""

    def __call__(self, what: Launch, /) -> Running: ...


class Process:
    """An agent under its guardian."""

    def __init__(self, launch: Launch) -> None:
        self.started = time.monotonic()
        self.pid: int | None = None
        self.exit: Exit | None = None
        self._buffer = b""
        launch.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._readers = {stream: self._create(launch.folder / f"std{stream}") for stream in ("out", "err")}
        self._control, theirs = socket.socketpair()
        self._guardian = self._spawn(launch, theirs)
        self._send(
            argv=launch.argv,
            env=dict(launch.env),
            signal=launch.stop.signal.value,
            group=launch.stop.group,
            grace=launch.stop.grace_s,
            remove=str(launch.scratch) if launch.scratch else None,
        )
        self._first_report()
        self._control.setblocking(False)

    @staticmethod
    def _create(path: Path) -> BinaryIO:
        os.close(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
        return path.open("rb", buffering=0)

    def _spawn(self, launch: Launch, theirs: socket.socket) -> subprocess.Popen[bytes]:
        with contextlib.ExitStack() as files:
            files.callback(theirs.close)
            stdin = files.enter_context(tempfile.TemporaryFile(dir=launch.folder))
            stdin.write(launch.stdin)
            stdin.seek(0)
            # O_APPEND, so that children which inherit the descriptor never write over each other
            out, err = (files.enter_context((launch.folder / f"std{name}").open("ab")) for name in ("out", "err"))
            try:
                return subprocess.Popen(
                    [sys.executable, "-I", "-S", str(GUARDIAN), str(theirs.fileno())],
                    cwd=launch.cwd,
                    stdin=stdin,
                    stdout=out,
                    stderr=err,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                self._control.close()
                raise SpawnFailed(str(error)) from error

    def _send(self, **order: object) -> None:
        self._control.sendall(json.dumps(order).encode() + b"\n")

    def _first_report(self) -> None:
        """Wait for the guardian to say that the agent runs: a few milliseconds, so this blocks."""
        while b"\n" not in self._buffer:
            data = self._control.recv(4096)
            if not data:
                self._close()
                raise SpawnFailed("the guardian process ended before it could start the agent")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        report = json.loads(line)
        if "failed" in report:
            self._close()
            raise SpawnFailed(report["failed"])
        self.pid = report["pid"]

    def stop(self, *, hard: bool = False) -> None:
        with contextlib.suppress(OSError):  # it may have ended by itself
            self._control.send(b"kill\n" if hard else b"stop\n")

    def _poll_exit(self) -> None:
        """Take the guardian's last report, or notice that the guardian itself was killed."""
        try:
            data = self._control.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._buffer += data
        if b"\n" in self._buffer:
            report = json.loads(self._buffer.partition(b"\n")[0])
            self.exit = Exit(report["exit"], tuple(report["left"]))
        elif not data:
            self._kill_unguarded()
            self.exit = Exit(-9, ())

    def _kill_unguarded(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.pid or 0, 9)

    async def chunks(self) -> AsyncIterator[Chunk]:
        try:
            while True:
                over = self.exit is not None  # looked up before reading: what was written until then is read below
                for stream, reader in self._readers.items():
                    while data := reader.read(READ_BYTES):
                        yield Chunk("out" if stream == "out" else "err", data, time.monotonic() - self.started)
                if over:
                    return
                await asyncio.sleep(POLL_S)
                self._poll_exit()
        finally:
            self._close()

    def _close(self) -> None:
        """Closing the control socket ends whatever still runs; then the guardian itself is waited for."""
        self._control.close()
        for reader in self._readers.values():
            reader.close()
        self._guardian.wait()


def launch(what: Launch) -> Running:
    """Start a real process. Raises `SpawnFailed`."""
    return Process(what)
