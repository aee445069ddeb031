"""The lines around the prompt: changing lines and queued messages above it, and one line below."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct, field
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.layout import AnyContainer, ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import CompletionsToolbar, SearchToolbar

from teamchat.cli.output.lines import folded
from teamchat.cli.output.terminal.look import BAR
from teamchat.core.conversation.mentioned import with_labels
from teamchat.core.routing.at_calls import with_calls
from teamchat.core.store.unsent import Unsent
from teamchat.core.text.clean import printable

MOST_ROWS = 10  # the most rows for the typed text
MOST_QUEUED = 3  # messages that are shown
CHROME = 6  # rows of the screen that the prompt and the lines around it take at least
EDIT = "↑ to edit"
REMOVES = "Backspace removes it"
KEYS = "/help  Ctrl-D"
STOPS = "/help  Esc stops it"
LONGEST_TITLE = 30  # columns
DROPPED_FIRST = ("members", "team", "tokens", "cost", "title")  # parts of the footer that a narrow terminal loses first


class Footer(Struct, frozen=True):
    """The line below the prompt, about the conversation; an empty part is unknown."""

    team: str = ""
    session: str = ""
    members: str = ""
    tokens: str = ""
    cost: str = ""
    title: str = ""

    def fitted(self, columns: int) -> str:
        """Join the parts that have room.

        `blog · s2 · Shorten the addresses · 4 members · 61k tokens · $0.32`
        """
        parts = {"team": self.team, "session": self.session, "title": _cut(self.title, LONGEST_TITLE)}
        parts |= {"members": self.members, "tokens": self.tokens, "cost": self.cost}
        for dropped in (None, *DROPPED_FIRST):
            parts.pop(dropped or "", None)
            line = " · ".join(filter(None, parts.values()))
            if get_cwidth(line) <= columns:
                return line
        return _cut(line, columns) if columns > 0 else ""


class ChatLines(Struct):
    """The texts of the lines around the prompt."""

    asked: str | None = None
    """The member that asks."""
    footer: Footer = Footer()
    notice: str = ""
    """A text that replaces the footer until the next key."""
    live: tuple[str, ...] = ()
    waiting: Sequence[Unsent] = field(default_factory=list)
    back_at: float = -math.inf
    """When the prompt came back, in seconds of the monotonic clock."""
    works: bool = False
    """Whether members work: then the footer says how to stop them."""
    images: tuple[str, ...] = ()
    """The images that go with the typed text."""
    labelled: bool = False
    """Whether some of the images have labels in the text."""

    @property
    def label(self) -> str:
        """Before the typed text."""
        return f"you → {self.asked}   " if self.asked else "› "

    @property
    def above(self) -> list[str]:
        """The changing lines, below an empty one unless they continue a member's text."""
        return list(self.live) if BAR in "".join(self.live[:1]) else ["", *self.live]

    def queued(self) -> list[str]:
        """List the queued messages, only the last ones if they are many."""
        more = len(self.waiting) - MOST_QUEUED
        lines = [f'queued: "{_one_line(message)}"' for message in self.waiting[-MOST_QUEUED:]]
        return [f"queued: {more} more", *lines] if more > 0 else lines


def layout_of(shown: ChatLines, buffer: Buffer) -> Layout:
    def rule() -> AnyFormattedText:
        return [("fg:ansibrightblack", "─" * (_columns() - 1))]

    search = SearchToolbar(forward_search_prompt="search: ", backward_search_prompt="search: ")
    control = BufferControl(buffer, search_buffer_control=search.control)
    prompt = Window(
        control,
        wrap_lines=True,
        dont_extend_height=True,
        height=lambda: Dimension(min=1, max=max(1, min(MOST_ROWS, get_app().output.get_size().rows - CHROME))),
        get_line_prefix=lambda line, wrap: _prefix(shown, line, wrap),
    )
    rows: list[AnyContainer] = [
        _lines(lambda: ANSI("\n".join(shown.above)), lambda: bool(shown.live)),
        _lines(lambda: _queued_lines(shown), lambda: bool(shown.waiting)),
        Window(FormattedTextControl(rule), height=1, dont_extend_height=True),
        _lines(lambda: _image_line(shown), lambda: bool(shown.images)),
        prompt,
        search,
        CompletionsToolbar(),
        Window(FormattedTextControl(lambda: _footer(shown)), height=1, dont_extend_height=True),
        Window(height=Dimension(min=0, preferred=0)),  # takes what is left of the rows
    ]
    return Layout(HSplit(rows), focused_element=prompt)


def _lines(text: object, there: object) -> ConditionalContainer:
    control = FormattedTextControl(text, focusable=False)  # type: ignore[arg-type]
    return ConditionalContainer(Window(control, dont_extend_height=True), Condition(there))  # type: ignore[arg-type]


def _columns() -> int:
    return get_app().output.get_size().columns


def _prefix(shown: ChatLines, line: int, wrap: int) -> StyleAndTextTuples:
    return [("bold", shown.label)] if line == wrap == 0 else [("", " " * get_cwidth(shown.label))]


def _queued_lines(shown: ChatLines) -> StyleAndTextTuples:
    lines = shown.queued()
    width = _columns() - 1
    earlier = [_cut(line, width) for line in lines[:-1]]
    last = _cut(lines[-1], width - len(EDIT) - 2)
    gap = " " * max(2, width - get_cwidth(last) - len(EDIT))
    return [("fg:ansibrightblack", "\n".join([*earlier, f"{last}{gap}{EDIT}"]))]


def _image_line(shown: ChatLines) -> StyleAndTextTuples:
    """Write `image: red.png   Backspace removes it`; the end of a long line goes first."""
    names, hint = ", ".join(shown.images), f"   {REMOVES}" if shown.labelled else ""
    line = f"image{'s' * (len(shown.images) > 1)}: {names}"
    return [("fg:ansibrightblack", _cut(line, max(1, _columns() - 1 - len(hint))) + hint)]


def _footer(shown: ChatLines) -> StyleAndTextTuples:
    width = _columns() - 1
    if shown.notice:
        return [("", _cut(f"  {shown.notice}", width))]
    keys = STOPS if shown.works else KEYS
    left = f"  {shown.footer.fitted(width - len(keys) - 4)}"
    gap = max(0, width - get_cwidth(left) - len(keys))
    return [("fg:ansibrightblack", _cut(f"{left}{' ' * gap}{keys}", width))]


def _one_line(message: Unsent) -> str:
    shown = with_labels(folded(message.text, message.pasted)[:1000])
    return printable(" ".join(with_calls(message.to, shown).split()))


def _cut(line: str, width: int) -> str:
    if get_cwidth(line) <= width:
        return line
    shown, used = [], 0
    for letter in line:
        used += get_cwidth(letter)
        if used > width - 1:
            break
        shown.append(letter)
    return f"{''.join(shown)}…"
