"""Ctrl-C before and after a command runs, and what ends process 1. Imported first, so it imports little."""

from __future__ import annotations

import os
from signal import SIG_DFL, SIGHUP, SIGINT, SIGTERM, default_int_handler, getsignal, signal

SIGNALLED = 128  # and the number of the signal: the exit codes of `ExitCode`, whose module is not imported yet


def end_at_once() -> None:
    """Let Ctrl-C end the program silently: an import could catch and change an exception.

    Everything that is written survives, as after `kill -9`. If the caller ignores Ctrl-C, it stays ignored.
    """
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, _end)
    if os.getpid() == 1:  # the first of a container, to which the kernel gives no signal that it does not handle
        for number in (SIGTERM, SIGHUP):
            if getsignal(number) is SIG_DFL:
                signal(number, _end)


def raise_again() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` from now on: there is something to clean up."""
    if getsignal(SIGINT) is _end:
        signal(SIGINT, default_int_handler)


def _end(number: int, _frame: object) -> None:
    os._exit(SIGNALLED + number)
