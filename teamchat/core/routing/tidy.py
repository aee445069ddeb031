"""Takes pieces out of a text and tidies only the lines that held them. All other text stays as it was said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_RUN_OF_SPACES = re.compile(r"\s{2,}")
_LINE_END = re.compile(r"\r\n|\n|\r|\Z")


class Edit(NamedTuple):
    """The characters from `start` up to `end` are taken out; `tidy` says whether their lines are tidied."""

    start: int
    end: int
    tidy: bool


def remove(text: str, edits: Sequence[Edit]) -> str:
    """The text without the edits (in order, not overlapping), and without blank lines at its beginning and end.

    In a tidied line runs of spaces become one and the ends are trimmed, but for the indentation of a line that begins
    with text; when nothing is left the line goes. Lines that an edit joins are one line.
    """
    kept: list[str] = []
    done = at = 0
    while at < len(edits):
        first = _line_start(text, done, edits[at].start)
        kept.append(text[done:first])
        line, done, at = _without(text, first, edits, at)
        kept.append(line)
    return _trim_blank_lines("".join((*kept, text[done:])))


def _line_start(text: str, begin: int, at: int) -> int:
    """Where the line of `at` begins, which is not before `begin`."""
    return max(text.rfind("\n", begin, at) + 1, text.rfind("\r", begin, at) + 1, begin)


def _without(text: str, begin: int, edits: Sequence[Edit], at: int) -> tuple[str, int, int]:
    """The line at `begin` without its edits, the first of which is at index `at`; where the next line and edit are."""
    pieces: list[str] = []
    lead, end, after = None, begin, begin
    while at < len(edits) and (edits[at].start < after or not pieces):
        edit = edits[at]
        pieces.append(text[begin : edit.start])
        if edit.tidy and lead is None:
            lead = "".join(pieces)
        begin, at = edit.end, at + 1
        if begin > end:
            end, after = _line_end(text, begin)
    rest = "".join((*pieces, text[begin:end]))
    if lead is not None:
        rest = _tidy(rest, lead)
    return (rest + text[end:after] if rest or lead is None else ""), after, at


def _line_end(text: str, at: int) -> tuple[int, int]:
    """Where the line of `at` ends, and where the next one begins."""
    found = _LINE_END.search(text, at)
    return found.span() if found else (len(text), len(text))


def _tidy(line: str, lead: str) -> str:
    """The line tidied; `lead` is what stood in it before the first edit."""
    indentation = lead[: len(lead) - len(lead.lstrip())] if lead.strip() else ""
    return indentation + _RUN_OF_SPACES.sub(" ", line.strip())


def _trim_blank_lines(text: str) -> str:
    body = text.rstrip()
    first = len(body) - len(body.lstrip())
    begin = max(text.rfind("\n", 0, first), text.rfind("\r", 0, first)) + 1
    trailing = text[len(body) :]
    return text[begin : len(body)] + trailing.split("\n", 1)[0].split("\r", 1)[0] if body else ""
