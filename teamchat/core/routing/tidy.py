"""Taking pieces out of a text and tidying only the lines that held them (design section 5, stripping)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from teamchat.core.routing.markdown import split_lines

_RUN_OF_SPACES = re.compile(r"\s{2,}")


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters from `start` up to `end` are taken out; `tidy` says whether their lines are tidied."""

    start: int
    end: int
    tidy: bool


def remove(text: str, edits: Sequence[Edit]) -> str:
    """The text without the edits (in order, not overlapping), and without blank lines at its beginning and end.

    In a tidied line runs of spaces become one and the ends are trimmed, but for the indentation of a line that begins
    with text; when nothing is left the line goes. Lines that an edit joins are one line.
    """
    if not edits:
        return _trim_blank_lines(text)
    kept: list[str] = []
    waiting = iter(edits)
    edit = next(waiting, None)
    lines = iter(split_lines(text))
    for line in lines:
        last, at, pieces, lead = line, line.start, list[str](), None
        while edit is not None and edit.start < last.next:
            pieces.append(text[at : edit.start])
            if edit.tidy and lead is None:
                lead = "".join(pieces)
            at = edit.end
            while last.end < at:
                last = next(lines)
            edit = next(waiting, None)
        rest = "".join((*pieces, text[at : last.end]))
        if lead is not None:
            rest = _tidy(rest, lead)
        if rest or lead is None:
            kept += rest, text[last.end : last.next]
    return _trim_blank_lines("".join(kept))


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
