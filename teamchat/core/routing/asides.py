"""Asides of a text: a model's thoughts in tags (`<think>...</think>`), and HTML comments. Pure.

A tag in code or in a quote is text. A block of thinking goes up to the next closing tag of its name; a closing tag
without an opening one ends a block that began with the reply, as some models print it. An opening tag that is never
closed covers the whole reply if it begins it, and is text elsewhere. A comment that is never closed goes to the end if
it begins a line, as in CommonMark.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct

from teamchat.patterns import regex

_TAG = regex(r"<(?P<close>/)?(?P<name>think|thinking|reasoning)(?:\s[^<>]*+)?>|(?P<comment><!--)", re.IGNORECASE)
_BEFORE_BLOCK = regex(r"(?<![^\r\n])[ ]{0,3}\Z")
_EMPTY_COMMENT = regex(r"<!--(?:-?>|-->)")
_SEEN = regex(r"[^\r\n]")


class Aside(StrEnum):
    """A part of a text that is shown rather than said."""

    FENCE = "fence"
    CODE = "code"
    QUOTE = "quote"
    THOUGHT = "thought"
    COMMENT = "comment"


class Span(Struct, frozen=True):
    """The characters from `start` up to `end`."""

    start: int
    end: int
    place: Aside


class Asides(Struct, frozen=True):
    """The asides of a text, in order and apart from each other; `unclosed` is the tag that covers the whole reply."""

    spans: tuple[Span, ...] = ()
    unclosed: str | None = None


NO_ASIDES = Asides()


def asides(text: str, is_shown: Callable[[int], bool], *, thinks: bool) -> Asides:
    """Find the asides of a text in which `is_shown` tells code and quotes; only an agent's text `thinks`."""
    if "<" not in text:
        return NO_ASIDES
    tags = [tag for tag in _TAG.finditer(text) if not is_shown(tag.start())]
    return _Reader(text, tags, thinks=thinks).read() if tags else NO_ASIDES


class _Reader:
    def __init__(self, text: str, tags: list[re.Match[str]], *, thinks: bool) -> None:
        self._text, self._tags, self._thinks = text, tags, thinks
        self._spans: list[Span] = []
        self._closing: dict[str, list[re.Match[str]]] = defaultdict(list)
        for tag in tags:
            if tag["close"]:
                self._closing[tag["name"].lower()].append(tag)
        self._last_comment = text.rfind("-->")

    def read(self) -> Asides:
        at = 0  # the end of the last span
        thought = 0  # the end of the last block of thinking
        begins = len(self._text) - len(self._text.lstrip())
        for tag in self._tags:
            if tag.start() < at or (tag["name"] and not self._thinks):
                continue
            if tag["comment"]:
                begin, end = tag.start(), self._end_of_comment(tag)
            elif tag["close"]:
                begin, end = thought, tag.end()
                while self._spans and self._spans[-1].end > begin:
                    self._spans.pop()
            elif closing := self._closed_by(tag):
                begin, end = tag.start(), closing.end()
            elif tag.start() == begins:
                return Asides((Span(0, len(self._text), Aside.THOUGHT),), tag[0])
            else:
                continue
            if end > begin:
                self._spans.append(Span(begin, end, Aside.COMMENT if tag["comment"] else Aside.THOUGHT))
                at = end
                thought = thought if tag["comment"] else end
        return Asides(tuple(self._spans))

    def _end_of_comment(self, tag: re.Match[str]) -> int:
        if empty := _EMPTY_COMMENT.match(self._text, tag.start()):
            return empty.end()
        if tag.end() <= self._last_comment:
            return self._text.index("-->", tag.end()) + 3
        line = self._text[max(tag.start() - 4, 0) : tag.start()]
        return len(self._text) if _BEFORE_BLOCK.search(line) else 0

    def _closed_by(self, tag: re.Match[str]) -> re.Match[str] | None:
        closing = self._closing[tag["name"].lower()]
        index = bisect_left(closing, tag.end(), key=re.Match.start)
        return closing[index] if index < len(closing) else None


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace these parts of the text with spaces, so that lines and columns of the rest stay."""
    pieces, at = list[str](), 0
    for start, end in spans:
        pieces += (text[at:start], _SEEN.sub(" ", text[start:end]))
        at = max(at, end)
    return "".join((*pieces, text[at:]))
