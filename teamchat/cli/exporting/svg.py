"""A picture of the last screen that a terminal showed of the conversation."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.ansi import AnsiDecoder
from rich.console import Console

from teamchat.cli.exporting.formats import Options
from teamchat.cli.exporting.playing import harmless, moments, shown_on
from teamchat.core.transcripts.transcript import Transcript
from teamchat.patterns import regex

COLUMNS, ROWS = 100, 36
# without the fonts that would be fetched
TEMPLATE = re.sub(r"\s*(?:@font-face \{\{.*?\}\}|<!--.*?-->)", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_NOT_IN_XML = regex("[\ufffe\uffff]")


class _Written:
    """A surface that keeps the finished lines."""

    width, height = COLUMNS, ROWS

    def __init__(self) -> None:
        self.text = io.StringIO()

    def write(self, text: str) -> None:
        self.text.write(text)

    def show(self, lines: Sequence[str]) -> None: ...


def write(transcript: Transcript, options: Options) -> Iterator[str]:
    del options
    surface = _Written()
    last = harmless(replace(transcript, entries=transcript.entries[-ROWS:]))  # each has a line at least
    output = shown_on(surface, last, now=lambda: 0.0)
    for moment in moments(last):
        output(moment.event)
    output.close()
    lines = surface.text.getvalue().rstrip("\n").split("\n")[-ROWS:]
    yield drawn("\n".join(lines), COLUMNS, last.title or last.session)


def drawn(text: str, columns: int, title: str) -> str:
    """The lines of a terminal with that many columns, with their colours, as a picture in a window."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    for line in AnsiDecoder().decode(text):
        console.print(line)
    console.print()  # rich cuts the last line of a picture at its feet
    picture = console.export_svg(title=title, unique_id="terminal", code_format=TEMPLATE)
    return _NOT_IN_XML.sub("\ufffd", picture)
