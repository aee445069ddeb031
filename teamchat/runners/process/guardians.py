"""The guardians of this process: forked one by one by a server (`guardian.py`) that stays for all turns.

The server and the first guardian start when they are needed, or ahead (`prepare`). It runs no agent by itself, and ends
with this process. Whatever happens to it, the guardians that it has forked work on; a new server forks the next ones.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Sequence

from teamchat.runners.process import guardian

FORK_S = 10.0  # for the server to fork a guardian; it takes a millisecond, and an agent may have stopped or traced it
SERVER_END_S = 1.0  # for the server to end: it takes a millisecond


class Guardians:
    """Starts guardians, and the server when it is needed. For one thread."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ahead: socket.socket | None = None  # to the guardian of the next agent
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.end, at_once=True)

    def begin(self) -> None:
        """Start the server if there is none. Returns before it is ready. Raises `OSError`."""
        if self._control:
            return
        self.end()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._server = subprocess.Popen(
                    guardian.command(theirs.fileno()),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        self._control = ours

    def prepare(self) -> None:
        """Have the guardian of the next agent forked. Returns before it is ready. Raises `OSError`."""
        self.begin()
        assert self._control
        if self._ahead:
            return
        self._ahead, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])

    def guard(self, folder: int, streams: Sequence[int]) -> tuple[int, socket.socket]:
        """Start a guardian for an agent in this open folder with these streams: its number and the socket to it.

        Raises `OSError`; `ConnectionError` and `TimeoutError` if no server works.
        """
        try:
            return self._guard(folder, streams)
        except (ConnectionError, TimeoutError):  # it was killed, or traced
            return self._guard(folder, streams)

    def _guard(self, folder: int, streams: Sequence[int]) -> tuple[int, socket.socket]:
        try:
            self.prepare()
            assert self._ahead
            assert self._server
            self._server.send_signal(signal.SIGCONT)  # somebody may have stopped it
            self._ahead.settimeout(FORK_S)
            number = first_report(self._ahead)[0]["guardian"]
            guardian.send_signal(number, signal.SIGCONT)
            socket.send_fds(self._ahead, [b"+"], [folder, *streams])
        except BaseException as error:
            if isinstance(error, ConnectionError | TimeoutError):
                self.end(at_once=True)
            elif self._ahead:
                self._ahead.close()
                self._ahead = None
            raise
        ours, self._ahead = self._ahead, None
        return number, ours

    def dismiss(self) -> None:
        """Have the server end by itself, as no agent is to start soon: `end` takes a millisecond, and now less."""
        for control in filter(None, (self._control, self._ahead)):
            control.close()
        self._control = self._ahead = None

    def end(self, *, at_once: bool = False) -> None:
        """End the server. Its guardians work on."""
        server = self._server
        self.dismiss()
        self._server = None
        if not server:
            return
        if not at_once:
            server.send_signal(signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(SERVER_END_S)
        server.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # nobody can wait for the end of a traced process
            server.wait(SERVER_END_S)

    def _forget(self) -> None:
        """In a child of this process, which has no part in the server."""
        self.dismiss()
        if self._server:
            self._server.returncode = 0  # it is not the child's to wait for
            self._server = None


def first_report(control: socket.socket) -> tuple[dict[str, int], bytes]:
    """What the guardian at the other end reports first, and what came behind it. Blocks. Raises `OSError`."""
    data = b""
    while b"\n" not in data:
        if not (more := control.recv(4096)):
            raise ConnectionResetError
        data += more
    line, _, rest = data.partition(b"\n")
    report = json.loads(line)
    if "failed" in report:
        raise OSError(report["failed"])
    return report, rest


GUARDIANS = Guardians()
