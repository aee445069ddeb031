"""On a terminal: text as it streams, one colour per member, one line per tool call, one at each turn's end.

If several members speak at the same time, each line begins with its speaker and appears when it is complete.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text as RichText

from teamchat.cli.output.lines import (
    BEGINS,
    called,
    closing_lines,
    compacted,
    compared_lines,
    found_lessons,
    group_of,
    learned,
    left_out,
    refusal,
    todo_line,
    turn_line,
)
from teamchat.core.engine.state import Route
from teamchat.core.messages import name_of
from teamchat.core.text.clean import VisibleCleaner, printable, visible
from teamchat.core.turn.events import (
    AgentSpoke,
    Conclusion,
    ConversationEvent,
    GroupCompared,
    LessonsFound,
    Replied,
    RouteDropped,
    RouteQueued,
    RouteRefused,
    SummaryStored,
    TodoChanged,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.events import AgentEvent, Denied, Note, Retry, Text, TextDelta, ToolCall

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red", "bright_cyan", "bright_magenta")


@dataclass(slots=True)
class MemberStream:
    """What one turn has shown: `block` since its last line of another kind, and `last`, the block before that."""

    member: str
    colour: str
    cleaner: VisibleCleaner = field(default_factory=VisibleCleaner)
    block: list[str] = field(default_factory=list)
    last: str = ""
    pending: list[str] = field(default_factory=list)  # an incomplete line, not shown yet
    said: list[str] = field(default_factory=list)  # the agent's own text that `block` shows
    last_said: str = ""  # and `last`

    def has_said(self, text: str) -> bool:
        """True if exactly this text was shown."""
        return text.strip() in ("".join(self.said).strip(), self.last_said)

    def has_shown(self, text: str) -> bool:
        return text.strip() in ("".join(self.block).strip(), self.last)

    def end_block(self) -> None:
        """Begin another text. The current one may still be repeated as the reply."""
        self.last = "".join(self.block).strip() or self.last
        self.last_said = "".join(self.said).strip() or self.last_said
        self.block.clear()
        self.said.clear()
        self.pending.clear()

    def whole_lines(self, text: str) -> list[str]:
        """The lines that this piece of text completes."""
        *lines, rest = text.split("\n")
        if lines:
            lines[0] = "".join((*self.pending, lines[0]))
            self.pending.clear()
        self.pending.append(rest)
        return lines

    def more_of(self, text: str) -> str:
        """The rest of `text` after what was shown, if it starts with that."""
        shown = "".join(self.block).strip() or self.last
        first, whole = f"{shown}\n", text.strip()
        return whole.removeprefix(first).strip() if shown and whole.startswith(first) else ""


class TerminalOutput:
    """A member's colour follows its place in the team, so it stays the same."""

    def __init__(self, members: tuple[str, ...], console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(members)}
        self.voices: dict[int, MemberStream] = {}
        self.speaking: set[int] = set()
        self.queued: list[Route] = []
        self.together = False
        self.open_line = False

    def __call__(self, event: ConversationEvent) -> None:
        match event:
            case RouteQueued() | RouteDropped() | RouteRefused():
                self._queue(event)
            case TurnStarted(turn=turn, route=route):
                self._tell_queued(route)
                self._start(turn.number, turn.member, "" if route else f" {BEGINS[turn.setup.purpose]}")
                if line := left_out(turn.member, turn.setup):
                    self._line(f"· {line}", "dim")
            case SummaryStored() | LessonsFound():
                self._made(self.voices[event.turn.number], event)
            case AgentSpoke(turn=number, event=agent_event):
                self._agent(self.voices[number], agent_event)
            case Replied(turn=turn, message=message):
                voice = self.voices.get(turn.number) or self._voice(turn.number, name_of(message))
                self._whole(voice, message.content)
            case TurnFinished(turn=turn, outcome=outcome):
                self._finish(turn.number)
                self._line(turn_line(turn.member, turn.setup, outcome), "dim")
                self.console.line()
            case TodoChanged() | GroupCompared() | Warned():
                self._note(event)
            case _:
                pass

    def _note(self, event: TodoChanged | GroupCompared | Warned) -> None:
        match event:
            case TodoChanged(change=change):
                self._line(f"· {todo_line(change)}", "dim")
            case GroupCompared():
                for line in compared_lines(event):
                    self._line(f"· {printable(line)}", "yellow")
            case Warned(text=text):
                self._line(f"· {visible(text)}", "yellow")

    def _voice(self, number: int, member: str) -> MemberStream:
        self.voices[number] = MemberStream(member, self.colours.get(member, "white"))
        return self.voices[number]

    def _queue(self, event: RouteQueued | RouteDropped | RouteRefused) -> None:
        match event:
            case RouteQueued(route=route):
                self.queued.append(route)
            case RouteDropped(route=route):
                self._line(f"· dropped: {called(route)}", "yellow")
            case RouteRefused(route=route, limit=limit):
                self._line(f"· {refusal(route, limit)}", "yellow")

    def _tell_queued(self, speaks: Route | None) -> None:
        """Tell what has been queued since. Members that speak now, and their groups, are left out."""
        waiting = [route.target for route in self.queued if not speaks or group_of(route) != group_of(speaks)]
        self.queued.clear()
        if waiting:
            self._line(f"· queued: {', '.join(waiting)}", "dim")

    def _start(self, number: int, member: str, does: str) -> None:
        if self.speaking and not self.together:
            self._end_line()
            self.together = True
        self.speaking.add(number)
        voice = self._voice(number, member)
        self._line(member + does, f"bold {voice.colour}")

    def _finish(self, number: int) -> None:
        self._end_block(self.voices[number])
        self.speaking.discard(number)
        self.together = self.together and bool(self.speaking)

    def _agent(self, voice: MemberStream, event: AgentEvent) -> None:
        match event:
            case TextDelta(text=text):
                voice.said.append(text)
                self._text(voice, voice.cleaner.push(text))
            case Text(text=text):
                self._whole(voice, text)
                self._end_block(voice)
            case ToolCall(name=name, summary=summary):
                self._aside(voice, f"{name} {summary}", f"dim {voice.colour}")
            case Denied(tool=tool, detail=detail):
                self._aside(voice, f"denied: {tool} {detail}", "red")
            case Retry(reason=reason):
                self._aside(voice, f"tries again: {reason}", "yellow")
            case Note(text=text):
                self._aside(voice, text, "dim")
            case _:
                pass

    def _text(self, voice: MemberStream, text: str) -> None:
        """Show `text`, which is already made visible."""
        if not text:
            return
        voice.block.append(text)
        if self.together:
            for line in voice.whole_lines(text):
                self._prefixed(voice, line)
        else:
            self.open_line = not text.endswith("\n")
            self.console.file.write(text)  # it has no style, and `print` would take a hundred times as long
            self.console.file.flush()

    def _prefixed(self, voice: MemberStream, line: str) -> None:
        self.console.print(RichText.assemble((f"{voice.member} │ ", voice.colour), line))

    def _whole(self, voice: MemberStream, text: str) -> None:
        """Show a finished text unless it was already shown. A different text replaces the streamed one."""
        self._text(voice, voice.cleaner.flush())
        if voice.has_said(text):
            return
        final = visible(text)
        if voice.has_shown(final):
            return
        more = voice.more_of(final)
        if not more and "".join(voice.block).strip():
            self._aside(voice, "(the text above was replaced:)", "dim")
        self._text(voice, f"\n{more}" if more else final)
        voice.said[:] = [text]
        self._end_block(voice)

    def _end_block(self, voice: MemberStream) -> None:
        self._text(voice, voice.cleaner.flush())
        if pending := "".join(voice.pending):
            self._prefixed(voice, pending)
        voice.end_block()
        self._end_line()

    def _aside(self, voice: MemberStream, text: str, style: str) -> None:
        self._end_block(voice)
        who = f"{voice.member} │ " if self.together else "  "
        self._line(visible(who + text), style)

    def _made(self, voice: MemberStream, event: SummaryStored | LessonsFound) -> None:
        """Show the summary or the lessons that a turn has stored."""
        if isinstance(event, SummaryStored):
            self._whole(voice, event.summary.text)
            self._line(f"· {compacted(event.turn, event.summary)}", "dim")
            return
        self._end_block(voice)
        self._line(f"· {found_lessons(event)}", "dim")
        for text in event.found:
            self._line(f"  {printable(text)}", "bold")
        for lesson in event.kept:
            self._line(f"· {learned(lesson)}", "dim")

    def _end_line(self) -> None:
        if self.open_line:
            self.console.line()
        self.open_line = False

    def _line(self, text: str, style: str) -> None:
        self._end_line()
        self.console.print(RichText(text, style=style))

    def finish(self, conclusion: Conclusion) -> None:
        told = {conclusion.waiting_for, *(route.target for route in conclusion.held)}
        self.queued = [route for route in self.queued if route.target not in told]
        self._tell_queued(None)
        for line in closing_lines(conclusion):
            self._line(visible(line), "bold yellow")
