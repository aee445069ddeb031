r"""Markers: how a message says who speaks next, who speaks, what the task is and what is to do (design section 5).

A marker ends at the first `]`. A line end or another marker's beginning before it leaves it unclosed, so that of
`[NEXT: a [NEXT: b]` the inner one is obeyed. In a code fence, inline code (the bracket at either end) or a block quote
it is text, and so are an unclosed one and, in an agent's message, FROM and TEAM_TASK; a heading, a table, a link and
indented code are ordinary places. What is obeyed is what is stripped, and nothing else, but for the backslash of
`\[NEXT: a]`, which goes. A marker with nothing in it is obeyed and asks for nothing.

One pass, linear in the text; no text makes it fail.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest
from typing import Literal

from teamchat.core.routing.markdown import Place, Places, is_escaped
from teamchat.core.routing.targets import Target, parse_targets
from teamchat.core.routing.tidy import Edit, remove
from teamchat.core.todos import todo_text

Author = Literal["human", "ai"]

SPACE = r"[\t \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_HEAD = re.compile(
    # ASCII, or IGNORECASE would take the long s and the Kelvin sign for letters of a keyword
    rf"(?P<line>(?<![^\r\n]){SPACE}*+)?(?P<open>\[){SPACE}*+"
    rf"(?:(?P<kind>NEXT|FROM|TEAM_TASK|DROP|TODO|DONE){SPACE}*+[:：]|(?P<block>TEAM_TASK){SPACE}*+\])",
    re.IGNORECASE | re.ASCII,
)
_BODY_END = re.compile(r"[\]\r\n]")


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
    NOT_AT_LINE_START = "not at the start of a line"


_PLACES = {Place.FENCE: WhyNot.FENCE, Place.CODE: WhyNot.CODE, Place.QUOTE: WhyNot.QUOTE}
HUMANS_ONLY = {MarkerKind.FROM, MarkerKind.TEAM_TASK}


@dataclass(frozen=True, slots=True)
class Marker:
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
        """Whether it is obeyed, and so removed from prompts."""
        return self.why_not is None


def scan(text: str, author: Author) -> tuple[Marker, ...]:
    """Everything in a message that looks like a marker, in order of its start, obeyed or not."""
    heads = list(_HEAD.finditer(text)) if "[" in text else []
    if not heads:
        return ()  # most texts have none, and reading a large one as Markdown takes much time and memory
    places = Places(text)
    found: list[Marker] = []
    for head, following in zip_longest(heads, heads[1:]):
        marker = _read(text, head, following.start("open") if following else len(text))
        found.append(replace(marker, why_not=_why_not(text, head, marker, author, places)))
    return tuple(_with_meaning(text, heads, found))


def strip_markers(text: str, *, author: Author = "human") -> str:
    """The text without the markers that count (seed 000, 4.6.2; differs: only the lines that held one are tidied).

    An escaped marker loses its backslash, so stripping twice is not stripping once.
    """
    edits: list[Edit] = []
    for marker in scan(text, author):
        if edits and marker.start < edits[-1].end:
            continue  # inside a task block, which goes as a whole
        if marker.counts:
            edits.append(Edit(marker.start, marker.end, tidy=True))
        elif marker.why_not is WhyNot.ESCAPED:
            edits.append(Edit(marker.start - 1, marker.start, tidy=False))
    return remove(text, edits)


def _read(text: str, head: re.Match[str], limit: int) -> Marker:
    """The marker of a head, as far as it goes before `limit`, where the next one begins."""
    kind = MarkerKind((head["kind"] or head["block"]).upper())
    start, inside = head.start("open"), head.end()
    if head["block"]:
        return Marker(kind, start, inside, text[start:inside], "")
    stop = _BODY_END.search(text, inside, limit)
    body = text[inside : stop.start() if stop else limit]
    end = inside + len(body) + (stop is not None and stop[0] == "]")
    return Marker(kind, start, end, text[start:end], body)


def _why_not(text: str, head: re.Match[str], marker: Marker, author: Author, places: Places) -> WhyNot | None:
    closed = marker.raw.endswith("]")
    place = places.at(marker.start) or (places.at(marker.end - 1) if closed else None)
    if place:
        return _PLACES[place]
    if is_escaped(text, marker.start):
        return WhyNot.ESCAPED
    if author == "ai" and marker.kind in HUMANS_ONLY:
        return WhyNot.HUMANS_ONLY
    if not closed:
        return WhyNot.NOT_CLOSED
    if head["block"] and head["line"] is None:
        return WhyNot.NOT_AT_LINE_START
    return None


def _with_meaning(text: str, heads: list[re.Match[str]], found: list[Marker]) -> list[Marker]:
    """Gives the markers that count what they say; from the end, since a block reaches up to the next one of them."""
    meant: list[Marker] = []
    limit, backslashes = len(text), list[int]()
    for head, marker in zip(reversed(heads), reversed(found), strict=True):
        if marker.why_not is WhyNot.ESCAPED:
            backslashes.append(marker.start - 1)
        if not marker.counts:
            meant.append(marker)
            continue
        meant.append(_block(text, marker, limit, backslashes) if head["block"] else _meaning(marker))
        limit, backslashes = marker.start, []
    meant.reverse()
    return meant


def _block(text: str, marker: Marker, limit: int, backslashes: list[int]) -> Marker:
    """A task block up to `limit`; its task loses the `backslashes` (last one first) of escaped markers."""
    pieces, at = list[str](), marker.end
    for backslash in reversed(backslashes):
        pieces.append(text[at:backslash])
        at = backslash + 1
    task = "".join((*pieces, text[at:limit])).strip()
    return replace(marker, end=limit, raw=text[marker.start : limit], body=text[marker.end : limit], task=task)


def _meaning(marker: Marker) -> Marker:
    match marker.kind:
        case MarkerKind.NEXT:
            return replace(marker, targets=parse_targets(marker.body))
        case MarkerKind.DROP | MarkerKind.DONE:
            return replace(marker, names=tuple(name for target in parse_targets(marker.body) for name in target.names))
        case MarkerKind.FROM:
            return replace(marker, names=(name,) if (name := marker.body.strip()) else ())
        case MarkerKind.TEAM_TASK:
            return replace(marker, task=marker.body.strip())
        case MarkerKind.TODO:
            return replace(marker, todo=todo_text(marker.body))
