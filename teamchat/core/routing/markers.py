r"""Markers: the parts of a message that name the next speaker, the speaker, the task and the todo items.

This module finds them, removes them from a text, and quotes a message without them. A marker ends at the first `]`. If
a line end or another marker comes before that, the marker is unclosed: in `[NEXT: a [NEXT: b]` only the inner one is
obeyed. These markers are not obeyed and stay text: one in a code fence, in inline code (either bracket) or in a block
quote; one in an HTML comment or in a model's thoughts (`<think>`); one in a paste of several lines or in text that a
reply repeats from its prompt; an unclosed one; one with invisible characters (an escape sequence, a zero-width
character); and FROM and TEAM_TASK in an agent's message. A marker in a heading, a table, a link or indented code is
obeyed. An empty marker is obeyed and asks for nothing.

Only obeyed markers are removed from the text, and the backslash of `\[NEXT: a]`.
The scan is one pass, linear in the text. No text makes it fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache, cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.messages import NewMessage, Span
from teamchat.core.routing.edits import Edit, without_edits
from teamchat.core.routing.targets import Target, parse_targets
from teamchat.core.routing.todos import todo_text
from teamchat.core.text.clean import sequences, told
from teamchat.patterns import regex

if TYPE_CHECKING:
    from teamchat.core.routing.markdown import Places

Author = Literal["human", "ai"]

SPACE = r"[\t \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_SPACES = "\t \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_KIND = "NEXT|FROM|TEAM_TASK|DROP|TODO|DONE"
_OPEN = rf"\[(?={SPACE}*+[NFTD]){SPACE}*+"  # looks ahead: a text of brackets is searched six times as fast
_BEGINS = rf"{_OPEN}(?:(?:{_KIND}){SPACE}*+[:：]|TEAM_TASK{SPACE}*+\])"
_MARKER = regex(
    # ASCII, or IGNORECASE would take the long s and the Kelvin sign for letters of a keyword
    rf"{_OPEN}(?:(?P<block>TEAM_TASK){SPACE}*+\]|(?P<kind>{_KIND}){SPACE}*+[:：]"
    rf"(?P<body>(?:[^\[\]\r\n]++|(?!{_BEGINS})\[)*+)(?P<close>\])?)",
    re.IGNORECASE | re.ASCII,
)
MOST_MARKERS = 10_000  # Markers read in one message; later ones are text, so that reading it takes under a second.
LONGEST_KEPT = 4_000_000  # Characters of a text that is kept in memory for the next time.
LONGEST_NAMES = 10_000  # Characters of one marker; a longer one is text, for the same reason.


class MarkerKind(StrEnum):
    NEXT = "NEXT"
    FROM = "FROM"
    TEAM_TASK = "TEAM_TASK"
    DROP = "DROP"
    TODO = "TODO"
    DONE = "DONE"


class WhyNot(StrEnum):
    """The reason why a likely marker is text; the value completes "it was not obeyed: it is ..."."""

    FENCE = "in a code fence"
    CODE = "in inline code"
    QUOTE = "in a quote"
    ESCAPED = "escaped"
    HUMANS_ONLY = "for people only"
    NOT_CLOSED = "not closed on its line"
    TOO_LONG = "too long"
    NOT_AT_LINE_START = "not at the start of a line"
    PASTED = "in pasted text"
    REPEATED = "in what the reply repeats from its prompt"
    THOUGHT = "in a block of thinking"
    COMMENT = "in an HTML comment"
    HIDDEN = "not wholly visible"


_KINDS = {written: kind for kind in MarkerKind for written in (kind.value, kind.value.lower())}  # as most are written
_PLACES = {  # by the value of `Place`
    "fence": WhyNot.FENCE,
    "code": WhyNot.CODE,
    "quote": WhyNot.QUOTE,
    "thought": WhyNot.THOUGHT,
    "comment": WhyNot.COMMENT,
}
HUMANS_ONLY = {MarkerKind.FROM, MarkerKind.TEAM_TASK}
_OF_NAMES = {MarkerKind.NEXT, MarkerKind.FROM, MarkerKind.DROP, MarkerKind.DONE}


class Marker(Struct, frozen=True):
    """A likely marker in a text: `text[start:end]` is `raw`, and `body` its content.

    Only a marker that counts has `targets` (NEXT), `names` (FROM: one, DROP and DONE: any number), a `task` (TEAM_TASK;
    empty if nothing was written) or a `todo` (a line; empty without a letter or digit in it, such as three dots). A
    `[TEAM_TASK]` block that counts reaches up to the next marker that counts, or the end; it may contain markers that
    do not count.
    """

    kind: MarkerKind
    start: int
    end: int
    raw: str
    body: str
    why_not: WhyNot | None = None
    targets: tuple[Target, ...] = ()
    names: tuple[str, ...] = ()
    task: str | None = None
    todo: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it is obeyed, and so removed from prompts."""
        return self.why_not is None


