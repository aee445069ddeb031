"""Takes parts out of a text and tidies the lines that they were in."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from teamchat.patterns import regex

_RUN_OF_SPACES = regex(r"\s{2,}")
_LINE_END = regex(r"\r\n|\n|\r|\Z")
_BREAK = regex(r"[\r\n]")


class Edit(Struct, frozen=True, gc=False):
    """The characters from `start` up to `end` are taken out; `tidy` says whether their lines are tidied."""

    start: int
    end: int
    tidy: bool


def without_edits(text: str, edits: Sequence[Edit]) -> str:
    """Remove the edits (in order, not overlapping) from the text, and blank lines at its beginning and end.

    In a tidied line runs of spaces become one and the ends are trimmed, except the indentation of a line that begins
    with text; if nothing is left the line goes. Lines that an edit joins are one line.
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
    left = "".join(lines)
    body = left.rstrip()
    words = body.lstrip()
    indentation = _BREAK.split(body[: len(body) - len(words)])[-1]
    return indentation + words + _BREAK.split(left[len(body) :])[0] if words else ""


def line_start(text: str, begin: int, at: int) -> int:
    """Return the beginning of the line of `at`, not before `begin`."""
    return max(text.rfind("\n", begin, at) + 1, text.rfind("\r", begin, at) + 1, begin)


def line_end(text: str, at: int) -> tuple[int, int]:
    """Return the end of the line of `at`, and the beginning of the next one."""
    match = _LINE_END.search(text, at)
    return match.span() if match else (len(text), len(text))


def _tidied(line: str, lead: str) -> str:
    """Tidy a line without an edit; `lead` is its text before the edit."""
    indentation = lead[: len(lead) - len(lead.lstrip())] if lead.strip() else ""
    words = _RUN_OF_SPACES.sub(" ", line.strip())
    return indentation + words if words else ""
