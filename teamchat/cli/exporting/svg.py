"""A picture of the conversation as a terminal showed it, as SVG."""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterator, Sequence

from msgspec.structs import replace
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.ansi import AnsiDecoder
from rich.console import Console

from teamchat.cli.exporting.formats import ExportOptions
from teamchat.cli.exporting.screen import harmless, moments, shown_on
from teamchat.cli.output.lines import plural
from teamchat.cli.output.terminal.look import Look
from teamchat.core.transcripts.transcript import Transcript
from teamchat.core.turn.run_events import MessageStored, Replied
from teamchat.patterns import regex

PICTURE_COLUMNS, PICTURE_ROWS = 100, 36
# removes the fonts that would be fetched
TEMPLATE = re.sub(r"\s*(?:@font-face \{\{.*?\}\}|<!--.*?-->)", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_NOT_IN_XML = regex("[\ufffe\uffff]")


class _Written:
    """A surface that keeps the finished lines."""

    width, height = PICTURE_COLUMNS, PICTURE_ROWS

    def __init__(self) -> None:
        self.text = io.StringIO()

    def write(self, text: str) -> None:
        self.text.write(text)

    def show(self, lines: Sequence[str]) -> None: ...


def write_svg(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    """Draw the end of the conversation. If that is not all, the first line says how much it is."""
    del options
    surface = _Written()
    end = deque(transcript.entries, PICTURE_ROWS)  # each takes at least one line
    last = harmless(replace(transcript, entries=tuple(end)))
    output = shown_on(surface, last, now=lambda: 0.0)
    ends = list[int]()  # the number of lines after each message
    for moment in moments(last):
        output(moment.event)
        if isinstance(moment.event, MessageStored | Replied):
            ends.append(surface.text.getvalue().count("\n"))
    output.close()
    lines = surface.text.getvalue().rstrip("\n").split("\n")
    total = transcript.messages
    if len(lines) > PICTURE_ROWS or len(ends) < total:
        first = max(len(lines) - PICTURE_ROWS + 2, 0)
        shown = sum(end > first for end in ends)
        part = f"the last {shown:,} of {plural(total, 'message')}" if shown < total else "the first lines are left out"
        lines = [Look().dim(f"· {part}"), "", *lines[first:]]
    yield drawn("\n".join(lines), PICTURE_COLUMNS, last.title or last.session)


def drawn(text: str, columns: int, title: str) -> str:
    """Draw the lines of a terminal with `columns` columns, with their colours, as a picture in a window."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    for line in AnsiDecoder().decode(text):
        console.print(line)
    console.print()  # rich cuts the last line of a picture at its feet
    picture = console.export_svg(title=title, unique_id="terminal", code_format=TEMPLATE)
    return _NOT_IN_XML.sub("\ufffd", picture)
