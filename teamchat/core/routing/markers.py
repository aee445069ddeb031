r"""Markers: the parts of a message that name the next speaker, the speaker, the task and the todo items.

A marker ends at the first `]`. If a line end or another marker comes before that, the marker is unclosed: in
`[NEXT: a [NEXT: b]` only the inner one is obeyed. These markers are not obeyed and stay text: one in a code fence, in
inline code (either bracket) or in a block quote; one in an HTML comment or in what a model thinks (`<think>`); one in a
paste of several lines or in what a reply repeats from its prompt; an unclosed one; one with invisible characters (an
escape sequence, a zero-width character); and FROM and TEAM_TASK in an agent's message. A marker in a
heading, a table, a link or indented code is obeyed. An empty marker is obeyed and asks for nothing.

Only obeyed markers are removed from the text, and the backslash of `\[NEXT: a]`.
The scan is one pass, linear in the text. No text makes it fail.

The text of a message as prompts quote it: without its markers.

The title of a conversation that nobody gave one: the first words of its first message. Pure.
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
from teamchat.core.routing.todos import todo_text
from teamchat.core.text.clean import sequences, told
from teamchat.patterns import regex

if TYPE_CHECKING:
    from teamchat.core.routing.markdown import Places

# Takes parts out of a text and tidies the lines that they were in.

_RUN_OF_SPACES = regex(r"\s{2,}")
_LINE_END = regex(r"\r\n|\n|\r|\Z")
_BREAK = regex(r"[\r\n]")


class Edit(Struct, frozen=True, gc=False):
    """The characters from `start` up to `end` are taken out; `tidy` says whether their lines are tidied."""

    start: int
    end: int
    tidy: bool


def without_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text without the edits (in order, not overlapping), and without blank lines at its beginning and end.

    In a tidied line runs of spaces become one and the ends are trimmed, except the indentation of a line that begins
    with text; when nothing is left the line goes. Lines that an edit joins are one line.
    """
    lines: list[str] = []
    done = at = 0
    while at < len(edits):
        begin = line_start(text, done, edits[at].start)
        lines.append(text[done:begin])
        parts: list[str] = []
        lead, end, done = None, begin, begin
        while at < len(edits) and (edits[at].start < done or not parts):
            edit = edits[at]
            parts.append(text[begin : edit.start])
            if edit.tidy and lead is None:
                lead = "".join(parts)
            begin, at = edit.end, at + 1
            if begin > end:
                end, done = line_end(text, begin)
        parts.append(text[begin:end])
        line = "".join(parts) if lead is None else _tidied("".join(parts), lead)
        if line or lead is None:
            lines.append(line + text[end:done])
    lines.append(text[done:])
    return _without_blank_ends("".join(lines))


def line_start(text: str, begin: int, at: int) -> int:
    """Where the line of `at` begins, which is not before `begin`."""
    return max(text.rfind("\n", begin, at) + 1, text.rfind("\r", begin, at) + 1, begin)


def line_end(text: str, at: int) -> tuple[int, int]:
    """Where the line of `at` ends, and where the next one begins."""
    found = _LINE_END.search(text, at)
    return found.span() if found else (len(text), len(text))


def _tidied(line: str, lead: str) -> str:
    """A line without an edit; `lead` is its text before the edit."""
    indentation = lead[: len(lead) - len(lead.lstrip())] if lead.strip() else ""
    words = _RUN_OF_SPACES.sub(" ", line.strip())
    return indentation + words if words else ""


def _without_blank_ends(text: str) -> str:
    body = text.rstrip()
    words = body.lstrip()
    indentation = _BREAK.split(body[: len(body) - len(words)])[-1]
    return indentation + words + _BREAK.split(text[len(body) :])[0] if words else ""


Priority = Literal[1, 2, 3]

_SEPARATOR = regex("[,，、]")
_PLUS = regex("[+＋]")
_SIGN = regex("[,，、+＋!！#＃]")
_BEFORE_PRIORITY = frozenset("!！#＃")
_PRIORITY = regex("[!！#＃][PpＰｐ]([1-3１-３])")
_PRIORITIES: dict[int, Priority] = {1: 1, 2: 2, 3: 3}


class Target(Struct, frozen=True):
    """Who is asked to speak: one name, or the names of a group that speaks at the same time. 1 is the most urgent."""

    names: tuple[str, ...]
    priority: Priority = 2


