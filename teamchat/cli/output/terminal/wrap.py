"""Breaks text into lines for a width in columns. Time and memory grow with the text alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

from rich.cells import cell_len

from teamchat.patterns import regex

TAB = 4
_WORDS = regex(r" *+[^ ]++| ++")
_SPACES = regex(" ++")
_STYLE = regex("\x1b\\[[0-9;]*m")
_NARROW = regex("[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f]*+")  # Latin, Greek, Cyrillic


def cells(text: str) -> int:
    """How many columns the text takes at most. Terminals disagree about some emoji."""
    return len(text) if _is_narrow(text) else sum(map(_cell, text))


def _cells_up_to(text: str, most: int) -> int:
    """`cells`, or any number over `most` if there are more: no more of a long word is looked at."""
    if _is_narrow(text):
        return len(text)
    used = at = 0
    while at < len(text) and used <= most:
        used += sum(map(_cell, text[at : at + most + 1]))
        at += most + 1
    return used


def _is_narrow(text: str) -> bool:
    """True of most texts: each character takes one column, which is quick to find."""
    return text.isascii() or _NARROW.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _cell(character: str) -> int:
    return 1 if character == "\ufe0f" else cell_len(character)  # it makes the symbol before it an emoji, which is wide


def styled_cells(text: str) -> int:
    """`cells` of a text with styles."""
    return cells(_STYLE.sub("", text))


def wrapped(text: str, width: int) -> Iterator[str]:
    """The lines of a text, each at most `width` columns wide, broken at spaces; a longer word is broken where it must.

    A continued line has the indentation of its beginning, if that leaves room.
    """
    if _as_it_is(text, width):
        return iter(text.split("\n"))  # a text of millions of short lines takes no seconds
    return chain.from_iterable(_line(line.rstrip(), width) for line in text.expandtabs(TAB).split("\n"))


def wrapped_text(text: str, width: int) -> str:
    """The lines of `wrapped` as one text."""
    return text if _as_it_is(text, width) else "\n".join(wrapped(text, width))


def _as_it_is(text: str, width: int) -> bool:
    """True of ASCII text without a tab, a longer line or a space before a line end: each line is shown as it is."""
    plain = width > 0 and text.isascii() and "\t" not in text
    return plain and _lines_that_fit(width).fullmatch(text) is not None


@lru_cache(maxsize=16)
def _lines_that_fit(width: int) -> re.Pattern[str]:
    line = rf"[^\n]{{1,{width}}}+(?<![ \x0b\f\r\x1c-\x1f])"
    return re.compile(rf"\n*+(?:{line}\n++)*+(?:{line})?+")


def _line(line: str, width: int) -> Iterable[str]:
    if _cells_up_to(line, width) <= width:
        return (line,)
    return _broken_narrow(line, width) if width > 0 and _NARROW.fullmatch(line) else _broken(line, width)


def _broken_narrow(line: str, width: int) -> Iterator[str]:
    """`_broken` where each character takes one column, so no word is looked at to find the end of a line."""
    body, indent = _indented(line, width)
    room = width - len(indent)
    at, begins = 0, True  # a word begins at `at`
    while at < len(body):
        end, before = _end_of_words(body, at, room), indent
        if end < 0 and begins:  # it may fit where no indentation is
            end, before = _end_of_words(body, at, width), ""
        begins = end >= 0
        end = end if begins else at + room
        yield before + body[at:end].rstrip(" ")
        gap = _SPACES.match(body, end)
        at = gap.end() if gap else end


def _end_of_words(body: str, at: int, most: int) -> int:
    """Behind the words from `at` on that take up to `most` columns; -1 if the first one takes more."""
    return body.rfind(" ", at, at + most + 1) if len(body) - at > most else len(body)


def _broken(line: str, width: int) -> Iterator[str]:
    body, indent = _indented(line, width)
    done, used = [indent], len(indent)
    for found in _WORDS.finditer(body):
        word = found[0]
        size = _cells_up_to(word, width)
        if used + size > width and used > len(indent):
            yield "".join(done).rstrip()
            word = word.lstrip(" ")
            size = _cells_up_to(word, width)
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
    """The line without its indentation, and that of its parts."""
    body = line.lstrip(" ")
    indent = line[: len(line) - len(body)]
    return body, indent if len(indent) <= width // 2 else ""


def folded(word: str, width: int) -> list[str]:
    """The pieces of a word, each at most `width` columns wide; a wide character may need two."""
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
    """The text in one line of at most `width` columns; a cut one ends in `…`."""
    line = " ".join(text.split())
    if cells(line) <= width:
        return line
    begin = folded(line, max(width - 1, 1))[0].rstrip()
    return begin + "…" if cells(begin) < width else "…" * bool(width > 0)


def cut_before(text: str, width: int) -> str:
    """The end of the text in one line of at most `width` columns, from a word on; a cut one begins with `…`."""
    line = " ".join(text.split())
    if cells(line) <= width:
        return line
    while cells(line) > width - 1 and line:
        line = line.partition(" ")[2]
    return f"…{line}"
