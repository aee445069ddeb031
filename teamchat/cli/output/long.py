"""Prints texts of any length in pieces, which take little memory, and cuts them for a person at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from teamchat.assemblers.truncation import byte_length
from teamchat.core.text.clean import VisibleCleaner
from teamchat.patterns import regex

PIECE = 1024 * 1024  # characters
MARGIN = "  | "
LONGEST = 64 * 1024  # characters of one text shown at a terminal; a person reads a few thousand
_LINE_END = regex("[\n\u2028\u2029]")


def text_pieces(text: str) -> Iterator[str]:
    return (text[at : at + PIECE] for at in range(0, len(text), PIECE))


def write_pieces(pieces: Iterable[str]) -> None:
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.flush()


def write_block(head: str, text: str, whole: str = "") -> None:
    """Print a finished message: its speaker, its text, a blank line. `whole` is as for `as_shown`."""
    pieces = as_shown(text_pieces(text), lambda: byte_length(text), whole)
    write_pieces(chain((f"{head}:\n",), stripped(pieces), ("\n\n",)))


def as_shown(pieces: Iterable[str], size: Callable[[], int], whole: str) -> Iterator[str]:
    """The pieces of a text, made visible. A terminal gets the beginning of a long text and its `size` in bytes.

    `whole` is the command that prints all of it.
    """
    cleaner, shown = VisibleCleaner(), 0
    for piece in pieces:
        if sys.stdout.isatty() and shown + len(piece) > LONGEST:
            yield cleaner.push(piece[: LONGEST - shown])
            yield f"\n… ({size():,} bytes in all: {whole})"
            return
        shown += len(piece)
        yield cleaner.push(piece)
    yield cleaner.flush()


def whole(pieces: Iterable[str]) -> Iterator[str]:
    """All of a text: unchanged, except at a terminal, which it could deceive."""
    if not sys.stdout.isatty():
        yield from pieces
        return
    yield from all_shown(pieces)
    yield "\n"


def all_shown(pieces: Iterable[str]) -> Iterator[str]:
    """All of a text, made visible."""
    cleaner = VisibleCleaner()
    yield from (cleaner.push(piece) for piece in pieces)
    yield cleaner.flush()


def stripped(pieces: Iterable[str]) -> Iterator[str]:
    """The text of the pieces without the space around it."""
    held: list[str] = []  # space that may turn out to be at the end
    begun = False
    for piece in pieces:
        body = piece.rstrip() if begun else piece.strip()
        if body:
            begun = True
            yield "".join((*held, body))
            held = [piece[len(piece.rstrip()) :]]
        elif begun:
            held.append(piece)


def in_margin(pieces: Iterable[str]) -> Iterator[str]:
    """The lines of a text, each indented by `MARGIN`."""
    before, held = MARGIN, ""
    for piece in pieces:
        text = held + _LINE_END.sub("\n", piece)
        held = "\n" if text.endswith("\n") else ""
        if body := text.removesuffix("\n"):
            yield before + body.replace("\n", f"\n{MARGIN}")
            before = ""
        elif held:
            yield before
            before = ""
    yield "\n"
