"""The words that make a text searchable, and the search in the syntax of FTS5.

FTS5's `unicode61` takes a run of a script without spaces, such as Chinese or Thai, for one word, together with adjacent
letters and digits. So those characters are set apart where a text is indexed (`spaced`), and searched in adjacent pairs
or as phrases. It also knows the accents of few scripts (SQLite 3.40: no Greek ones, none of ё, one of two on a
Vietnamese letter), so a text loses them before.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import chain, islice
from operator import add, itemgetter
from typing import NamedTuple

from teamchat.patterns import regex

TOKENIZER = "porter unicode61 remove_diacritics 2"  # porter finds `tokens` by `token`
MOST = (64, 32, 16)  # words of the first text, the second, ...
LONGEST = 64  # characters of a word; a longer one is data
_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_THAI_TO_KHMER = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # and Lao, Burmese
APART = f"{_CJK}\U00020000-\U0003ffff{_THAI_TO_KHMER}"
"""The characters of scripts that are written without spaces, and of Korean, for a class of a pattern."""
_APART = regex(f"[{APART}]")
_RUN = regex(rf"[{APART}]++|[^\W_{APART}]++")
_COMMON = """
    a about after all also an and any are as at be because been before but by can could did do does doing done for
    from get give go had has have he her here him his how if in into is it its just let like make me more most my
    need no not now of on one only or other our out over please said say see she should so some such tell than
    thank thanks that the their them then there these they this those to too up us use very want was we were what
    when where which while who why will with would yes you your
"""
STOP = frozenset(_COMMON.split())
"""English words that say nothing about a text's subject. In other languages bm25 gives common words no weight."""


def spaced(text: str) -> str:
    """Remove the accents of `text`, and set each character of the scripts without spaces apart as a word."""
    return text if text.isascii() else _APART.sub(r" \g<0> ", _folded(unicodedata.normalize("NFC", text)))


def match_query(*texts: str | None) -> str | None:
    """Build the FTS5 query for these texts (three at most): any of their words. None if there are no words."""
    words = chain.from_iterable(_most_common(text or "", most) for text, most in zip(texts, MOST, strict=False))
    # a quoted string is taken for words, whatever its content: no text can be syntax
    return " OR ".join(f'"{spaced(word).strip()}"' for word in dict.fromkeys(words)) or None


def _most_common(text: str, count: int) -> list[str]:
    """List the most common words; equally common ones keep their order."""
    counted = dict[str, int]()  # no Counter: each word that comes once costs it a call
    for written, times in Counter(_RUN.findall(text)).items():  # a long text has few different ones
        run = written.casefold()
        if not run.isascii() and _APART.match(run):
            run = "".join(filter(str.isalnum, run))  # FTS5 drops tones and other marks, too
            for pair in map(add, run, islice(run, 1, None)) if len(run) > 1 else run:
                counted[pair] = counted.get(pair, 0) + times
        elif run not in STOP and (len(run) > 1 or run.isdigit()) and len(run) <= LONGEST:
            counted[run] = counted.get(run, 0) + times
    return [word for word, _ in nlargest(count, counted.items(), key=itemgetter(1))]


MOST_PARTS = 32  # parts of a search; FTS5 is slow with thousands
BEFORE, AFTER = 60, 180  # characters of a snippet before and after the first word that was found
_PART = regex(r'"([^"]*)"?(\*)?|([^\s"]+)')
_LETTER = rf"[^\W_{APART}]"  # a letter inside a word
_WORDS = regex(rf"{_LETTER}+|[^\W_]")
_END = f"(?!{_LETTER})"
_SPACE = regex(r"\s+")


class Phrase(NamedTuple):
    """Words that follow each other in a message. With `prefix` the last one is the beginning of a word."""

    words: str
    prefix: bool = False


class SnippetPiece(NamedTuple):
    """A part of a snippet on one line. `found` says that it was searched."""

    text: str
    found: bool