_Said = tuple[tuple[Target, ...], tuple[str, ...], str | None, str | None]
"""The last four fields of a marker: `targets`, `names`, `task` and `todo`."""
_NOTHING: _Said = ((), (), None, None)


def scan(text: str, author: Author, pasted: tuple[Span, ...] = ()) -> tuple[Marker, ...]:
    """Find the first `MOST_MARKERS` likely markers of a message, in order of their start, obeyed or not."""
    if "[" not in text:
        return ()
    markers: list[Marker] = []
    block: int | None = None  # the index of the one that is open
    backslashes: list[int] = []  # backslashes of markers escaped since the block began
    says = cache(_says)  # long texts repeat many of them
    for seen, kind, why_not in _seen(text, author, pasted):
        body = seen["body"] or ""
        said = _NOTHING if why_not else says(kind, body)
        marker = Marker(kind, seen.start(), seen.end(), seen[0], body, why_not, *said)
        if marker.counts:
            if block is not None:
                markers[block] = _up_to(markers[block], text, marker.start, backslashes)
            block, backslashes = len(markers) if seen["block"] else None, []
        elif why_not is WhyNot.ESCAPED:
            backslashes.append(marker.start - 1)
        markers.append(marker)
    if block is not None:
        markers[block] = _up_to(markers[block], text, len(text), backslashes)
    return tuple(markers)


class MarkedText(Struct, frozen=True, dict=True):
    """A text, its likely markers, and the text without the markers that count."""

    text: str
    author: Author
    markers: tuple[Marker, ...]

    @cached_property
    def stripped(self) -> str:
        """The text without the markers that count; only the lines that held one are tidied.

        An escaped marker loses its backslash, so stripping twice is not stripping once.
        """
        return without_edits(self.text, _edits(self.markers))

    @cached_property
    def quoted(self) -> str:
        """The text as a prompt quotes it: without markers and, if an agent wrote it, without invisible characters."""
        return self.stripped if self.author == "human" else told(self.stripped)


def read_markers(text: str, author: Author, pasted: tuple[Span, ...] = ()) -> MarkedText:
    """Read the text with its markers; none counts in the parts `pasted` in several lines, or repeated by an agent.

    A message is read several times in a row: the last few texts are kept in memory.
    """
    return _read_markers(text, author, pasted) if len(text) <= LONGEST_KEPT else _marked(text, author, pasted)


@lru_cache(maxsize=8)
def _read_markers(text: str, author: Author, pasted: tuple[Span, ...]) -> MarkedText:
    return _marked(text, author, pasted)


def _marked(text: str, author: Author, pasted: tuple[Span, ...]) -> MarkedText:
    return MarkedText(text, author, scan(text, author, pasted))


def strip_markers(text: str, *, author: Author = "human") -> str:
    """Return the `stripped` text of `MarkedText`."""
    return read_markers(text, author).stripped


def _edits(markers: Sequence[Marker]) -> list[Edit]:
    edits: list[Edit] = []
    done = 0  # where the last marker that counts ends: a task block goes with the escaped markers in it
    for marker in markers:
        if marker.counts:
            edits.append(Edit(marker.start, marker.end, tidy=True))
            done = marker.end
        elif marker.why_not is WhyNot.ESCAPED and marker.start > done:
            edits.append(Edit(marker.start - 1, marker.start, tidy=False))
    return edits


def _seen(
    text: str, author: Author, pasted: tuple[Span, ...]
) -> Iterator[tuple[re.Match[str], MarkerKind, WhyNot | None]]:
    """Find likely markers, and say why each is not obeyed; a task block reaches as far as its own brackets."""
    if "[" not in text:
        return
    from teamchat.core.routing.markdown import places_of  # most messages have none, and it takes half a millisecond

    before, places, unseen, parts = 0, None, None, _Parts(sorted(pasted), len(text))
    for match in islice(_MARKER.finditer(text), MOST_MARKERS):
        # most texts have none, and reading a large one as Markdown takes much time and memory
        places, unseen = places or places_of(text, thinks=author == "ai"), unseen or _Unseen(text)
        written = match["kind"] or match["block"]
        kind = _KINDS.get(written) or MarkerKind(written.upper())
        inert = parts.touch(match.start(), match.end())
        why_not = _why_not(text, match, kind, author, places, unseen, before)
        yield match, kind, (WhyNot.PASTED if author == "human" else WhyNot.REPEATED) if inert else why_not
        before = match.end()


