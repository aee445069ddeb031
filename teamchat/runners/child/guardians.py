"""Starts guardians: an interpreter for each (`guardian.py`), that of the first agent while the program is loaded.

In a group each further one starts while the agent before it runs: the wait for an interpreter would block all else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Sequence

from teamchat.runners.child import guardian
from teamchat.runners.environment import for_child

START_S = 30.0  # how long a guardian may take to start; it takes 20 milliseconds
Guardian = tuple["subprocess.Popen[bytes]", socket.socket]
"""The process of a guardian, and the socket to it."""


class Guardians:
    """Starts guardians. For one thread."""

    def __init__(self) -> None:
        self._ahead: Guardian | None = None
        self._expected = 0

    def expect(self, agents: int) -> None:
        """Start guardians ahead for `agents` agents."""
        self._expected = agents

    def prepare(self) -> None:
        """Start the guardian of the next agent. Returns before it is ready. Raises `OSError`."""
        self._ahead = self._ahead or _started()

    def guard(self, folder: int, streams: Sequence[int]) -> Guardian:
        """Start a guardian for an agent in this open folder with these streams. Raises `OSError`."""
        ahead, self._ahead = self._ahead, None
        given = None
        if ahead:
            with contextlib.suppress(ConnectionError):  # somebody has killed it
                given = _given(ahead, folder, streams)
        given = given or _given(_started(), folder, streams)
        self._expected -= 1
        if self._expected > 0:
            with contextlib.suppress(OSError):  # the next agent tries once more, and tells
                self.prepare()
        return given

    def dismiss(self) -> None:
        """Let the guardian that was started ahead end: no agent will start soon."""
        if self._ahead:
            end(*self._ahead)
            self._ahead = None


def _started() -> Guardian:
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = subprocess.Popen(
                guardian.command(theirs.fileno()),
                env=for_child(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    return process, ours


def _given(started: Guardian, folder: int, streams: Sequence[int]) -> Guardian:
    process, control = started
    process.send_signal(signal.SIGCONT)  # somebody may have stopped it
    try:
        socket.send_fds(control, [b"+"], [folder, *streams])
        control.settimeout(START_S)
        if not control.recv(1):  # confirms that it has the descriptors
            raise ConnectionResetError  # noqa: TRY301 (as a broken socket does)
    except BaseException:
        end(*started)
        raise
    return started


def end(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    """Close the socket to a guardian that guards nothing, or nothing any more, and wait a second for its end."""
    control.close()
    with contextlib.suppress(subprocess.TimeoutExpired):  # nobody can wait for the end of a traced process
        process.wait(1.0)


GUARDIANS = Guardians()
