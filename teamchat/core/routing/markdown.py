"""Where a text is code or a quotation, as CommonMark reads it: the places in which a marker is only text.

Fenced code, inline code and block quotes are found, inside list items too, because agents write most of their code
there. Indented code is not code here (design section 5 names three places), HTML and tables are not looked into, and
a quote is the lines that begin with `>`: an unmarked line that goes on with its paragraph is the author's own again.
One pass over the lines and one over the backticks: linear in the text, and no text makes it fail.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict, deque
from dataclasses import dataclass, field
from enum import StrEnum

_LINE_END = re.compile(r"\r\n|\n|\r")
_INDENT = re.compile(r"[ \t]*+")
_LIST_ITEM = re.compile(r"(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t\r\n]|\Z)")
_FENCE = re.compile(r"(?P<run>`{3,}+)[^`\r\n]*+(?=[\r\n]|\Z)|(?P<tildes>~{3,}+)")
_FENCE_END = re.compile(r"(?P<run>`{3,}+|~{3,}+)[ \t]*+(?=[\r\n]|\Z)")
_BLOCK = re.compile(rf">|#{{1,6}}(?=[ \t\r\n]|\Z)|{_LIST_ITEM.pattern}|{_FENCE.pattern}")
_BACKTICKS = re.compile(r"`+")


class Place(StrEnum):
    """A part of a text that is shown rather than said."""

    FENCE = "fence"
    CODE = "code"
    QUOTE = "quote"


@dataclass(frozen=True, slots=True)
class Span:
    """The characters from `start` up to `end`."""

    start: int
    end: int
    place: Place


@dataclass(frozen=True, slots=True)
class Line:
    """A line's text is `[start, end)`, its line end `[end, next)`."""

    start: int
    end: int
    next: int


def split_lines(text: str) -> list[Line]:
    """The lines of a text, ended by CR, LF or CRLF; the last one has no line end and may be empty."""
    lines: list[Line] = []
    start = 0
    for found in _LINE_END.finditer(text):
        lines.append(Line(start, found.start(), found.end()))
        start = found.end()
    lines.append(Line(start, len(text), len(text)))
    return lines


class Places:
    """The spans of a text that are code or quotation, in order and apart from each other."""

    def __init__(self, text: str) -> None:
        self.spans = tuple(_Blocks(text).read())
        self._starts = [span.start for span in self.spans]

    def at(self, position: int) -> Place | None:
        """What the character at `position` is part of."""
        index = bisect_right(self._starts, position) - 1
        if index >= 0 and position < self.spans[index].end:
            return self.spans[index].place
        return None


@dataclass(frozen=True, slots=True)
class _Fence:
    start: int
    run: str
    base: int  # the column of the list item it stands in


