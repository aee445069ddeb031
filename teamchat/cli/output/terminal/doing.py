"""What each member does now, as its events tell it. Nothing here draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from teamchat.cli.output.lines import short_number
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.tools import action
from teamchat.cli.output.terminal.wrap import cells, cut
from teamchat.core.text.clean import visible
from teamchat.runners.events import (
    AgentEvent,
    Denied,
    Done,
    Error,
    Question,
    Retry,
    Started,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PER_S = 10  # frames
WAITS, BEGINS, THINKS, WRITES, ENDS = "getting ready", "starting", "thinking", "writing", "finishing"
ANSWERED, FAILED, AGAIN = "answered", "failed", "waiting to try again"
LONGEST_REASON = 60


@dataclass(slots=True)
class Doing:
    """One member's line: what it does, since when, and the tokens that it has used so far, if they are known."""

    member: str
    since: float
    folder: str = ""
    what: str = BEGINS
    used: Usage | None = None
    ended: float | None = None
    failed: bool = False
    tools: dict[str, ToolCall] = field(default_factory=dict)

    def learn(self, event: AgentEvent) -> None:
        match event:
            case Usage(cumulative=cumulative):
                self.used = self.used if cumulative else event
            case ToolCall(id=tool):
                self.tools[tool] = event
                self.what = action(event, self.folder).now
            case ToolResult(id=tool):
                self.tools.pop(tool, None)
                self.what = action(last, self.folder).now if (last := self._last_tool()) else THINKS
            case TextDelta() | Text():
                self.what = WRITES
            case Thinking() | Started() | Denied() | Error() | Question():
                self.what = THINKS if not self.tools else self.what
            case Retry(reason=reason, attempt=attempt):
                number = f", retry {attempt}" if attempt else ""
                self.what = f"waiting for the model: {cut(visible(reason), LONGEST_REASON)}{number}"
            case Done():
                self.what = ENDS
            case _:
                pass

    def _last_tool(self) -> ToolCall | None:
        return next(reversed(self.tools.values()), None)

    def end(self, now: float, *, failed: bool) -> None:
        self.ended, self.failed = now, failed
        self.what = FAILED if failed else ANSWERED


def clock(seconds: float) -> str:
    """`0:42`, `12:05`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def status_lines(
    members: Sequence[Doing], following: Sequence[str], now: float, width: int, look: Look, colours: dict[str, int]
) -> Iterator[str]:
    """A line for each member, and who is queued behind the last one. No line is wider than `width`."""
    shown = [_right(doing, now) for doing in members]
    behind = f"next: {', '.join(following)}" if following else ""
    names = max((cells(doing.member) for doing in members), default=0)
    names = min(names, max(width // 3, 1))
    most = max((cells(right) for right in shown), default=0)
    behind = behind if names + most + len(behind) + 24 <= width else ""
    room = max(width - 2 - names - 2 - 3 - most - (len(behind) + 3 if behind else 0), 0)
    does = [cut(doing.what, room) for doing in members]
    column = max(map(cells, does), default=0)
    for place, (doing, right, what) in enumerate(zip(members, shown, does, strict=True)):
        name = cut(doing.member, names)
        left = f"{name}{' ' * (names - cells(name))}"
        middle = f"{what}{' ' * (column - cells(what))}"
        last = f"   {behind}" if behind and place == len(members) - 1 else ""
        head = look.coloured(left, colours[doing.member], bold=True)
        yield f"{_sign(doing, now, look, colours)} {head}  {middle}   {look.dim((right + last).rstrip())}".rstrip()


def _sign(doing: Doing, now: float, look: Look, colours: dict[str, int]) -> str:
    if doing.ended is not None:
        return look.bad("✗") if doing.failed else look.coloured("✓", colours[doing.member])
    return look.coloured(FRAMES[int(now * PER_S) % len(FRAMES)], colours[doing.member])


def _right(doing: Doing, now: float) -> str:
    """The time, and the tokens if they are known."""
    seconds = clock((doing.ended if doing.ended is not None else now) - doing.since)
    used = doing.used
    if used is None or used.input_tokens is None or used.output_tokens is None:
        return seconds
    return f"{seconds}   {short_number(used.input_tokens + used.output_tokens)} tokens"
