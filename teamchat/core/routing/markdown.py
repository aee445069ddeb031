"""Finds code and quotes in a text by the rules of CommonMark, and its asides. A marker in there is only text.

It finds fenced code, inline code and block quotes, also inside list items, where agents write most of their code. It
differs from CommonMark in three ways: indented code does not count as code, HTML and tables are ordinary text (but for
comments, which are asides), and a block quote has only the lines that begin with `>`; a lazy continuation line is the
author's own text.

The scan is one pass over the lines and takes runs of like lines together. The backticks of a paragraph are read when
somebody asks about it. The cost is linear in the text, and no text makes it fail.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import islice
from typing import Literal

from msgspec import Struct, field

from teamchat.core.routing.asides import NO_ASIDES, Asides, Place, Span, asides, blanked
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
_LINE = regex(rf"(?P<indent>[ \t]*+)(?P<block>(?={_BLOCK}))?[^\r\n]*+")
_LINE_END = regex(rf"{_END}?")
_BLANK_LINES = regex(rf"(?:[ \t]*+{_END})++")
# They begin no block, which most are seen to by their first character.
_PLAIN_LINES = regex(rf"(?:[ \t]*+(?:[^ \t\r\n>#+*0-9`~=_-]|(?!{_BLOCK})[^ \t\r\n])[^\r\n]*+(?:{_END}|\Z))++")
_QUOTE_LINES = regex(rf"(?:[ ]{{0,3}}+>[^\r\n]*+(?:{_END}|\Z))++")
# Three backticks or tildes, closed, and no line in it that may be another fence.
_WHOLE_FENCE = "(?:{})".format(
    "|".join(
        rf"{sign}{{3}}(?!{sign}){more}*+{_END}(?:(?![ \t]*+{sign}{{3}})[^\r\n]*+{_END})*+{sign}{{3}}[ \t]*+{_AT_END}"
        for sign, more in (("`", r"[^`\r\n]"), ("~", r"[^\r\n]"))
    )
)
_NOTHING_LINE = rf"[^`~>\r\n]*+{_END}"  # no place in it, and it opens none
_WHOLE_FENCES = regex(
    rf"(?P<fences>{_WHOLE_FENCE}(?:{_END}{_WHOLE_FENCE})*+)(?P<to_next>{_END}(?:{_NOTHING_LINE})*+(?=```|~~~))?"
)
# Lines at the margin that are a paragraph or a heading each, and quotes there. Each is followed by what begins anew
# whatever is open: a block at the margin, or text there after a blank line or a quote.
_ITEM = r"(?:[-+*]|[0-9]{1,9}[.)])"
_FENCE_LINE = rf"`{{3,}}+[^`\r\n]*+{_AT_END}|~~~"
_ITEM_OF_TEXT = rf"{_ITEM}(?=[ \t])(?![-+*#0-9.) \t]*+(?:>|{_FENCE_LINE}))"
_ALONE = rf"(?:#{{1,6}}(?=[ \t])|{_ITEM_OF_TEXT}|(?![ \t\r\n]|{_BLOCK}))[^\r\n]*+{_END}"
# An item that has nothing but one line of a quote, or the beginning of a fence, which ends with it.
_ITEM_OF_BLOCK = regex(rf"{_ITEM}[ ]{{1,4}}(?:(?P<quote>>)|(?P<fence>{_FENCE_LINE}))")
_AT_MARGIN = r"(?=[^ \t\r\n])"
_BLANK = rf"(?:[ \t]*+{_END})"
_SINGLE_LINES = regex(
    rf"(?:{_ALONE}(?:{_BLANK}++{_AT_MARGIN}|(?={_BLOCK}){_AT_MARGIN})"
    rf"|{_ITEM}[ ]{{1,4}}(?:>|{_FENCE_LINE})[^\r\n]*+{_END}{_AT_MARGIN}"
    rf"|>[^\r\n]*+{_END}(?:[ ]{{0,3}}+>[^\r\n]*+{_END})*+(?![ ]{{0,3}}+>){_BLANK}*+{_AT_MARGIN})++"
)
_REST_OF_LINE = regex(r"[^\r\n]*+")
_LINES_WITH_TEXT = regex(r"(?:[ ]{0,3}+>[^\r\n]*+(?:\r\n|\n|\r)?)++|[^\r\n]++")
_INDENT = regex(r"[ \t]*+")
_BACKTICKS = regex(r"`+")
_DEEPEST = 100  # list items in one another; what lies deeper is text
_MOST_RUNS = 1_000_000  # of backticks in one paragraph, so that memory is bounded; no code is found behind them


_Part = Place | Literal["lines"] | None  # None is a paragraph, and each of the lines one, which may have code in it
_PLACES: tuple[_Part, ...] = (None, Place.FENCE, Place.CODE, Place.QUOTE, "lines")


class _Spans(Struct, frozen=True):
    """Parts of a text, in order and apart from each other: 17 bytes each, since a large text has millions."""

    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    places: bytearray = field(default_factory=bytearray)

    def add(self, start: int, end: int, place: _Part) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.places.append(_PLACES.index(place))

    def at(self, position: int) -> int:
        """The index of the part that the character at `position` is in, or -1."""
        index = bisect_right(self.starts, position) - 1
        return index if index >= 0 and position < self.ends[index] else -1

    def __iter__(self) -> Iterator[tuple[int, int, _Part]]:
        return ((start, end, _PLACES[n]) for start, end, n in zip(self.starts, self.ends, self.places, strict=True))


class Places:
    """Which characters of a text are code, quotation or an aside. Only the text of an agent `thinks`."""

    def __init__(self, text: str, *, thinks: bool = False) -> None:
        self._text, self._thinks = text, thinks
        self._blocks = _Blocks(text).read() if any(sign in text for sign in "`~>") else _Spans()
        self._code: dict[int, _Spans] = {}

    @cached_property
    def asides(self) -> Asides:
        return asides(self._text, lambda position: self._in_markdown(position) is not None, thinks=self._thinks)

    @cached_property
    def _begins(self) -> list[int]:
        return [span.start for span in self.asides.spans]

    def at(self, position: int) -> Place | None:
        """What the character at `position` is part of."""
        index = bisect_right(self._begins, position) - 1
        aside = self.asides.spans[index] if index >= 0 else None
        return aside.place if aside and position < aside.end else self._in_markdown(position)

    def _in_markdown(self, position: int) -> Place | None:
        if not self._blocks.places:
            return None
        index = self._blocks.at(position)
        if index < 0:
            return None
        place = _PLACES[self._blocks.places[index]]
        start, end = self._blocks.starts[index], self._blocks.ends[index]
        if place == "lines":
            start, end = _line_around(self._text, position, start)
            if block := _block_in_item(self._text, start):
                return block[1] if position >= block[0] else None
            place = Place.QUOTE if _is_quote(self._text, start) else None
        return place or (Place.CODE if self._code_in(start, end).at(position) >= 0 else None)

    def _code_in(self, start: int, end: int) -> _Spans:
        """The inline code of a paragraph, which is looked for when it is asked for."""
        if start not in self._code:
            self._code[start] = _code_spans(self._text, start, end)
        return self._code[start]

    @property
    def spans(self) -> tuple[Span, ...]:
        """Code and quotes, in order and apart from each other; quoted lines that follow each other are one."""
        found: list[Span] = []
        for start, end, place in self._blocks:
            for begin, stop, part in self._paragraphs(start, end) if place == "lines" else ((start, end, place),):
                if part:
                    found.append(Span(begin, stop, part))
                else:
                    found += (Span(opens, closes, Place.CODE) for opens, closes, _ in self._code_in(begin, stop))
        return tuple(found)

    def _paragraphs(self, start: int, end: int) -> Iterator[tuple[int, int, Place | None]]:
        """The lines of a part, and the quotes in it."""
        for found in _LINES_WITH_TEXT.finditer(self._text, start, end):
            _, first_ends = _line_around(self._text, found.start(), found.start())
            if block := _block_in_item(self._text, found.start()):
                begin, kind = block
                yield begin, _after_line(self._text, first_ends) if kind is Place.FENCE else first_ends, kind
                continue
            alone = _after_line(self._text, first_ends) >= found.end()
            place = Place.QUOTE if _is_quote(self._text, found.start()) else None
            yield found.start(), first_ends if alone else found.end(), place


@lru_cache(maxsize=1)
def places_of(text: str, *, thinks: bool = False) -> Places:
    """The places of a text that is read more than once in a row."""
    return Places(text, thinks=thinks)


def own_words(reply: str) -> str:
    """The reply with spaces in the place of its quotes and asides."""
    places = places_of(reply, thinks=True)
    own = blanked(reply, [(span.start, span.end) for span in places.spans if span.place is Place.QUOTE])
    return blanked(own, [(span.start, span.end) for span in places.asides.spans])


def asides_of(reply: str) -> Asides:
    """The asides of a reply."""
    return places_of(reply, thinks=True).asides if "<" in reply else NO_ASIDES


def without_asides(reply: str) -> str:
    """The reply with spaces in the place of its asides."""
    return blanked(reply, [(span.start, span.end) for span in asides_of(reply).spans])


class _Fence(Struct, frozen=True):
    start: int
    run: str
    base: int  # the column of the list item it stands in


class _Blocks(Struct):
    """Walks the lines with what is open: list items (the columns of their content), a fence, a paragraph."""

    text: str
    items: list[int] = field(default_factory=list)
    fence: _Fence | None = None
    paragraph: int | None = None  # where it begins
    end: int = 0  # of the last line that was read
    spans: _Spans = field(default_factory=_Spans)

    def read(self) -> _Spans:
        """The fences and quotes, and the paragraphs that have a backtick."""
        at = 0
        while at < len(self.text):
            at = self._in_fence(self.fence, at) if self.fence else self._outside(at)
        if self.fence:
            self.spans.add(self.fence.start, len(self.text), Place.FENCE)
        self._end_paragraph()
        return self.spans

    def _outside(self, at: int) -> int:
        """Reads the line at `at`, or the run of lines like it; where the next one begins."""
        if blank := _BLANK_LINES.match(self.text, at):
            self._end_paragraph()
            return blank.end()
        if self.paragraph is not None and (plain := _PLAIN_LINES.match(self.text, at)):
            self.end = plain.end()
            return self.end
        if lines := _SINGLE_LINES.match(self.text, at):
            return self._single_lines(at, lines.end())
        if not self.items and (fences := _WHOLE_FENCES.match(self.text, at)):
            return self._fences(fences)
        return self._line(at)

    def _single_lines(self, at: int, end: int) -> int:
        self._end_paragraph()
        self.items.clear()
        if any(self.text.find(sign, at, end) >= 0 for sign in "`~>"):
            self.spans.add(at, end, "lines")
        return end

    def _fences(self, found: re.Match[str] | None) -> int:
        """Reads whole fences, and those behind them with only such lines between them that have no place."""
        self._end_paragraph()
        end = 0
        while found:
            end = found.end("fences")
            self.spans.add(found.start(), end, Place.FENCE)
            found = _WHOLE_FENCES.match(self.text, found.end()) if found["to_next"] else None
        return _after_line(self.text, end)

    def _in_fence(self, fence: _Fence, at: int) -> int:
        if fence.base:
            return self._line_in_fence(fence, at)
        for line in _FENCE_END.finditer(self.text, at):
            if _closes(line, fence):
                return self._end_fence(fence, line.end())
        return len(self.text)

    def _line_in_fence(self, fence: _Fence, at: int) -> int:
        """Reads one line of a fence in a list item: it may close the fence, or be out of the item and so of both."""
        line = _LINE.match(self.text, at)
        assert line is not None  # it matches everywhere
        if line.end("indent") < line.end() and _column(line["indent"]) < fence.base:
            self._end_fence(fence, at)
            return at
        closing = _FENCE_END.match(self.text, at)
        if closing and _closes(closing, fence):
            return self._end_fence(fence, line.end())
        return _after_line(self.text, line.end())

    def _end_fence(self, fence: _Fence, end: int) -> int:
        self.spans.add(fence.start, end, Place.FENCE)
        self.fence = None
        return _after_line(self.text, end)

    def _line(self, at: int) -> int:
        line = _LINE.match(self.text, at)
        assert line is not None  # it matches everywhere
        at, end = line.end("indent"), line.end()
        column = _column(line["indent"])
        kept = bisect_right(self.items, column)
        begins_block = line["block"] is not None and column - self._base(kept) <= 3
        if self.paragraph is not None and not begins_block:  # it goes on, though it may be indented less than its item
            self.end = end
        else:
            self._end_paragraph()
            del self.items[kept:]
            end = self._begin(*self._list_items(at, column), end)
        return _after_line(self.text, end)

    def _begin(self, at: int, column: int, end: int) -> int:
        """What begins at `at`, behind the line's indentation and list items; where what was read of it ends."""
        shallow = column - self._base() <= 3
        if shallow and self.text.startswith(">", at):
            more = None if self.items else _QUOTE_LINES.match(self.text, _after_line(self.text, end))
            end = more.end() if more else end
            self.spans.add(at, end, Place.QUOTE)
        elif shallow and (fence := _FENCE.match(self.text, at)):
            self.fence = _Fence(at, fence["run"] or fence["tildes"], self._base())
        else:
            self.paragraph, self.end = at, end
            if not shallow or _BEGINS_BLOCK.match(self.text, at):  # indented code, a heading or a rule stands alone
                self._end_paragraph()
        return end

    def _base(self, kept: int | None = None) -> int:
        """The column in which the content of the innermost (or the `kept`-th) list item begins."""
        depth = len(self.items) if kept is None else kept
        return self.items[depth - 1] if depth else 0

    def _list_items(self, at: int, column: int) -> tuple[int, int]:
        """Opens the list items that begin here, one inside the other, and gives where their content begins."""
        while (
            column - self._base() <= 3
            and len(self.items) < _DEEPEST
            and (marker := _LIST_ITEM.match(self.text, at)) is not None
        ):
            column += marker.end() - at
            indent = _INDENT.match(self.text, marker.end())
            assert indent is not None  # it matches everywhere
            at, content = indent.end(), _column(indent[0], column)
            # A gap that is wide, or is all there is, is not the item's: its content begins one past the marker.
            narrow = content - column <= 4 and self.text[at : at + 1].strip()
            self.items.append(content if narrow else column + 1)
            column = content
        return at, column

    def _end_paragraph(self) -> None:
        if self.paragraph is not None and self.text.find("`", self.paragraph, self.end) >= 0:
            self.spans.add(self.paragraph, self.end, None)
        self.paragraph = None