def touches(start: int, end: int, spans: Iterable[Span]) -> bool:
    """Whether any character from `start` up to `end` is in one of the spans."""
    return any(begin < end and start < behind for begin, behind in spans)


def _why_not(
    text: str, found: re.Match[str], kind: MarkerKind, author: Author, places: Places, unseen: _Unseen, before: int
) -> WhyNot | None:
    """Say why a likely marker is not obeyed. `before` is the end of the last one."""
    from teamchat.core.routing.markdown import is_escaped

    start, end = found.span()
    closed = found["block"] or found["close"]
    if place := places.at(start) or (places.at(end - 1) if closed else None):
        return _PLACES[place]
    if is_escaped(text, start):
        return WhyNot.ESCAPED
    if author == "ai" and kind in HUMANS_ONLY:
        return WhyNot.HUMANS_ONLY
    return WhyNot.HIDDEN if unseen.touches(start, end) else _malformed(text, found, kind, before)


def _malformed(text: str, found: re.Match[str], kind: MarkerKind, before: int) -> WhyNot | None:
    """Say why a marker in a valid place is not obeyed."""
    if found["block"]:
        begins = _begins_line(text[before : found.start()], first=not before)
        return None if begins else WhyNot.NOT_AT_LINE_START
    if not found["close"]:
        return WhyNot.NOT_CLOSED
    return WhyNot.TOO_LONG if kind in _OF_NAMES and len(found[0]) > LONGEST_NAMES else None


class _Parts:
    """Parts of a text, in order and apart. They are asked about one place after the other, so none is remembered."""

    def __init__(self, spans: Iterable[Span], end: int) -> None:
        self._spans, self._end = iter(spans), end
        self._next = (0, 0)  # the first one that ends behind the place

    def touch(self, start: int, end: int) -> bool:
        """Whether any character from `start` up to `end` is in one of the parts."""
        while self._next[1] <= start:
            self._next = next(self._spans, (self._end, self._end))
        return self._next[0] < end


class _Unseen:
    """The parts of a text that a person does not see. It is asked about one place after the other."""

    def __init__(self, text: str) -> None:
        self._text, self._sequences = text, _Parts(sequences(text), len(text))

    def touches(self, start: int, end: int) -> bool:
        """Whether any character from `start` up to `end` is not shown."""
        return self._sequences.touch(start, end) or told(part := self._text[start:end]) != part


def _begins_line(gap: str, *, first: bool) -> bool:
    """Whether only spaces stand on the line behind this text; `first` says that it begins the message."""
    gap = gap.rstrip(_SPACES)
    return gap[-1] in "\r\n" if gap else first


def _up_to(block: Marker, text: str, limit: int, backslashes: list[int]) -> Marker:
    """Extend a task block up to `limit`; its task loses the `backslashes` of escaped markers."""
    pieces, at = list[str](), block.end
    for backslash in backslashes:
        pieces.append(text[at:backslash])
        at = backslash + 1
    task = "".join((*pieces, text[at:limit])).strip()
    return replace(block, end=limit, raw=text[block.start : limit], body=text[block.end : limit], task=task)


def _says(kind: MarkerKind, body: str) -> _Said:
    """Read the content of a marker that counts; empty for a task block, whose text comes later."""
    match kind:
        case MarkerKind.NEXT:
            return parse_targets(body), (), None, None
        case MarkerKind.DROP | MarkerKind.DONE:
            return (), tuple(name for target in parse_targets(body) for name in target.names), None, None
        case MarkerKind.FROM:
            return (), (name,) if (name := body.strip()) else (), None, None
        case MarkerKind.TEAM_TASK:
            return (), (), body.strip(), None
        case MarkerKind.TODO:
            return (), (), None, todo_text(body)


def quoted_text(message: NewMessage) -> str:
    """Return the text that a prompt quotes: without markers, and from an agent without invisible characters."""
    author: Author = "human" if message.speaker.type == "human" else "ai"
    return read_markers(message.content, author, message.pasted).quoted
