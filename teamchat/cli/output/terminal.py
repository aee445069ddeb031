"""On a terminal: text as it streams, one colour per member, one line per tool call, one at each turn's end."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text as RichText

from teamchat.cli.output.words import called, ending, turn_line
from teamchat.core.clean import Cleaner, clean
from teamchat.core.events import (
    AgentSpoke,
    Conclusion,
    ConversationEvent,
    RouteDropped,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.base import AgentEvent, Denied, Note, Retry, Text, TextDelta, ToolCall

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red", "bright_cyan", "bright_magenta")


class TerminalOutput:
    """Colours go by the order in the team, so that a member keeps its own."""

    def __init__(self, members: tuple[str, ...], console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(members)}
        self.cleaner = Cleaner()
        self.block = ""  # the text shown since the last line of another kind
        self.open_line = False

    def __call__(self, event: ConversationEvent) -> None:
        match event:
            case TurnStarted(turn=turn):
                self._line(f"{turn.member}", f"bold {self._colour(turn.member)}")
            case AgentSpoke(member=member, event=agent_event):
                self._agent(member, agent_event)
            case TurnFinished(turn=turn, outcome=outcome, message=message):
                if message:
                    self._finished_text(message.content)
                self._line(turn_line(turn.member, outcome), "dim")
                self.console.line()
            case RouteDropped(route=route):
                self._line(f"· dropped: {called(route)}", "yellow")
            case Warned(text=text):
                self._line(f"· {clean(text)}", "yellow")
            case _:
                pass

    def _agent(self, member: str, event: AgentEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._text(self.cleaner.push(text))
            case Text(text=text):
                self._finished_text(text)
                self._end_block()
            case ToolCall(name=name, summary=summary):
                self._line(clean(f"  {name} {summary}"), f"dim {self._colour(member)}")
            case Denied(tool=tool, detail=detail):
                self._line(clean(f"  denied: {tool} {detail}"), "red")
            case Retry(reason=reason):
                self._line(clean(f"  tries again: {reason}"), "yellow")
            case Note(text=text):
                self._line(clean(f"  {text}"), "dim")
            case _:
                pass

    def _text(self, text: str) -> None:
        self.block += text
        self.open_line = not self.block.endswith("\n") if self.block else False
        self.console.print(RichText(text), end="")

    def _finished_text(self, text: str) -> None:
        """Show a finished text unless it is what was streamed; a different one replaces what was streamed."""
        self._text(self.cleaner.flush())
        final = clean(text)
        if final.strip() in (self.block.strip(), self.last.strip()):
            return
        if self.block.strip():
            self._line("  (the text above was replaced:)", "dim")
        self.block = ""
        self._text(final)

    last = ""

    def _end_block(self) -> None:
        """What follows is another text; this one may still come again as the reply."""
        if self.block.strip():
            self.last = self.block
        if self.open_line:
            self.console.line()
        self.block, self.open_line = "", False

    def _line(self, text: str, style: str) -> None:
        self._text(self.cleaner.flush())
        self._end_block()
        self.console.print(RichText(text, style=style))

    def _colour(self, member: str) -> str:
        return self.colours.get(member, "white")

    def finish(self, conclusion: Conclusion) -> None:
        for line in ending(conclusion):
            self._line(clean(line), "bold yellow")
