"""The words and actions of one turn, as lines under its speaker's bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from msgspec.structs import replace

from teamchat.cli.output.terminal.blocks import Blocks, MarkdownBlock
from teamchat.cli.output.terminal.look import BAR, Look
from teamchat.cli.output.terminal.tools import action, changed, mark
from teamchat.cli.output.terminal.wrap import cells, cut, wrapped
from teamchat.core.routing.edits import Edit, without_edits
from teamchat.core.routing.markers import Author, MarkerKind, scan, touches
from teamchat.core.text.clean import VisibleCleaner, visible
from teamchat.patterns import regex
from teamchat.runners.agent_events import AgentEvent, Denied, Note, Retry, Text, TextDelta, ToolCall, ToolResult

WIDEST = 120  # columns; text for people is not wider
REPLACED = "(the text above was replaced:)"
WRONG = "✗"
DENIED = f"{WRONG} denied"
ARROW = "→"
FENCE = "```"
_MAY_BE_JSON = regex(r"[{\[]|```|`+\Z")


@dataclass(slots=True)
class Voice:
    """The lines of a turn, given to `write` as soon as nothing can change them.

    An agent's text comes in sections: pieces that stream, and then a whole text that replaces them. With `words`, JSON
    in a section is shown in the form that `words` makes, and possible JSON waits until the section is over.
    """

    member: str
    colour: int
    folder: str
    look: Look
    write: Callable[[list[str]], None]
    width: Callable[[], int]
    words: Callable[[str], str] | None = None
    held: list[str] = field(default_factory=list)  # text of this section from where JSON may begin
    ticks: str = ""  # backticks at the end of the text, which may become a fence
    cleaner: VisibleCleaner = field(default_factory=VisibleCleaner)
    blocks: Blocks = field(init=False)
    said: list[str] = field(default_factory=list)  # this section as the agent wrote it
    sections: list[str] = field(default_factory=list)  # earlier sections
    begun: bool = False  # whether lines of this section are written
    last: Literal["head", "text", "lines", "tool"] = "head"
    calls: dict[str, ToolCall] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    failed: tuple[ToolCall, str] | None = None  # it may still turn out to be denied

    def __post_init__(self) -> None:
        self.blocks = self._new_blocks()

    def _new_blocks(self, count: int = 0) -> Blocks:
        """Make the blocks: a terminal without changing lines is shown each line as it comes."""
        return Blocks(by_lines=not self.look.styles, count=count)

    @property
    def columns(self) -> int:
        """The width of the text beside the bar."""
        return min(self.width(), WIDEST) - 2

    def head(self, note: str) -> None:
        name = self.look.coloured(self.member, self.colour, bold=True)
        self._lines([f"{name}   {self.look.dim(cut(note, self.columns - cells(self.member) - 3))}".rstrip()])

    def hear(self, event: AgentEvent) -> None:
        if self.failed and not isinstance(event, Denied):
            self._tell_failed()
        match event:
            case TextDelta(text=text):
                self.said.append(text)
                self._push(text)
            case Text(text=text):
                self.whole(text)
            case ToolCall(id=tool):
                self.end_section()
                self.calls[tool] = event
            case ToolResult(id=tool):
                self._tool_ended(tool, event)
            case Denied():
                self._denied(event)
            case Retry(reason=reason):
                self.aside(f"tries again: {reason}", self.look.warn)
            case Note(text=text):
                self.aside(text)
            case _:
                pass

    def whole(self, text: str) -> None:
        """Show a finished text unless it was shown already."""
        said, final = "".join(self.said).strip(), text.strip()
        if final != said and not self._is_shown(final):
            before = said or (self.sections[-1] if self.sections else "")
            if before and final.startswith(f"{before}\n"):
                self.end_section()
                text = final[len(before) :]
            elif self.begun:
                self.aside(REPLACED)
            else:  # streamed text is not written yet
                self.cleaner, self.blocks = VisibleCleaner(), self._new_blocks(self.blocks.count)
                self.said.clear()
                self.held, self.ticks = [], ""
            self._push(text)
            self.said[:] = [final]
        self.end_section()

    def _is_shown(self, text: str) -> bool:
        """Whether the last sections make up this text: an answer may come in several blocks."""
        end = len(text)
        for section in reversed(self.sections):
            if not end or not text.endswith(section, 0, end):
                break
            end -= len(section)
            while end and text[end - 1].isspace():
                end -= 1
        return not end

    def _push(self, text: str) -> None:
        """Show text up to where JSON may begin."""
        if self.held:
            self.held.append(text)
            return
        if self.words:
            text = self.ticks + text
            match = _MAY_BE_JSON.search(text)
            start = match.start() if match else len(text)
            text, rest = text[:start], text[start:]
            self.held, self.ticks = ([], rest) if len(rest) < len(FENCE) and not rest.strip("`") else ([rest], "")
        self._show(self.blocks.push(self.cleaner.push(text)))

    def end_section(self) -> None:
        if self.words and (held := "".join((self.ticks, *self.held))):
            self.held, self.ticks = [], ""
            self._show(self.blocks.push(self.cleaner.push(self.words(held))))
        self._show(self.blocks.push(self.cleaner.flush()))
        self._show(self.blocks.flush())
        if section := "".join(self.said).strip():
            self.sections.append(section)
        self.said.clear()
        self.begun = False

    def end(self) -> None:
        """Write the text that is still open."""
        if self.failed:
            self._tell_failed()
        self.end_section()
        for call in self.calls.values():
            self._tool(call, DENIED if call.id in self.denied else "")
        self.calls.clear()

    def aside(self, text: str, style: Callable[[str], str] | None = None) -> None:
        """Show a line that the agent does not say."""
        self.end_section()
        self._lines([(style or self.look.dim)(line) for line in wrapped(f"· {visible(text)}", self.columns)])
        self.last = "tool"

    def plain(self, lines: Iterable[str]) -> None:
        """Show lines as they are, which have no styles."""
        self._lines(chain.from_iterable(wrapped(line, self.columns) for line in lines))

    def styled(self, lines: Iterable[str]) -> None:
        """Show lines that fit as they are."""
        self._lines(list(lines))

    def last_words(self) -> str:
        """Return the end of the text that streams."""
        return self.blocks.rest(self.columns)[-self.columns :]

    def tail(self, rows: int) -> list[str]:
        """Return the last rows of the text that streams."""
        text = self.blocks.rest(self.columns * rows).strip("\n")
        bar = self.look.coloured(BAR, self.colour)
        lines = list(wrapped(text, self.columns - 1))[-rows:] if text.strip() else []
        return [f"{bar} {line}".rstrip() for line in lines]

    def _show(self, blocks: list[MarkdownBlock]) -> None:
        for block in blocks:
            if block.kind == "lines":
                self._lines(wrapped("\n" * (self.last == "text") + block.text.removesuffix("\n"), self.columns))
                self.last, self.begun = "lines", True
                continue
            if not block.text.strip():
                continue
            from teamchat.cli.output.terminal.markdown import rendered

            said = replace(block, text=without_calls(block.text, "ai")) if block.kind == "markdown" else block
            if lines := rendered(said, self.columns, self.look):
                self._lines([*([""] if self.last == "text" else []), *lines])
                self.last, self.begun = "text", True

    def _tool_ended(self, tool: str, result: ToolResult) -> None:
        call = self.calls.pop(tool, None)
        if call is None:
            return
        self.end_section()
        if tool in self.denied:
            self._tool(call, DENIED)
        elif wrong := mark(call, result):
            self.failed = (call, wrong)
        else:
            self._tool(call, changed(call.lines))

    def _denied(self, event: Denied) -> None:
        if self.failed and self.failed[0].name == event.tool:
            self._tell_failed(DENIED)
            return
        if self.failed:
            self._tell_failed()
        for call in self.calls.values():
            if (call.name, call.summary) == (event.tool, event.detail) and call.id not in self.denied:
                self.denied.add(call.id)
                return
        self.end_section()
        self._tool(ToolCall("", event.tool, event.detail), DENIED)

    def _tell_failed(self, why: str | None = None) -> None:
        if self.failed:
            (call, reason), self.failed = self.failed, None
            self._tool(call, why or reason)

    def _tool(self, call: ToolCall, right: str) -> None:
        """Show a tool call, `  edit    app.py`, with a mark at the right margin, if there is one."""
        room = self.columns - 2 - (cells(right) + 2 if right else 0)
        left = cut(action(call, self.folder).what, max(room - 8, 8))
        line = replace(action(call, self.folder), what=left).line
        gap = " " * max(self.columns - 2 - cells(line) - cells(right), 2)
        styled = self.look.bad(right) if right.startswith(WRONG) else self.look.dim(right)
        marked = gap + styled if right else ""
        self._lines([f"  {self.look.dim(line)}{marked}"])
        self.last = "tool"

    def _lines(self, lines: Iterable[str]) -> None:
        bar = self.look.coloured(BAR, self.colour)
        self.write([f"{bar} {line}".rstrip() if line else bar for line in lines])


def without_calls(text: str, author: Author) -> str:
    """Remove the markers that say who is to answer: they are shown apart from the text.

    The example of a prompt that an agent repeats stays.
    """
    calls = [marker for marker in scan(text, author) if marker.counts and marker.kind is MarkerKind.NEXT]
    if calls and author == "ai":
        from teamchat.core.routing.repeats import repeats  # most texts call nobody
        from teamchat.core.team.wording import BEFORE_EXAMPLE

        shown = repeats(text, calls, tuple, BEFORE_EXAMPLE)
        calls = [marker for marker in calls if not touches(marker.start, marker.end, shown)]
    edits = [Edit(marker.start, marker.end, tidy=True) for marker in calls]
    return without_edits(text, edits) if edits else text


def arrows(names: Iterable[str]) -> Iterator[str]:
    if listed := ", ".join(names):
        yield f"{ARROW} {listed}"
