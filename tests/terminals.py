"""The program under test at a terminal: pexpect's, forked where that makes no difference but time (`forks.py`)."""

from __future__ import annotations

import os
import termios
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pexpect
from ptyprocess import PtyProcess

from tests.forks import RUN, can_fork, forked

SIZE = (24, 80)  # that of pexpect


class Terminal(pexpect.spawn):  # type: ignore[misc]
    """Starts a command line in a session and at a terminal of its own."""

    def _spawnpty(
        self,
        args: Sequence[bytes],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        echo: bool = True,
        preexec_fn: Callable[[], None] | None = None,
        dimensions: tuple[int, int] = SIZE,
    ) -> Any:
        words, env = [os.fsdecode(arg) for arg in args], os.environ if env is None else env
        if tuple(words[: len(RUN)]) != RUN or preexec_fn or not can_fork(env):
            return super()._spawnpty(args, env=env, cwd=cwd, echo=echo, preexec_fn=preexec_fn, dimensions=dimensions)
        ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, dimensions)
        if not echo:
            modes = termios.tcgetattr(theirs)
            modes[3] &= ~termios.ECHO
            termios.tcsetattr(theirs, termios.TCSANOW, modes)
        pid = forked(words[len(RUN) :], env, cwd, [theirs] * 3, session=True, terminal=True)
        os.close(theirs)
        return PtyProcess(pid, ours)
