"""The standard streams, whatever the caller made of them: closed, of another encoding, or read by nobody any more."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


def prepare() -> None:
    """Open what the caller has closed (`<&-`, `>&-`), and let every text be written.

    The number of a closed stream would go to the next file that is opened, to be read or written by mistake.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # agents write every script, whatever this locale can
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def silence(stream: TextIO) -> None:
    """Nobody reads it any more, or its disk is full: what is still in it goes nowhere when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
