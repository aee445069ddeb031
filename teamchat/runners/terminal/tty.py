"""A program on its own terminal: its output goes to the screen, and keys are pressed for it.

pexpect starts it, and the terminal is its controlling one. Reading and typing happen at the same time: otherwise a
program that echoes would wait for us, and we for it. Only the typist's process uses this module.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import time
from collections.abc import Callable
from typing import Any

import pexpect

from teamchat.runners.environment import for_child
from teamchat.runners.failures import ending
from teamchat.runners.terminal.screen import COLUMNS, ROWS, Screen

TICK_S = 0.1
CLOSED_S = 2.0  # how long a program may run on after it closed its terminal
MAX_TEXT = 16 * 1024 * 1024
MAX_LINE = 4000 if sys.platform == "linux" else 1000  # the longest line; the system's line editing takes 4096 or 1024
READ_BYTES = 64 * 1024


class Failed(Exception):
    """The failure of an answer: a `FailureKind`, and a reason that continues a sentence after the member's name."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind, self.reason = kind, reason


class Stopped(Exception):
    """The guardian requested the end."""


class Tty:
    """The program of `argv`, shown on `screen`; `on_life` is called when it writes, and when it takes typed text.

    Raises `Failed` when it cannot be started, and from everything that waits for it when it has ended. `stopped`
    makes the next wait raise `Stopped`.
    """

    def __init__(self, argv: list[str], on_life: Callable[[], None]) -> None:
        self.screen = Screen()
        self.stopped = False
        self._on_life = on_life
        self._typing = b""
        self._edited: list[Any] | None = None  # the terminal's state before its line editing was switched off
        self._child = _spawn(argv)
        self._fd: int = self._child.child_fd
        os.set_blocking(self._fd, False)

    def listen(self, seconds: float) -> bool:
        """Read the program's output, and type the pending text; return False if no output came within `seconds`."""
        until = time.monotonic() + seconds
        while True:
            if self.stopped:
                raise Stopped
            left = min(max(until - time.monotonic(), 0.0), TICK_S)
            readable, writable, _ = select.select([self._fd], [self._fd] if self._typing else [], [], left)
            if readable:
                self._read()
                return True
            if writable:
                with contextlib.suppress(OSError):  # it is full, or closed: reading shows which
                    self._typing = self._typing[os.write(self._fd, self._typing[:4096]) :]
                    self._on_life()
                return True
            if not self._child.isalive():  # a child of it may have the terminal open still
                raise self._over()
            if time.monotonic() >= until:
                return False

    def _read(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:  # EIO: nobody has the terminal open any more
            data = b""
        if not data:
            self._await_end(CLOSED_S)
            raise self._over()
        self.screen.feed(data)
        self._typing += b"".join(self.screen.answers)
        self.screen.answers.clear()
        self._on_life()
        if self.screen.size > MAX_TEXT:
            raise Failed("agent", f"wrote more than {MAX_TEXT >> 20} MiB to its terminal")

    def _over(self) -> Failed:
        """Build the failure of a program that has exited or closed its terminal: no more output will come."""
        if self._child.isalive():
            how = "closed its terminal"
        else:
            how = ending(self._child.exitstatus if self._child.signalstatus is None else -self._child.signalstatus)
        said = self.last_line()
        return Failed("agent", f"{how} before its prompt came" + (f": {said}" if said else ""))

    def last_line(self) -> str:
        """Return the end of the last line that is not blank, of at most 200 characters."""
        return next((line.strip()[-200:] for line in reversed(self.screen.rows) if line.strip()), "")

    def send(self, keys: bytes) -> None:
        """Press these keys. Returns when the program's terminal has taken all of them."""
        self._unlimit(len(keys))
        self._typing += keys
        while self._typing:
            self.listen(TICK_S)

    def _unlimit(self, length: int) -> None:
        """Switch off the system's echo, and its line editing if it would cut a long line."""
        state = termios.tcgetattr(self._fd)
        if not state[3] & termios.ICANON:
            return
        state[3] &= ~termios.ECHO
        if length > MAX_LINE:
            self._edited = termios.tcgetattr(self._fd)
            state[3] &= ~termios.ICANON
            state[6][termios.VMIN], state[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSANOW, state)

    @property
    def edits_itself(self) -> bool:
        """Whether the program has switched off the system's line editing, and shows typed text itself."""
        return self._edited is None and not termios.tcgetattr(self._fd)[3] & termios.ICANON

    def relimit(self) -> bool:
        """Restore the system's line editing, which an end of file needs; False if it was never off."""
        if self._edited is None:
            return False
        termios.tcsetattr(self._fd, termios.TCSANOW, self._edited)
        return True

    def ends_after(self, keys: bytes, seconds: float) -> bool:
        """Press these keys, and return whether the program ends within `seconds`."""
        with contextlib.suppress(Failed):
            self.send(keys)
        return self._await_end(seconds)

    def hang_up(self, seconds: float) -> None:
        with contextlib.suppress(OSError):
            os.kill(self._child.pid, signal.SIGHUP)
        self._await_end(seconds)

    def _await_end(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._child.isalive():
            if time.monotonic() > until:
                return False
            with contextlib.suppress(OSError):
                os.read(self._fd, READ_BYTES)  # the program may wait for that
            time.sleep(0.01)
        return True


def _spawn(argv: list[str]) -> Any:
    program, *arguments = argv
    # without arguments pexpect takes the program for a whole command line
    command = program if arguments else re.sub(r"([\s'\"\\])", r"\\\1", program)
    env = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    try:
        return pexpect.spawn(
            command, arguments, env=for_child(env), echo=False, dimensions=(ROWS, COLUMNS), preexec_fn=_as_a_shell_would
        )
    except (OSError, pexpect.ExceptionPexpect) as error:
        raise Failed("missing", f"could not be started: {error}") from None


def _as_a_shell_would() -> None:
    """Restore signals that Python ignores; the program would inherit that."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
