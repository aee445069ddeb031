"""Ctrl-C before and after a command runs. Imported before anything else, so it imports little."""

from __future__ import annotations

import os
from signal import SIGINT, default_int_handler, getsignal, signal

INTERRUPTED = 130  # `ExitCode.INTERRUPTED`, whose module is not imported yet


def end_at_once() -> None:
    """Let Ctrl-C end the program silently: an import could catch and change an exception.

    Everything that is written survives, as after `kill -9`. If the caller ignores Ctrl-C, it stays ignored.
    """
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, _end)


def raise_again() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` from now on: there is something to clean up."""
    if getsignal(SIGINT) is _end:
        signal(SIGINT, default_int_handler)


def _end(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)