def parse_targets(body: str) -> tuple[Target, ...]:
    """The targets in order. Empty names are left out, and the most urgent priority of a group is that of all of it.

    `!P4` is no priority but part of a name. Nobody has that name, so it is reported.
    """
    if _SIGN.search(body) is None:  # as most are, of which a text may have a hundred thousand
        return (Target((name,)),) if (name := body.strip()) else ()
    targets = {item: _target(item) for item in {*_SEPARATOR.split(body)}}  # many repeat themselves where there are many
    return tuple(target for item in _SEPARATOR.split(body) if (target := targets[item]))


def _target(item: str) -> Target | None:
    if _SIGN.search(item) is None:
        return Target((name,)) if (name := item.strip()) else None
    names: list[str] = []
    priorities: list[int] = []
    for part in _PLUS.split(item):
        name = part.strip()
        if name[-3:-2] in _BEFORE_PRIORITY and (priority := _PRIORITY.fullmatch(name[-3:])):
            priorities.append(int(priority[1]))
            name = name[:-3].rstrip()
        if name:
            names.append(name)
    return Target(tuple(names), _PRIORITIES[min(priorities, default=2)]) if names else None


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
MOST_MARKERS = 10_000  # in one message; what comes behind them is text, so that reading one takes no second
LONGEST_KEPT = 4_000_000  # characters of a text that is kept in memory for the next time
LONGEST_NAMES = 10_000  # characters in one marker; a longer one is text, for the same reason


class MarkerKind(StrEnum):
    NEXT = "NEXT"
    FROM = "FROM"
    TEAM_TASK = "TEAM_TASK"
    DROP = "DROP"
    TODO = "TODO"
    DONE = "DONE"


