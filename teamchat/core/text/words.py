"""The words that make a text searchable, and the search in the syntax of FTS5.

FTS5's `unicode61` takes a run of a script without spaces, such as Chinese or Thai, for one word, together with adjacent
letters and digits. So those characters are set apart where a text is indexed (`spaced`), and searched in adjacent pairs
or as phrases. It also knows the accents of few scripts (SQLite 3.40: no Greek ones, none of ё, one of two on a
Vietnamese letter) and one letter for one (ß is no ss), so each text and each search is folded before (`_folded`).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import accumulate, chain, islice
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
    """Fold `text`, and set each character of the scripts without spaces apart as a word."""
    return text if text.isascii() else _APART.sub(r" \g<0> ", _folded(text))


def match_query(*texts: str | None) -> str | None:
    """Build the FTS5 query for these texts (three at most): any of their words. None if there are no words."""
    words = chain.from_iterable(_most_common(text or "", most) for text, most in zip(texts, MOST, strict=False))
    # a quoted string is taken for words, whatever its content: no text can be syntax
    return " OR ".join(f'"{spaced(word).strip()}"' for word in dict.fromkeys(words)) or None


def _most_common(text: str, count: int) -> list[str]:
    """List the most common words; equally common ones keep their order."""
    counted = dict[str, int]()  # no Counter: each word that comes once costs it a call
    for word, times in Counter(_RUN.findall(_folded(text))).items():  # a long text has few different ones
        if not word.isascii() and _APART.match(word):
            run = "".join(filter(str.isalnum, word))  # FTS5 drops tones and other marks, too
            for pair in map(add, run, islice(run, 1, None)) if len(run) > 1 else run:
                counted[pair] = counted.get(pair, 0) + times
        elif word not in STOP and (len(word) > 1 or word.isdigit()) and len(word) <= LONGEST:
            counted[word] = counted.get(word, 0) + times
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
    return tuple(_parts(text.encode(errors="replace").decode().replace("\0", " ")))


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
    text = _composed(text)  # so that it is folded character by character
    folded = _folded(text)
    patterns = [_pattern(part) for part in parts]
    places = (_first(folded, part, pattern) for part, pattern in zip(parts, patterns, strict=True))
    first = _unfolded(text, next((place for place in places if place >= 0), 0))
    begin, end = max(first - BEFORE, 0), first + AFTER
    if begin and (space := _SPACE.search(text, begin, first)):
        begin = space.end()
    pieces = _pieces(text[begin:end], patterns)
    around = [SnippetPiece("…", found=False)] * (begin > 0), [SnippetPiece("…", found=False)] * (end < len(text))
    return (*around[0], *pieces, *around[1])


def _unfolded(text: str, place: int) -> int:
    """Return which character of `text` became the one at `place` of the folded text."""
    if text.isascii():
        return place
    ends = accumulate(len(_fold(character)) for character in text)
    return next((at for at, end in enumerate(ends) if end > place), 0)


def _pieces(text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[SnippetPiece]:
    """Cut the text around the places that were found, each with the marks and hyphens behind it."""
    folds = [*text.lower()] if text.isascii() else [*map(_fold, text)]
    folded, begins = "".join(folds), list(accumulate(map(len, folds), initial=0))
    spans = sorted(match.span() for pattern in patterns for match in pattern.finditer(folded))
    at = 0
    for found, behind in spans:
        begin, end = bisect_right(begins, found) - 1, bisect_right(begins, behind) - 1
        end += begins[end] < behind  # the word ends within what the character became
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


_ALIKE = {"đ": "d", "ł": "l", "ø": "o", "ı": "i", "œ": "oe", "æ": "ae", "й": "й"}
"""Letters that people type as others, or that are others although Unicode has them with a mark."""
_NO_LETTER = r"[^\w\x00-\x7f\xad\u200b-\u200f\u2060\ufeff]"
_MANY_MARKS = regex(rf"({_NO_LETTER}{{30}}){_NO_LETTER}+")
_HIDDEN = frozenset("\u00ad\u200b\u200d\u2060\ufeff")
"""Places where a word may or may not be broken or joined, which nobody types. U+200C parts the words of Persian."""


@lru_cache(maxsize=4096)
def _fold(character: str) -> str:
    """Return the character in lower case, in its plain form and without marks: none, one or several characters.

    Those of `APART` stay as they are: a mark makes another letter of them. A symbol of letters, such as ™ or ㎏, is a
    word of its own, as it was no part of the word before it.
    """
    if _APART.match(character):
        return character
    if character in _HIDDEN or unicodedata.category(character) == "Mn":
        return ""
    if alike := _ALIKE.get(character.casefold()):
        return alike
    plain = unicodedata.normalize("NFKC", character)
    if _APART.search(plain):  # a square of Japanese words
        return f" {plain} "
    bare = (one for one in unicodedata.normalize("NFKD", plain) if unicodedata.category(one) != "Mn")
    folded = "".join(_ALIKE.get(one, one) for one in "".join(bare).casefold())
    if not any(map(str.isalnum, folded)):
        return character
    apart = folded != character and (not character.isalnum() or (len(folded) > 1 and not character.isalpha()))
    return f" {folded} " if apart else folded


def _folded(text: str) -> str:
    """Return the text as it is indexed, searched and compared."""
    return text.lower() if text.isascii() else "".join(map(_fold, _composed(text)))


def _composed(text: str) -> str:
    """Compose letters and their marks. Of a long run of marks, which takes time by its square, the first ones count."""
    return unicodedata.normalize("NFC", _MANY_MARKS.sub(r"\1", text))