@dataclass(slots=True)
class _Blocks:
    """Walks the lines with what is open: list items (the columns of their content), a fence, a paragraph."""

    text: str
    items: list[int] = field(default_factory=list)
    fence: _Fence | None = None
    paragraph: tuple[int, int] | None = None
    spans: list[Span] = field(default_factory=list)

    def read(self) -> list[Span]:
        for line in split_lines(self.text):
            at, column = self._indent(line.start, 0)
            blank = at == line.end
            if self.fence is None or self._leaves_fence(line, at, column, blank=blank):
                self._line(line, at, column, blank=blank)
        if self.fence is not None:
            self.spans.append(Span(self.fence.start, len(self.text), Place.FENCE))
        self._end_paragraph()
        return self.spans

    def _indent(self, start: int, column: int) -> tuple[int, int]:
        """Where the indentation from `start` ends, and in which column; a tab goes to the next multiple of four."""
        found = _INDENT.match(self.text, start)
        end = found.end() if found else start
        for character in self.text[start:end]:
            column += 4 - column % 4 if character == "\t" else 1
        return end, column

    def _leaves_fence(self, line: Line, at: int, column: int, *, blank: bool) -> bool:
        """Whether the line is not the open fence's: its list item has ended. Its closing line ends it, too."""
        fence = self.fence
        if fence is None or blank:
            return False
        if column < fence.base:
            self.spans.append(Span(fence.start, line.start, Place.FENCE))
            self.fence = None
            return True
        closing = _FENCE_END.match(self.text, at)
        if closing and column - fence.base <= 3 and closing["run"].startswith(fence.run):
            self.spans.append(Span(fence.start, line.end, Place.FENCE))
            self.fence = None
        return False

    def _line(self, line: Line, at: int, column: int, *, blank: bool) -> None:
        if blank:
            self._end_paragraph()
            return
        kept = bisect_right(self.items, column)
        begins_block = column - self._base(kept) <= 3 and self._begins_block(line, at)
        if self.paragraph and not begins_block:  # it goes on, though it may be indented less than its list item
            self.paragraph = (self.paragraph[0], line.end)
            return
        self._end_paragraph()
        del self.items[kept:]
        at, column = self._list_items(at, column)
        shallow = column - self._base() <= 3
        if shallow and self.text.startswith(">", at):
            self.spans.append(Span(at, line.end, Place.QUOTE))
        elif shallow and (fence := _FENCE.match(self.text, at)):
            self.fence = _Fence(at, fence["run"] or fence["tildes"], self._base())
        else:
            self.paragraph = (at, line.end)
            if not shallow or self._begins_block(line, at):  # indented code, a heading or a rule stands alone
                self._end_paragraph()

    def _begins_block(self, line: Line, at: int) -> bool:
        """Whether something begins here that ends a paragraph; an underline and a rule are told by their characters."""
        return bool(_BLOCK.match(self.text, at)) or not self.text[at : line.end].strip("-=*_ \t")

    def _base(self, kept: int | None = None) -> int:
        """The column in which the content of the innermost (or the `kept`-th) list item begins."""
        depth = len(self.items) if kept is None else kept
        return self.items[depth - 1] if depth else 0

    def _list_items(self, at: int, column: int) -> tuple[int, int]:
        """Opens the list items that begin here, one inside the other, and gives where their content begins."""
        while column - self._base() <= 3 and (marker := _LIST_ITEM.match(self.text, at)):
            column += marker.end() - at
            at, content = self._indent(marker.end(), column)
            # A gap that is wide, or is all there is, is not the item's: its content begins one past the marker.
            narrow = content - column <= 4 and self.text[at : at + 1].strip()
            self.items.append(content if narrow else column + 1)
            column = content
        return at, column

    def _end_paragraph(self) -> None:
        if self.paragraph is not None:
            self.spans.extend(_code_spans(self.text, *self.paragraph))
            self.paragraph = None


def open_fence(text: str) -> str | None:
    """What would close the code fence that the text leaves open; None when the next paragraph is out of any."""
    blocks = _Blocks(text)
    blocks.read()
    # one in a list item ends with the item
    return blocks.fence.run if blocks.fence and not blocks.fence.base else None


def _code_spans(text: str, start: int, end: int) -> list[Span]:
    """Inline code of one paragraph: a run of backticks up to the next run of the same length."""
    runs = [found.span() for found in _BACKTICKS.finditer(text, start, end)]
    by_length: defaultdict[int, deque[int]] = defaultdict(deque)
    for index, (opened, closed) in enumerate(runs):
        by_length[closed - opened].append(index)
    spans: list[Span] = []
    index = 0
    while index < len(runs):
        opened, closed = runs[index]
        opened += is_escaped(text, opened)
        closing = by_length[closed - opened]
        while closing and closing[0] <= index:
            closing.popleft()
        if opened < closed and closing:
            index = closing[0]
            spans.append(Span(opened, runs[index][1], Place.CODE))
        index += 1
    return spans


def is_escaped(text: str, position: int) -> bool:
    """Whether an odd number of backslashes stands right before `position`."""
    first = position
    while first > 0 and text[first - 1] == "\\":
        first -= 1
    return (position - first) % 2 == 1