def _column(spaces: str, column: int = 0) -> int:
    """The column behind `spaces` that begin in `column`; a tab goes to the next multiple of four."""
    if "\t" not in spaces:
        return column + len(spaces)
    for character in spaces:
        column += 4 - column % 4 if character == "\t" else 1
    return column


def _line_around(text: str, position: int, least: int) -> tuple[int, int]:
    """Where the line of the character at `position` begins and ends; it does not begin before `least`."""
    start = max(text.rfind("\n", least, position) + 1, least)
    start = max(text.rfind("\r", start, position) + 1, start)
    found = _REST_OF_LINE.match(text, position)
    return start, found.end() if found else position


def _is_quote(text: str, start: int) -> bool:
    """Whether the line at `start`, one of single lines, is quoted."""
    return text[start : start + 4].lstrip(" ").startswith(">")


def _block_in_item(text: str, start: int) -> tuple[int, Place] | None:
    """Where the quote or the fence begins that is all of a list item in the line at `start`, one of single lines."""
    found = _ITEM_OF_BLOCK.match(text, start)
    if not found:
        return None
    return (found.start("quote"), Place.QUOTE) if found["quote"] else (found.start("fence"), Place.FENCE)


def _after_line(text: str, end: int) -> int:
    """Where the line begins that follows the one that ends at `end`."""
    found = _LINE_END.match(text, end)
    return found.end() if found else end


