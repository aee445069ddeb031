"""Cuts Markdown that streams into blocks that can be shown, each as soon as nothing that follows can change it.

A block begins at the top level: a paragraph, a list item, a heading, a code fence. Nothing is lost: the texts of
all blocks together are the text. A block that grows too long is given out in parts, which are shown as they are
written; the parts of a code fence stay code. Text behind `MOST` characters is no longer cut at blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from teamchat.patterns import regex

LONGEST = 8_000  # characters; a longer block is not read as Markdown, which takes more than linear time
MOST = 200_000  # characters of one turn read as Markdown; the rest is shown as it was written
PER_BLOCK = 100  # characters that each further block counts as; rendering one takes as long as 200 of prose
_FENCE = regex(r"( {0,3})(`{3,}|~{3,})[ \t]*([^\n]*)")
_ITEM = regex(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)")
_HEADING = regex(r" {0,3}#{1,6}(?:[ \t]|$)")

Kind = Literal["markdown", "code", "plain", "lines"]


class MarkdownBlock(Struct, frozen=True):
    """`text` is the block as written; for code in a fence, `code` is the content of the fence, in that `language`.

    `lines` are whole lines, empty ones included, or a part of a line that is too long.
    """

    kind: Kind
    text: str
    code: str = ""
    language: str = ""


class Blocks:
    """Takes text in pieces and gives blocks. `rest` is the unfinished block.

    With `by_lines` all text is given as `lines`, as soon as they are whole. `count` is how many characters were read as
    Markdown.
    """

    def __init__(self, *, by_lines: bool = False, count: int = 0) -> None:
        self.count = count
        self._by_lines = by_lines or count > MOST
        self._lines: list[str] = []  # lines of the open block
        self._size = 0
        self._tail: list[str] = []  # parts of an incomplete line
        self._tail_size = 0
        self._fence = ""  # the characters that close the open one
        self._language = ""
        self._fresh = True  # the opening line of the fence is in this block
        self._gap = self._list = False

    def push(self, text: str) -> list[MarkdownBlock]:
        """Return the blocks that this piece completes."""
        done: list[MarkdownBlock] = []
        at = 0
        while not self._by_lines and (end := text.find("\n", at) + 1):
            line, at = text[at:end], end
            if self._tail:
                line = "".join((*self._tail, line))
                self._tail, self._tail_size = [], 0
            done += self._line(line)
        if self._by_lines:
            done, at = [*done, *self._whole_lines(text, at)], text.rfind("\n", at) + 1 or at
        self._tail.append(text[at:])
        self._tail_size += len(text) - at
        if self._tail_size > LONGEST:
            done += self._long()
        return done

    def flush(self) -> list[MarkdownBlock]:
        """Return the rest as blocks; the next `push` begins another text."""
        line = "".join(self._tail)
        self._tail, self._tail_size = [], 0
        done = [*(self._line(line) if line else []), *self._cut()]
        self._fence, self._language, self._fresh = "", "", True
        return done

    def rest(self, longest: int) -> str:
        """Return the end of the unfinished block, of at least `longest` characters if it has that many."""
        parts, size = list[str](), 0
        for part in (*reversed(self._tail), *reversed(self._lines)):
            if size >= longest:
                break
            parts.append(part)
            size += len(part)
        return "".join(reversed(parts))

    def _whole_lines(self, text: str, at: int) -> Iterator[MarkdownBlock]:
        """Yield the lines that the text from `at` on completes, with the held text."""
        end = text.rfind("\n", at) + 1
        tail = self._tail if end else []
        if lines := "".join((*self._lines, *tail, text[at:end])):
            yield MarkdownBlock("lines", lines)
        self._lines, self._size = [], 0
        if end:
            self._tail, self._tail_size = [], 0

    def _line(self, line: str) -> Iterator[MarkdownBlock]:
        if self._by_lines:
            yield MarkdownBlock("lines", line)
        elif self._fence:
            self._add(line)
            match = _FENCE.match(line)
            if match and not match[3].strip() and match[2].startswith(self._fence):
                yield from self._cut(closed=True)
        elif not line.strip():
            self._gap = True
            self._add(line)
        else:
            yield from self._text(line)
        if self._size > LONGEST:
            yield from self._cut()

    def _text(self, line: str) -> Iterator[MarkdownBlock]:
        item = bool(_ITEM.match(line))
        inside = self._list and line[:1] in " \t" and not (item and self._gap and line[:2] != "  ")
        if inside:
            self._gap = False
            self._add(line)
            return
        opens = _FENCE.match(line)
        if opens and opens[2][0] == "`" and "`" in opens[3]:
            opens = None
        heading = bool(_HEADING.match(line))
        if self._lines and (self._gap or opens or heading):
            yield from self._cut()
        self._list = item if not self._lines else self._list
        self._gap = False
        self._add(line)
        if opens:
            self._fence, self._language = opens[2], opens[3].split(" ")[0].strip()
        elif heading:
            yield from self._cut()

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line)

    def _long(self) -> Iterator[MarkdownBlock]:
        """Cut a line that is too long to wait for its end, at a space."""
        line = "".join(self._tail)
        at = line.rfind(" ", LONGEST // 2) + 1 or len(line)
        self._tail, self._tail_size = [line[at:]], len(line) - at
        self._add(line[:at])
        yield from self._cut()

    def _cut(self, *, closed: bool = False) -> Iterator[MarkdownBlock]:
        """Yield the open block, if there is one."""
        kind: Kind = "lines" if self._by_lines else "plain" if self._size > LONGEST else "markdown"
        text = "".join(self._lines)
        self.count += len(text) + PER_BLOCK
        self._by_lines = self._by_lines or self.count > MOST
        lines, fresh = self._lines, self._fresh
        self._lines, self._size, self._gap = [], 0, False
        if self._fence:
            code = "".join(lines[1 if fresh else 0 : -1 if closed else None])
            block = MarkdownBlock("code", text, code, self._language)
            self._fresh = closed
            if closed:
                self._fence = self._language = ""
            if text:
                yield block
            return
        self._list = False
        if text:
            yield MarkdownBlock(kind, text)
