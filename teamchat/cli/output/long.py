"""Prints texts as they are, and cuts long ones for a person at a terminal."""

from __future__ import annotations

import sys

from teamchat.assemblers.truncation import byte_length
from teamchat.core.text.clean import visible
from teamchat.patterns import regex

MARGIN = "  | "
LONGEST = 64 * 1024  # characters of one text shown at a terminal; a person reads a few thousand
_LINE_END = regex("[\n\u2028\u2029]")


def write_text(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def write_block(head: str, text: str, whole: str = "") -> None:
    """Print a finished message: its speaker, its text, a blank line. `whole` is as for `as_shown`."""
    write_text(f"{head}:\n{as_shown(text, whole).strip()}\n\n")


def as_shown(text: str, whole: str) -> str:
    """Make the text visible. A terminal gets the beginning of a long one and its size.

    `whole` is the command that prints all of it.
    """
    if len(text) <= LONGEST or not sys.stdout.isatty():
        return visible(text)
    return f"{visible(text[:LONGEST])}\n… ({byte_length(text):,} bytes in all: {whole})"


def as_stored(text: str) -> str:
    """Return the whole text unchanged, but make it visible for a terminal, because it could deceive there."""
    return f"{visible(text)}\n" if sys.stdout.isatty() else text


def in_margin(text: str) -> str:
    """Indent each line of a text by `MARGIN`."""
    lines = _LINE_END.split(text)
    return "".join(f"{MARGIN}{line}\n" for line in (lines if lines[-1] else lines[:-1])) or "\n"