def _closes(line: re.Match[str], fence: _Fence) -> bool:
    return line["run"].startswith(fence.run) and _column(line["indent"]) - fence.base <= 3


def open_fence(text: str) -> str | None:
    """What would close the code fence that the text leaves open; None when the next paragraph is out of any."""
    blocks = _Blocks(text)
    blocks.read()
    # one in a list item ends with the item
    return blocks.fence.run if blocks.fence and not blocks.fence.base else None


def _code_spans(text: str, start: int, end: int) -> _Spans:
    """Inline code of one paragraph: a run of backticks up to the next run of the same length."""
    runs = _Spans()
    by_length: defaultdict[int, deque[int]] = defaultdict(deque)
    for index, found in enumerate(islice(_BACKTICKS.finditer(text, start, end), _MOST_RUNS)):
        opened, closed = found.span()
        runs.starts.append(opened)
        runs.ends.append(closed)
        by_length[closed - opened].append(index)
    spans = _Spans()
    index = 0
    while index < len(runs.starts):
        opened = runs.starts[index]
        opened += is_escaped(text, opened)
        closing = by_length.get(runs.ends[index] - opened)
        while closing and closing[0] <= index:
            closing.popleft()
        if closing and opened < runs.ends[index]:
            index = closing[0]
            spans.add(opened, runs.ends[index], Place.CODE)
        index += 1
    return spans


def is_escaped(text: str, position: int) -> bool:
    """True if an odd number of backslashes is right before `position`."""
    if not position or text[position - 1] != "\\":
        return False
    count, window = 0, 1
    while before := text[max(position - count - window, 0) : position - count]:
        found = len(before) - len(before.rstrip("\\"))
        count += found
        if found < window:
            break
        window *= 2
    return count % 2 == 1
