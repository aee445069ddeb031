"""Finds code and quotes in a text by the rules of CommonMark, and its asides. A marker in there is only text.

It finds fenced code, inline code and block quotes, also inside list items, where agents write most of their code. It
differs from CommonMark in three ways: indented code does not count as code, HTML and tables are ordinary text (but for
comments, which are asides), and a block quote has only the lines that begin with `>`; a lazy continuation line is the
author's own text.

The scan is one pass over the lines. The cost is linear in the text, and no text makes it fail.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict, deque
from functools import cached_property, lru_cache
from itertools import islice

from msgspec import Struct, field

from teamchat.core.routing.asides import NO_ASIDES, Aside, Asides, Span, asides, blanked
from teamchat.patterns import regex

_END = r"(?>\r\n|\n|\r)"
_AT_END = r"(?=[\r\n]|\Z)"
_ITEM = r"(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t\r\n]|\Z)"
_LIST_ITEM = regex(_ITEM)
_FENCE = regex(rf"(?P<run>`{{3,}}+)[^`\r\n]*+{_AT_END}|(?P<tildes>~{{3,}}+)")
_FENCE_END = regex(rf"(?<![^\r\n])(?P<indent>[ \t]*+)(?P<run>`{{3,}}+|~{{3,}}+)[ \t]*+{_AT_END}")
# An underline and a rule are told by their characters.
_BLOCK = rf">|#{{1,6}}(?=[ \t\r\n]|\Z)|{_ITEM}|`{{3,}}+[^`\r\n]*+{_AT_END}|~~~|[-=*_ \t]*+{_AT_END}"
_BEGINS_BLOCK = regex(_BLOCK)
_LINE = regex(rf"(?P<indent>[ \t]*+)(?P<block>(?={_BLOCK}))?[^\r\n]*+(?P<end>{_END}?)")
_BLANK_LINES = regex(rf"(?:[ \t]*+{_END})++")
_INDENT = regex(r"[ \t]*+")
_BACKTICKS = regex(r"`+")
_DEEPEST = 100  # list items in one another; what lies deeper is text
_MOST_RUNS = 1_000_000  # Runs of backticks read in one paragraph, to bound memory; no code is found behind them.


class Places:
    """Which characters of a text are code, quotation or an aside. Only the text of an agent `thinks`."""

    def __init__(self, text: str, *, thinks: bool = False) -> None:
        self._text, self._thinks = text, thinks
        self.spans = tuple(_Blocks(text).read()) if any(sign in text for sign in "`~>") else ()
        """Code and quotes, in order and apart from each other; quoted lines that follow each other are one."""
        self._starts = [span.start for span in self.spans]

    @cached_property
    def asides(self) -> Asides:
        return asides(self._text, lambda position: self._in_markdown(position) is not None, thinks=self._thinks)

    @cached_property
    def _begins(self) -> list[int]:
        return [span.start for span in self.asides.spans]

    def at(self, position: int) -> Aside | None:
        """Name the element that contains the character at `position`."""
        return _place_at(position, self._begins, self.asides.spans) or self._in_markdown(position)

    def _in_markdown(self, position: int) -> Aside | None:
        return _place_at(position, self._starts, self.spans)


def _place_at(position: int, starts: list[int], spans: tuple[Span, ...]) -> Aside | None:
    index = bisect_right(starts, position) - 1
    return spans[index].place if index >= 0 and position < spans[index].end else None


@lru_cache(maxsize=1)
def places_of(text: str, *, thinks: bool = False) -> Places:
    """Return the places of a text, cached for a text that is read several times in a row."""
    return Places(text, thinks=thinks)


def own_words(reply: str) -> str:
    """Replace the quotes and asides of the reply with spaces."""
    places = places_of(reply, thinks=True)
    own = blanked(reply, [(span.start, span.end) for span in places.spans if span.place is Aside.QUOTE])
    return blanked(own, [(span.start, span.end) for span in places.asides.spans])


def asides_of(reply: str) -> Asides:
    """Return the asides of a reply."""
    return places_of(reply, thinks=True).asides if "<" in reply else NO_ASIDES


def without_asides(reply: str) -> str:
    """Replace the asides of the reply with spaces."""
    return blanked(reply, [(span.start, span.end) for span in asides_of(reply).spans])


class _Fence(Struct, frozen=True):
    start: int
    run: str
    base: int  # the column of the list item it stands in


class _Blocks(Struct):
    """Walks the lines with the open blocks: list items (the columns of their content), a fence, a paragraph."""

    text: str
    items: list[int] = field(default_factory=list)
    fence: _Fence | None = None
    paragraph: int | None = None  # The beginning of the paragraph.
    end: int = 0  # The end of the last line read.
    quoted: int = -1  # The beginning of the line behind the last quote.
    spans: list[Span] = field(default_factory=list)

    def read(self) -> list[Span]:
        at = 0
        while at < len(self.text):
            at = self._line_in_fence(self.fence, at) if self.fence else self._line(at)
        if self.fence:
            self.spans.append(Span(self.fence.start, len(self.text), Aside.FENCE))
        self._end_paragraph()
        return self.spans

    def _line_in_fence(self, fence: _Fence, at: int) -> int:
        """Read one line of a fence: it may close the fence, or end its list item and so both."""
        line = _LINE.match(self.text, at)
        assert line is not None  # it matches everywhere
        end = line.start("end")
        out = line.end("indent") < end and _column(line["indent"]) < fence.base
        if out or ((closing := _FENCE_END.match(self.text, at)) and _closes(closing, fence)):
            self.spans.append(Span(fence.start, at if out else end, Aside.FENCE))
            self.fence = None
        return at if out else line.end()

    def _line(self, at: int) -> int:
        if blank := _BLANK_LINES.match(self.text, at):
            self._end_paragraph()
            return blank.end()
        line = _LINE.match(self.text, at)
        assert line is not None  # it matches everywhere
        column = _column(line["indent"])
        depth = bisect_right(self.items, column)
        begins_block = line["block"] is not None and column - self._base(depth) <= 3
        if self.paragraph is not None and not begins_block:  # it goes on, though it may be indented less than its item
            self.end = line.start("end")
        else:
            self._end_paragraph()
            del self.items[depth:]
            self._begin(line, *self._list_items(line.end("indent"), column))
        return line.end()

    def _begin(self, line: re.Match[str], at: int, column: int) -> None:
        """Begin the block at `at`, behind the indentation and the list items of the line."""
        shallow = column - self._base() <= 3
        if shallow and self.text.startswith(">", at):
            if self.quoted == line.start() and not self.items:
                at = self.spans.pop().start
            self.spans.append(Span(at, line.start("end"), Aside.QUOTE))
            self.quoted = -1 if self.items else line.end()
        elif shallow and (fence := _FENCE.match(self.text, at)):
            self.fence = _Fence(at, fence["run"] or fence["tildes"], self._base())
        else:
            self.paragraph, self.end = at, line.start("end")
            if not shallow or _BEGINS_BLOCK.match(self.text, at):  # indented code, a heading or a rule stands alone
                self._end_paragraph()

    def _base(self, kept: int | None = None) -> int:
        """Return the column where the content of the innermost (or the `kept`-th) list item begins."""
        depth = len(self.items) if kept is None else kept
        return self.items[depth - 1] if depth else 0

    def _list_items(self, at: int, column: int) -> tuple[int, int]:
        """Open the list items that begin here, one inside the other, and return where their content begins."""
        while (
            column - self._base() <= 3
            and len(self.items) < _DEEPEST
            and (marker := _LIST_ITEM.match(self.text, at)) is not None
        ):
            column += marker.end() - at
            indent = _INDENT.match(self.text, marker.end())
            assert indent is not None  # it matches everywhere
            at, content = indent.end(), _column(indent[0], column)
            # A wide gap, or a gap without content behind it, is not the item's: its content begins one past the marker.
            narrow = content - column <= 4 and self.text[at : at + 1].strip()
            self.items.append(content if narrow else column + 1)
            column = content
        return at, column

    def _end_paragraph(self) -> None:
        if self.paragraph is not None and self.text.find("`", self.paragraph, self.end) >= 0:
            self.spans += _code_spans(self.text, self.paragraph, self.end)
        self.paragraph = None


def _column(spaces: str, column: int = 0) -> int:
    """Return the column behind `spaces` that begin in `column`; a tab goes to the next multiple of four."""
    if "\t" not in spaces:
        return column + len(spaces)
    for character in spaces:
        column += 4 - column % 4 if character == "\t" else 1
    return column


def _closes(line: re.Match[str], fence: _Fence) -> bool:
    return line["run"].startswith(fence.run) and _column(line["indent"]) - fence.base <= 3


def open_fence(text: str) -> str | None:
    """Return what would close the code fence that the text leaves open; None if the next paragraph is outside."""
    blocks = _Blocks(text)
    blocks.read()
    # a fence in a list item ends with the item
    return blocks.fence.run if blocks.fence and not blocks.fence.base else None


def _code_spans(text: str, start: int, end: int) -> list[Span]:
    """Find the inline code of one paragraph: a run of backticks up to the next run of the same length."""
    runs = [match.span() for match in islice(_BACKTICKS.finditer(text, start, end), _MOST_RUNS)]
    by_length: defaultdict[int, deque[int]] = defaultdict(deque)
    for index, (opened, closed) in enumerate(runs):
        by_length[closed - opened].append(index)
    spans: list[Span] = []
    index = 0
    while index < len(runs):
        opened, behind = runs[index]
        opened += is_escaped(text, opened)
        closing = by_length.get(behind - opened)
        while closing and closing[0] <= index:
            closing.popleft()
        if closing and opened < behind:
            index = closing[0]
            spans.append(Span(opened, runs[index][1], Aside.CODE))
        index += 1
    return spans


def is_escaped(text: str, position: int) -> bool:
    """Whether an odd number of backslashes is right before `position`."""
    if not position or text[position - 1] != "\\":
        return False
    count, window = 0, 1
    while before := text[max(position - count - window, 0) : position - count]:
        backslashes = len(before) - len(before.rstrip("\\"))
        count += backslashes
        if backslashes < window:
            break
        window *= 2
    return count % 2 == 1
