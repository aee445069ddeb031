"""Takes parts out of a text and tidies the lines that they were in.

The text is made in pieces, so that one of a hundred megabytes is printed without a copy of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from teamchat.patterns import regex

PIECE = 256 * 1024  # characters
_RUN_OF_SPACES = regex(r"\s{2,}")
_INDENTATION = regex(r"\s*+")
_LINE_END = regex(r"\r\n|\n|\r|\Z")

Part = tuple[int, int]
"""Where a part of a text begins and ends."""


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
    return "".join(pieces_without_edits(text, edits))


def pieces_without_edits(text: str, edits: Sequence[Edit]) -> Iterator[str]:
    """The text of `without_edits` in pieces."""
    return _without_blank_ends(_edited(text, edits))


def _edited(text: str, edits: Sequence[Edit]) -> Iterator[str]:
    done = at = 0
    while at < len(edits):
        first = line_start(text, done, edits[at].start)
        yield from _pieces(text, (done, first))
        line = _line(text, first, edits, at)
        yield from _line_pieces(text, line)
        done, at = line.after, line.next_edit
    yield from _pieces(text, (done, len(text)))


def _pieces(text: str, *parts: Part) -> Iterator[str]:
    for start, end in parts:
        for at in range(start, end, PIECE):
            yield text[at : min(at + PIECE, end)]


def line_start(text: str, begin: int, at: int) -> int:
    """Where the line of `at` begins, which is not before `begin`."""
    return max(text.rfind("\n", begin, at) + 1, text.rfind("\r", begin, at) + 1, begin)


class _Line(Struct, frozen=True):
    """What remains of a line: its parts, the first `lead` of which were before the first edit that tidies it.

    `lead` is None where no edit does. The line ends at `end`, the next one begins at `after`, and `next_edit` is the
    index of the first edit behind the line.
    """

    parts: tuple[Part, ...]
    lead: int | None
    end: int
    after: int
    next_edit: int


def _line(text: str, begin: int, edits: Sequence[Edit], at: int) -> _Line:
    """The line at `begin`; its first edit is at index `at`."""
    parts: list[Part] = []
    lead, end, after = None, begin, begin
    while at < len(edits) and (edits[at].start < after or not parts):
        edit = edits[at]
        parts.append((begin, edit.start))
        if edit.tidy and lead is None:
            lead = len(parts)
        begin, at = edit.end, at + 1
        if begin > end:
            end, after = line_end(text, begin)
    parts.append((begin, end))
    return _Line(tuple(parts), lead, end, after, at)


def line_end(text: str, at: int) -> Part:
    """Where the line of `at` ends, and where the next one begins."""
    found = _LINE_END.search(text, at)
    return found.span() if found else (len(text), len(text))


def _line_pieces(text: str, line: _Line) -> Iterator[str]:
    rest = _pieces(text, *line.parts)
    if line.lead is None:
        yield from rest
    elif first := next(tidied := _tidy(rest), ""):
        yield _indentation(text, line.parts[: line.lead])
        yield first
        yield from tidied
    else:
        return
    yield text[line.end : line.after]


def _indentation(text: str, lead: tuple[Part, ...]) -> str:
    """The space before the text of these parts; empty where they have no text."""
    spaces: list[str] = []
    for start, end in lead:
        found = _INDENTATION.match(text, start, end)
        assert found is not None  # it matches everywhere
        spaces.append(found[0])
        if found.end() < end:
            return "".join(spaces)
    return ""


def _tidy(pieces: Iterable[str]) -> Iterator[str]:
    """The text of the pieces without the space around it; runs of spaces are one."""
    space, begun = "", False
    for piece in pieces:
        text = space + piece if begun else piece.lstrip()
        if body := text.rstrip():
            yield _RUN_OF_SPACES.sub(" ", body)
            begun = True
        space = text[len(body) :][:2]  # two are a run


def _without_blank_ends(pieces: Iterable[str]) -> Iterator[str]:
    held: list[str] = []  # space that may turn out to be at the end
    begun = False
    for piece in pieces:
        body = piece.rstrip()
        if not body:
            held.append(piece)
            continue
        space = "".join((*held, piece[: len(piece) - len(piece.lstrip())]))
        if not begun:
            space = space[max(space.rfind("\n"), space.rfind("\r")) + 1 :]
        yield space
        yield body.lstrip()
        held, begun = [piece[len(body) :]], True
    if begun:
        yield "".join(held).split("\n", 1)[0].split("\r", 1)[0]
