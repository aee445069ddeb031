"""Text that a reply repeats from its prompt: a program may print its prompt before it answers. Pure, linear."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise

from teamchat.core.messages import Span
from teamchat.core.routing.edits import line_end, line_start
from teamchat.core.routing.markers import Marker
from teamchat.patterns import regex

_LINE = regex(r"(?<![^\r\n])[^\S\r\n]*+\S[^\r\n]*+")  # a line that is not blank
LONGEST = 10_000
_SAID = regex(r"\S")
_Pair = tuple[str, str]
_SENTENCE = 200  # Characters before a marker that are searched for teamchat's sentence.


def repeats(
    text: str, markers: Iterable[Marker], prompts: Callable[[], Sequence[str]], example: str
) -> tuple[Span, ...]:
    """Find the lines of a reply with a marker that counts that are repeated from its `prompts`.

    Such a line and the one before or behind it, blank ones apart, stand in a prompt in a row, and say something beside
    the marker; or it follows `example`: teamchat's own words before the marker that it shows. Lines of more than
    `LONGEST` characters are not compared.
    """
    shown: set[Span] = set()
    pairs: dict[_Pair, list[Span]] = defaultdict(list)
    line: Span = (0, -1)
    for marker in markers:
        if not marker.counts:
            continue
        if _plain(text[max(marker.start - _SENTENCE, 0) : marker.start]).endswith(example):
            shown.add(line if marker.start < line[1] else _line_at(text, marker.start, max(line[1], 0)))
        if marker.start < line[1]:
            continue
        line = _line_at(text, marker.start, max(line[1], 0))
        around = (_line_before(text, line[0]), line, _line_behind(text, line[1]))
        for first, other in pairwise(filter(None, around)):
            pair = _plain(text[slice(*first)]), _plain(text[slice(*other)])
            if _has_words(pair, marker):
                pairs[pair].append(line)
    if pairs:
        for pair in chain.from_iterable(map(_pairs, prompts())):
            shown.update(pairs.pop(pair, ()))
    return tuple(sorted(shown))


def _line_at(text: str, position: int, least: int) -> Span:
    """Find the line of that position. It does not begin before `least`."""
    return line_start(text, least, position), line_end(text, position)[0]


def _line_before(text: str, start: int) -> Span | None:
    """Find the last line before that position that is not blank; if it is too long, only its end."""
    least = max(start - 2 * LONGEST, 0)
    said = len(text[least:start].rstrip())
    return _line_at(text, least + said - 1, least) if said else None


def _line_behind(text: str, end: int) -> Span | None:
    """Find the next line behind that position that is not blank."""
    match = _SAID.search(text, end, end + LONGEST)
    return _line_at(text, match.start(), end) if match else None


def _pairs(prompt: str) -> Iterator[_Pair]:
    return pairwise(_plain(line[0]) for line in _LINE.finditer(prompt))


def _plain(line: str) -> str:
    return " ".join(line.split()) if len(line) <= LONGEST else ""


def _has_words(pair: _Pair, marker: Marker) -> bool:
    """Whether both lines can be compared, and say something beside the marker."""
    said = " ".join(pair).replace(_plain(marker.raw), "")
    return all(pair) and any(map(str.isalnum, said))
