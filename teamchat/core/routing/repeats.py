"""What a reply repeats from its prompt: a program may print what it was told before it answers. Pure, linear."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from teamchat.core.messages import Span
from teamchat.core.routing.markers import Marker
from teamchat.patterns import regex

_LINE = regex(r"(?<![^\r\n])[^\S\r\n]*+\S[^\r\n]*+")  # that is not blank
Prompts = Callable[[], Sequence[str]]
_SENTENCE = 200  # characters before a marker in which teamchat's sentence is looked for


def repeats(text: str, markers: Iterable[Marker], prompts: Prompts, example: str) -> tuple[Span, ...]:
    """The lines of a reply that have a marker which counts, and that are repeated from its `prompts`.

    Such a line and the one before or behind it, blank ones apart, stand in a prompt in a row, and say something beside
    the marker; or it follows `example`: teamchat's own words before the marker that it shows.
    """
    counting = [marker for marker in markers if marker.counts]
    if not counting:
        return ()
    found = [(line.start(), line.end(), _plain(line[0])) for line in _LINE.finditer(text)]
    pairs = {pair for prompt in prompts() for pair in _pairs([_plain(line[0]) for line in _LINE.finditer(prompt)])}
    lines = iter(enumerate(found))
    index, (start, end, _) = next(lines)
    parts: dict[Span, None] = {}
    for marker in counting:
        while end <= marker.start:
            index, (start, end, _) = next(lines)
        around = found[max(index - 1, 0) : index + 2]
        same = any(pair in pairs and _has_words(pair, marker) for pair in _pairs([line for *_, line in around]))
        shown = _plain(text[max(marker.start - _SENTENCE, 0) : marker.start]).endswith(example)
        if same or shown:
            parts[start, end] = None
    return tuple(parts)


def _plain(line: str) -> str:
    return " ".join(line.split())


def _pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    return pairwise(lines)


def _has_words(pair: tuple[str, str], marker: Marker) -> bool:
    """Whether the lines say something beside the marker."""
    said = " ".join(pair).replace(_plain(marker.raw), "")
    return any(map(str.isalnum, said))
