"""Ctrl-C before and after a command runs. Imported before anything else, so it imports only built-in modules."""

from __future__ import annotations

from _signal import (  # type: ignore[import-not-found]  # what `signal` is made of, without its enums
    SIGINT,
    default_int_handler,
    getsignal,
    signal,
)
from posix import _exit

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
    _exit(INTERRUPTED)
