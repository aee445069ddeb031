"""What a person searches for, as FTS5 is asked for it, and the piece of a message that shows it. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from teamchat.core.text.words import APART, spaced
from teamchat.patterns import regex

MOST_PARTS = 32  # of a search; FTS5 is slow with thousands
BEFORE, AFTER = 60, 180  # characters of a snippet before and after the first word that was found
_PART = regex(r'"([^"]*)"?(\*)?|([^\s"]+)')
_LETTER = rf"[^\W_{APART}]"  # of a word with others
_WORDS = regex(rf"{_LETTER}+|[^\W_]")
_END = f"(?!{_LETTER})"
_APART = regex(f"[{APART}]")
_SPACE = regex(r"\s+")


class Part(NamedTuple):
    """Words that follow each other in a message. With `prefix` the last one is the beginning of a word."""

    words: str
    prefix: bool = False


class Piece(NamedTuple):
    """A part of a snippet on one line. `found` says that it was searched."""

    text: str
    found: bool


def search_parts(text: str) -> tuple[Part, ...]:
    """The words, "phrases" and beginnings (`prefix*`) of a search. A message must have all of them.

    What has no letter and no digit is left out.
    """
    written = text.encode(errors="replace").decode().replace("\0", " ")
    return tuple(islice(_parts(written), MOST_PARTS))


def _parts(text: str) -> Iterator[Part]:
    for found in _PART.finditer(text):
        words = found[1] if found[3] is None else found[3]
        if _WORDS.search(words):
            yield Part(words, bool(found[2]) or words.endswith("*"))


def match_of(parts: Sequence[Part]) -> str:
    """What FTS5 is asked for: a quoted string is words to it, so no text can be its syntax."""
    return " ".join(f'"{spaced(part.words)}"' + " *" * part.prefix for part in parts)


def snippet(text: str, parts: Sequence[Part]) -> tuple[Piece, ...]:
    """The beginning of what was found in a text, with what is around it; the text's beginning if nothing is found.

    FTS5's own snippet takes minutes for a long text in which every word is found.
    """
    folded = _folded(text)
    patterns = [_pattern(part) for part in parts]
    places = (_first(folded, part, pattern) for part, pattern in zip(parts, patterns, strict=True))
    first = next((place for place in places if place >= 0), 0)
    begin, end = max(first - BEFORE, 0), first + AFTER
    if begin and (space := _SPACE.search(text, begin, first)):
        begin = space.end()
    pieces = _pieces(text[begin:end], folded[begin:end], patterns)
    around = [Piece("…", found=False)] * (begin > 0), [Piece("…", found=False)] * (end < len(text))
    return (*around[0], *pieces, *around[1])


def _pieces(text: str, folded: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[Piece]:
    """The text, cut around what was found."""
    spans = sorted(found.span() for pattern in patterns for found in pattern.finditer(folded))
    at = 0
    for begin, end in spans:
        if begin > at:
            yield Piece(_SPACE.sub(" ", text[at:begin]), found=False)
        if begin >= at:
            yield Piece(_SPACE.sub(" ", text[begin:end]), found=True)
            at = end
    if at < len(text):
        yield Piece(_SPACE.sub(" ", text[at:]), found=False)


def _first(folded: str, part: Part, pattern: re.Pattern[str]) -> int:
    """Where a part is found first; -1 if it is not. `find` is ten times as fast as a pattern."""
    word, at = _words_of(part)[0], -1
    while (at := folded.find(word, at + 1)) >= 0:
        if pattern.match(folded, at):
            return at
    return -1


def _pattern(part: Part) -> re.Pattern[str]:
    *before, last = _words_of(part)
    return re.compile(r"[\W_]*".join((*map(_alone, before), _alone(last, f"{_LETTER}*" if part.prefix else _END))))


def _alone(word: str, end: str = _END) -> str:
    return re.escape(word) if _APART.match(word) else f"(?<!{_LETTER}){re.escape(word)}{end}"


def _words_of(part: Part) -> list[str]:
    return _WORDS.findall(_folded(part.words))


class _Fold(dict[int, str]):
    """Each character in lower case and without its diacritics, as one character."""

    def __missing__(self, code: int) -> str:
        if _APART.match(chr(code)):  # FTS5 changes none of these
            self[code] = chr(code)
            return chr(code)
        base = unicodedata.normalize("NFD", chr(code))[0].lower()
        self[code] = folded = base if len(base) == 1 else chr(code)
        return folded


_FOLD = _Fold()


def _folded(text: str) -> str:
    """The text as FTS5 compares it, character by character."""
    return text.lower() if text.isascii() else text.translate(_FOLD)