class WhyNot(StrEnum):
    """Why something that looks like a marker is text; the value completes "it was not obeyed: it is ..."."""

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
    """Something in a text that looks like a marker: `text[start:end]` is `raw`, and `body` what it holds.

    Only a marker that counts has `targets` (NEXT), `names` (FROM: one, DROP and DONE: any number), a `task` (TEAM_TASK;
    empty when nothing was written) or a `todo` (a line; empty without a letter or digit in it, such as three dots). A
    `[TEAM_TASK]` block that counts reaches up to the next marker that counts, or the end, and those that do not count
    may lie inside it.
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
        """True if it is obeyed, and so removed from prompts."""
        return self.why_not is None


_Said = tuple[tuple[Target, ...], tuple[str, ...], str | None, str | None]
"""The last four fields of a marker: `targets`, `names`, `task` and `todo`."""
_NOTHING: _Said = ((), (), None, None)


def scan(text: str, author: Author, pasted: tuple[Span, ...] = ()) -> tuple[Marker, ...]:
    """The first `MOST_MARKERS` in a message that look like a marker, in order of their start, obeyed or not."""
    if "[" not in text:
        return ()
    found: list[Marker] = []
    block: int | None = None  # the index of the one that is open
    backslashes: list[int] = []  # of escaped markers since it began
    says = cache(_says)  # many repeat themselves where there are many
    for seen, kind, why_not in _seen(text, author, pasted):
        body = seen["body"] or ""
        said = _NOTHING if why_not else says(kind, body)
        marker = Marker(kind, seen.start(), seen.end(), seen[0], body, why_not, *said)
        if marker.counts:
            if block is not None:
                found[block] = _up_to(found[block], text, marker.start, backslashes)
            block, backslashes = len(found) if seen["block"] else None, []
        elif why_not is WhyNot.ESCAPED:
            backslashes.append(marker.start - 1)
        found.append(marker)
    if block is not None:
        found[block] = _up_to(found[block], text, len(text), backslashes)
    return tuple(found)


class MarkedText(Struct, frozen=True, dict=True):
    """A text, what in it looks like a marker, and the text without the markers that count."""

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
    """The text with its markers; none counts in the parts that a person `pasted` in several lines, or an agent repeats.

    A message is read several times in a row: the last few texts are kept in memory.
    """
    return _read_markers(text, author, pasted) if len(text) <= LONGEST_KEPT else _marked(text, author, pasted)


@lru_cache(maxsize=8)
def _read_markers(text: str, author: Author, pasted: tuple[Span, ...]) -> MarkedText:
    return _marked(text, author, pasted)


def _marked(text: str, author: Author, pasted: tuple[Span, ...]) -> MarkedText:
    return MarkedText(text, author, scan(text, author, pasted))


def strip_markers(text: str, *, author: Author = "human") -> str:
    """The `stripped` text of `MarkedText`."""
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
    """What looks like a marker, and why it is not obeyed; a task block as far as its own brackets go."""
    if "[" not in text:
        return
    from teamchat.core.routing.markdown import places_of  # most messages have none, and it takes half a millisecond

    before, places, unseen, parts = 0, None, None, _Parts(sorted(pasted), len(text))
    for found in islice(_MARKER.finditer(text), MOST_MARKERS):
        # most texts have none, and reading a large one as Markdown takes much time and memory
        places, unseen = places or places_of(text, thinks=author == "ai"), unseen or _Unseen(text)
        written = found["kind"] or found["block"]
        kind = _KINDS.get(written) or MarkerKind(written.upper())
        inert = parts.touch(found.start(), found.end())
        why_not = _why_not(text, found, kind, author, places, unseen, before)
        yield found, kind, (WhyNot.PASTED if author == "human" else WhyNot.REPEATED) if inert else why_not
        before = found.end()


def touches(start: int, end: int, spans: Iterable[Span]) -> bool:
    """Whether some of the characters from `start` up to `end` are in one of the spans."""
    return any(begin < end and start < behind for begin, behind in spans)


def _why_not(
    text: str, found: re.Match[str], kind: MarkerKind, author: Author, places: Places, unseen: _Unseen, before: int
) -> WhyNot | None:
    """`before` is where the last one ended."""
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
    """Why a marker in a valid place is not obeyed."""
    if found["block"]:
        begins = _begins_line(text[before : found.start()], first=not before)
        return None if begins else WhyNot.NOT_AT_LINE_START
    if not found["close"]:
        return WhyNot.NOT_CLOSED
    return WhyNot.TOO_LONG if kind in _OF_NAMES and len(found[0]) > LONGEST_NAMES else None


class _Parts:
    """Parts of a text, in order and apart. They are asked of one place after the other, so none is remembered."""

    def __init__(self, spans: Iterable[Span], end: int) -> None:
        self._spans, self._end = iter(spans), end
        self._next = (0, 0)  # the first one that ends behind the place

    def touch(self, start: int, end: int) -> bool:
        """Whether some of the characters from `start` up to `end` are in one of them."""
        while self._next[1] <= start:
            self._next = next(self._spans, (self._end, self._end))
        return self._next[0] < end


class _Unseen:
    """What a person is not shown of a text. It is asked of one place after the other."""

    def __init__(self, text: str) -> None:
        self._text, self._sequences = text, _Parts(sequences(text), len(text))

    def touches(self, start: int, end: int) -> bool:
        """Whether some of the characters from `start` up to `end` are not shown."""
        return self._sequences.touch(start, end) or told(part := self._text[start:end]) != part


def _begins_line(gap: str, *, first: bool) -> bool:
    """Whether only spaces stand on the line before what follows this text; `first` is the beginning of a message."""
    gap = gap.rstrip(_SPACES)
    return gap[-1] in "\r\n" if gap else first


def _up_to(block: Marker, text: str, limit: int, backslashes: list[int]) -> Marker:
    """A task block as far as it goes; its task loses the `backslashes` of escaped markers."""
    pieces, at = list[str](), block.end
    for backslash in backslashes:
        pieces.append(text[at:backslash])
        at = backslash + 1
    task = "".join((*pieces, text[at:limit])).strip()
    return replace(block, end=limit, raw=text[block.start : limit], body=text[block.end : limit], task=task)


def _says(kind: MarkerKind, body: str) -> _Said:
    """The content of a marker that counts; empty for a task block, whose text comes later."""
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
    """The text that a prompt quotes: without markers, and in an agent's message without invisible characters."""
    author: Author = "human" if message.speaker.type == "human" else "ai"
    return read_markers(message.content, author, message.pasted).quoted


LONGEST_TITLE = 100  # characters of a title that a person gives
LONGEST_FIRST_WORDS = 60
READ = 4000  # characters of a message in which its first words are looked for
_FENCES = ("```", "~~~")


def first_words(text: str) -> str:
    """The first words of a message without its markers and fenced code, on one line; cut at a word with `…`.

    A message of nothing but fenced code gives the first words of that, and an empty one nothing.
    """
    said = strip_markers(told(text[:READ]))
    words = _without_fences(said).split() or [word for word in said.split() if not word.startswith(_FENCES)]
    line = " ".join(words)
    if len(line) <= LONGEST_FIRST_WORDS:
        return line
    cut = line[:LONGEST_FIRST_WORDS]
    return (cut[: cut.rfind(" ")] if " " in cut else cut[:-1]).rstrip() + "…"


def _without_fences(text: str) -> str:
    if not any(fence in text for fence in _FENCES):  # as most have none
        return text
    from teamchat.core.routing.asides import Place
    from teamchat.core.routing.markdown import places_of

    parts, end = [], 0
    for span in places_of(text).spans:
        if span.place is Place.FENCE:
            parts.append(text[end : span.start])
            end = span.end
    return "\n".join([*parts, text[end:]])
