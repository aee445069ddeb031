"""Breaks text into lines for a width in columns. Time and memory grow with the text alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

from rich.cells import cell_len

from teamchat.patterns import regex

TAB = 4
_WORDS = regex(r" *+[^ ]++| ++")
_STYLE = regex("\x1b\\[[0-9;]*m")
_NARROW = regex("[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f]*+")  # Latin, Greek, Cyrillic


def cells(text: str) -> int:
    """Return how many columns the text takes at most. Terminals disagree about some emoji."""
    return len(text) if _is_narrow(text) else sum(map(_cell, text))


def _is_narrow(text: str) -> bool:
    """Whether each character takes one column, as in most texts; it is quick to find."""
    return text.isascii() or _NARROW.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _cell(character: str) -> int:
    return 1 if character == "\ufe0f" else cell_len(character)  # it makes the symbol before it an emoji, which is wide


def styled_cells(text: str) -> int:
    """Return the `cells` of a text with styles."""
    return cells(_STYLE.sub("", text))


def wrapped(text: str, width: int) -> Iterator[str]:
    """Wrap a text into lines of at most `width` columns, at spaces; a longer word is broken where it must be.

    A continued line has the indentation of its beginning, if that leaves room.
    """
    return chain.from_iterable(_line(line.rstrip(), width) for line in text.expandtabs(TAB).split("\n"))


def _line(line: str, width: int) -> Iterable[str]:
    return (line,) if cells(line) <= width else _broken(line, width)


def _broken(line: str, width: int) -> Iterator[str]:
    body, indent = _indented(line, width)
    done, used = [indent], len(indent)
    for match in _WORDS.finditer(body):
        word = match[0]
        size = cells(word)
        if used + size > width and used > len(indent):
            yield "".join(done).rstrip()
            word = word.lstrip(" ")
            size = cells(word)
            done, used = [indent], len(indent)
        if used + size > width >= size:  # it fits where no indentation is
            done, used = [], 0
        elif used + size > width:
            *whole, word = folded(word.lstrip(" "), width - len(indent))
            yield from (indent + piece for piece in whole)
            size = cells(word)
        done.append(word)
        used += size
    yield "".join(done).rstrip()


def _indented(line: str, width: int) -> tuple[str, str]:
    """Return the line without its indentation, and the indentation of its parts."""
    body = line.lstrip(" ")
    indent = line[: len(line) - len(body)]
    return body, indent if len(indent) <= width // 2 else ""


def folded(word: str, width: int) -> list[str]:
    """Break a word into pieces of at most `width` columns; a wide character may need two."""
    if _is_narrow(word):
        return [word[at : at + width] for at in range(0, len(word), width)] or [""]
    pieces, begin, used = list[str](), 0, 0
    for at, character in enumerate(word):
        size = _cell(character)
        if used + size > width and at > begin:
            pieces.append(word[begin:at])
            begin, used = at, 0
        used += size
    return [*pieces, word[begin:]]


def cut(text: str, width: int) -> str:
    """Put the text on one line of at most `width` columns; a cut one ends in `…`."""
    line = " ".join(text.split())
    if cells(line) <= width:
        return line
    begin = folded(line, max(width - 1, 1))[0].rstrip()
    return begin + "…" if cells(begin) < width else "…" * bool(width > 0)


def cut_before(text: str, width: int) -> str:
    """Put the end of the text, from a word on, on a line of at most `width` columns; a cut one begins with `…`."""
    line = " ".join(text.split())
    if cells(line) <= width:
        return line
    while cells(line) > width - 1 and line:
        line = line.partition(" ")[2]
    return f"…{line}"