def search_parts(text: str) -> tuple[Phrase, ...]:
    """Split a search into words, "phrases" and beginnings (`prefix*`). A message must have all of them.

    Parts without a letter or a digit are left out.
    """
    written = text.encode(errors="replace").decode().replace("\0", " ")
    return tuple(islice(_parts(written), MOST_PARTS))


def _parts(text: str) -> Iterator[Phrase]:
    for match in _PART.finditer(text):
        words = match[1] if match[3] is None else match[3]
        if _WORDS.search(words):
            yield Phrase(words, bool(match[2]) or words.endswith("*"))


def match_of(parts: Sequence[Phrase]) -> str:
    """Build the FTS5 query: a quoted string is words to it, so no text can be its syntax."""
    return " ".join(f'"{spaced(part.words)}"' + " *" * part.prefix for part in parts)


def snippet(text: str, parts: Sequence[Phrase]) -> tuple[SnippetPiece, ...]:
    """Return the text around the first place that was found; the text's beginning if nothing is found.

    FTS5's own snippet takes minutes for a long text where every word matches.
    """
    folded = _folded(text)
    patterns = [_pattern(part) for part in parts]
    places = (_first(folded, part, pattern) for part, pattern in zip(parts, patterns, strict=True))
    first = next((place for place in places if place >= 0), 0)
    begin, end = max(first - BEFORE, 0), first + AFTER
    if begin and (space := _SPACE.search(text, begin, first)):
        begin = space.end()
    pieces = _pieces(text[begin:end], folded[begin:end], patterns)
    around = [SnippetPiece("…", found=False)] * (begin > 0), [SnippetPiece("…", found=False)] * (end < len(text))
    return (*around[0], *pieces, *around[1])


def _pieces(text: str, folded: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[SnippetPiece]:
    """Cut the text around the places that were found."""
    spans = sorted(match.span() for pattern in patterns for match in pattern.finditer(folded))
    at = 0
    for begin, end in spans:
        if begin > at:
            yield SnippetPiece(_SPACE.sub(" ", text[at:begin]), found=False)
        if begin >= at:
            yield SnippetPiece(_SPACE.sub(" ", text[begin:end]), found=True)
            at = end
    if at < len(text):
        yield SnippetPiece(_SPACE.sub(" ", text[at:]), found=False)


def _first(folded: str, part: Phrase, pattern: re.Pattern[str]) -> int:
    """Find the first place of a part; -1 if there is none. `find` is ten times as fast as a pattern."""
    word, at = _words_of(part)[0], -1
    while (at := folded.find(word, at + 1)) >= 0:
        if pattern.match(folded, at):
            return at
    return -1


def _pattern(part: Phrase) -> re.Pattern[str]:
    *before, last = _words_of(part)
    return re.compile(r"[\W_]*".join((*map(_alone, before), _alone(last, f"{_LETTER}*" if part.prefix else _END))))


def _alone(word: str, end: str = _END) -> str:
    return re.escape(word) if _APART.match(word) else f"(?<!{_LETTER}){re.escape(word)}{end}"


def _words_of(part: Phrase) -> list[str]:
    return _WORDS.findall(_folded(part.words))


_ALIKE = {"đ": "d", "Đ": "d", "ł": "l", "Ł": "l", "ø": "o", "Ø": "o", "ς": "σ", "й": "й", "Й": "й"}
"""Letters that people type as others, or that are others although Unicode has them with a mark."""


@lru_cache(maxsize=4096)
def _fold(character: str) -> str:
    """Return the character in lower case and without its diacritics, as one character. FTS5 changes none of `APART`."""
    if alike := _ALIKE.get(character):
        return alike
    base = unicodedata.normalize("NFD", character)[0].lower()
    return character if len(base) != 1 or _APART.match(character) else base


def _folded(text: str) -> str:
    """Return the text as FTS5 compares it, character by character."""
    return text.lower() if text.isascii() else "".join(map(_fold, text))
