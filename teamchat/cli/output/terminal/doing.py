"""The current action of each member, read from its events. Nothing here draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from teamchat.cli.output.lines import plural, short_number
from teamchat.cli.output.listing import clock
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.tools import action
from teamchat.cli.output.terminal.wrap import cells, cut, cut_before
from teamchat.core.engine.processes.mapreduce import PLANNER, REDUCER, WORKER
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Plan, Process
from teamchat.core.text.clean import visible
from teamchat.core.turn.run_events import TriesAgain
from teamchat.runners.agent_events import (
    NOTHING_YET,
    AgentEvent,
    Denied,
    Done,
    Error,
    Note,
    Question,
    Retry,
    Started,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsedSoFar,
)

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PER_S = 10  # frames
WAITS, BEGINS, THINKS, WRITES, ENDS = "getting ready", "starting", "thinking", "writing", "finishing"
RECORDS = "recording the files"
ANSWERED, FAILED, AGAIN = "answered", "failed", "waiting to try again"
MODEL = "waiting for the model"
LONGEST_REASON = 60
ROOM_FOR_WORDS = 20  # columns


class Doing(Struct):
    """One member's status line: its action, the time, and the tokens so far, if they are known."""

    member: str
    since: float
    folder: str = ""
    what: str = BEGINS
    waits_until: float | None = None  # when a retry begins
    used: Usage | None = None
    ended: float | None = None
    failed: bool = False
    before: str = BEGINS  # the action before its files were recorded
    host: str = ""
    says: str = ""  # the end of what it writes, of a member that is not alone
    place: str | None = None
    tools: dict[str, ToolCall] = field(default_factory=dict)

    def learn(self, event: AgentEvent, now: float) -> None:
        waited, self.waits_until = self.waits_until, None
        match event:
            case UsedSoFar(usage=used):
                self.used = used
                self.what = THINKS if self.what.startswith(MODEL) else self.what
            case Usage(cumulative=False):
                self.used = event
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
            case Retry(reason=reason, attempt=attempt, most=most, delay_s=delay):
                why = retry(attempt, most) if attempt else cut(visible(reason), LONGEST_REASON)
                self.what = f"{MODEL}: {why}"
                self.waits_until = None if delay is None else now + delay
            case Done():
                self.what = ENDS
            case Note(text=text) if text == NOTHING_YET and self.what == BEGINS:
                self.what = text
            case _:
                self.waits_until = waited

    def record(self, *, over: bool) -> None:
        """Show that the member's files are being recorded; once that is `over`, show the earlier action again."""
        if not over:
            self.before = self.what
        self.what = self.before if over else RECORDS

    @property
    def name(self) -> str:
        return self.place or self.member

    def trying_again(self, again: TriesAgain, now: float) -> Doing:
        """Return the member's line from now on, until its turn begins again."""
        what = f"{AGAIN}: {retry(again.number, again.most)}"
        return Doing(self.member, now, what=what, waits_until=now + again.delay_s, place=self.place)

    def words(self, now: float) -> str:
        """Say what the member does, on which host, and how many seconds remain until a retry."""
        rest = math.ceil(self.waits_until - now) if self.waits_until is not None else 0
        what = f"{self.host}: {self.what}" if self.host and self.ended is None else self.what
        return f"{what} in {rest} s" if rest > 0 else what

    def _last_tool(self) -> ToolCall | None:
        return next(reversed(self.tools.values()), None)

    def end(self, now: float, used: Usage | None, *, failed: bool) -> None:
        self.ended, self.failed, self.used, self.says = now, failed, used, ""
        self.what = FAILED if failed else ANSWERED


def retry(number: int, most: int | None) -> str:
    """Number a retry: `retry 2 of 3`."""
    return f"retry {number} of {most}" if most else f"retry {number}"


def status_lines(
    members: Sequence[Doing], following: Sequence[str], now: float, width: int, look: Look, colours: dict[str, int]
) -> Iterator[str]:
    """Draw a line for each member, and who is queued behind the last one. No line is wider than `width`."""
    shown = [spent(doing, now) for doing in members]
    behind = f"next: {', '.join(following)}" if following else ""
    names = max((cells(doing.name) for doing in members), default=0)
    names = min(names, max(width // 3, 1))
    most = max((cells(right) for right in shown), default=0)
    behind = behind if names + most + len(behind) + 24 <= width else ""
    room = max(width - 2 - names - 2 - 3 - most - (len(behind) + 3 if behind else 0), 0)
    does = [_does(doing, now, room) for doing in members]
    column = max(map(cells, does), default=0)
    for place, (doing, right, what) in enumerate(zip(members, shown, does, strict=True)):
        name = cut(doing.name, names)
        left = f"{name}{' ' * (names - cells(name))}"
        middle = f"{what}{' ' * (column - cells(what))}"
        last = f"   {behind}" if behind and place == len(members) - 1 else ""
        head = look.coloured(left, colours[doing.member], bold=True)
        mark = sign(doing, now, look, colours[doing.member])
        yield f"{mark} {head}  {middle}   {look.dim((right + last).rstrip())}".rstrip()


def _does(doing: Doing, now: float, room: int) -> str:
    """Say what the member does, with the end of its text if there is room for some words."""
    words = cut(doing.words(now), room)
    left = room - cells(words) - 2
    return f"{words}  {cut_before(doing.says, left)}" if doing.says and left >= ROOM_FOR_WORDS else words


def sign(doing: Doing, now: float, look: Look, colour: int) -> str:
    """Draw a spinner while the member works, and then a sign whether it has answered."""
    if doing.ended is not None:
        return look.bad("✗") if doing.failed else look.coloured("✓", colour)
    return look.coloured(FRAMES[int(now * PER_S) % len(FRAMES)], colour)


def spent(doing: Doing, now: float) -> str:
    """Write the time, and the tokens if they are known."""
    seconds = clock((doing.ended if doing.ended is not None else now) - doing.since)
    used = doing.used
    if used is None or used.input_tokens is None or used.output_tokens is None:
        return seconds
    return f"{seconds}   {short_number(used.input_tokens + used.output_tokens)} tokens"


OPEN, DONE, SKIPPED = "·", "✓", "-"
MOST_LISTED = 20  # subtasks that are listed; more are counted, with those that take longest
SLOWEST = 3
AROUND = 3  # lines around the subtasks: the plan, the count of hidden ones, and the reducer


class _Row(Struct, frozen=True):
    """A subtask: its text, its member, and that member's action. The members of `failed` did it before."""

    number: int
    task: str
    member: str
    state: str
    doing: Doing | None = None
    failed: tuple[str, ...] = ()


class Subtasks(Struct):
    """The subtasks of the newest plan."""

    process: Process
    routes: dict[int, Route] = field(default_factory=dict)
    """The workers' calls, by the numbers of their subtasks."""
    answered: frozenset[int] = frozenset()
    """The subtasks whose replies came before the output began."""
    failed: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The earlier workers of subtasks, which have failed."""
    reducing: int | None = None
    """The number of the reducer's call."""

    def moved(self, process: Process, calls: Sequence[Route]) -> None:
        """Take over how far the process has got, or with which calls it is resumed."""
        self.process = process
        self.answered = frozenset(route.part.number for route in calls if route.part and route.answer is not None)
        for route in calls:
            self.called(route)

    def called(self, route: Route) -> None:
        """Note that a worker is called for a subtask, or another one in its place, or the reducer."""
        if route.part is None or route.part.role not in (WORKER, REDUCER):
            return
        if route.part.role == REDUCER:
            self.reducing = route.number
            return
        number = route.part.number
        before = self.routes.get(number, route).target
        if before != route.target:
            self.failed[number] = (*self.failed.get(number, ()), before)
        self.routes[number] = route

    def lines(
        self, doing: Mapping[int, Doing], now: float, width: int, height: int, look: Look, colour: Callable[[str], int]
    ) -> list[str]:
        """Draw at most `height` lines, none wider than `width`; only the plan while the results are merged.

        There are no lines before the plan, after the result, and while somebody outside of the process speaks.
        """
        rows = list(self._rows(doing))
        merging = self.reducing in doing
        works = merging or not doing or any(route.number in doing for route in self.routes.values())
        if not rows or not works or self.process.of(REDUCER) or self.process.over:
            return []
        if len(rows) > MOST_LISTED and not merging:
            return self._counted(rows, [one for one in doing.values() if one.place], now, width, look, colour)
        shown = [] if merging else _most_telling(rows, max(height - AROUND, 1))
        done = sum(row.state == DONE for row in rows)
        planner = self.process.of(PLANNER)[-1].member
        head = f"{planner} planned {plural(len(rows), 'subtask')}, {done} {'is' if done == 1 else 'are'} done"
        more = len(rows) - len(shown)
        return [
            cut(f"{DONE} {head}", width),
            *_drawn(shown, now, width, look, colour),
            *([look.dim(cut(f"  … {more} more", width))] if shown and more else []),
            *([] if merging else [look.dim(cut(f"{OPEN} {self.process.reducer} merges the results", width))]),
        ]

    def _counted(
        self,
        rows: Sequence[_Row],
        placed: Sequence[Doing],
        now: float,
        width: int,
        look: Look,
        colour: Callable[[str], int],
    ) -> list[str]:
        """Count the subtasks by their state and by host, and list the slowest ones."""
        running = [row for row in rows if row.doing and not row.state and row.doing.ended is None]
        failed = sum(bool(row.doing and row.doing.failed) or row.state == SKIPPED for row in rows)
        counts = {"done": sum(row.state == DONE for row in rows), "running": len(running), "failed": failed}
        left = len(rows) - sum(counts.values())
        planner = self.process.of(PLANNER)[-1].member
        told = ", ".join(f"{number} {what}" for what, number in (*counts.items(), ("to do", left)) if number)
        hosts = _by_host(placed)
        slowest = sorted(running, key=lambda row: row.doing.since if row.doing else now)[:SLOWEST]
        return [
            cut(f"{DONE} {planner} planned {len(rows)} subtasks: {told}", width),
            *([f"  {look.dim(cut(hosts, width - 2))}"] if hosts else []),
            *_drawn(slowest, now, width, look, colour),
            look.dim(cut(f"{OPEN} {self.process.reducer} merges the results", width)),
        ]

    def _rows(self, doing: Mapping[int, Doing]) -> Iterator[_Row]:
        plans = self.process.of(PLANNER)
        plan = plans[-1].finding if plans else None
        over = {done.part.number: done for done in self.process.of(WORKER)}
        for number, task in enumerate(plan.subtasks if isinstance(plan, Plan) else (), 1):
            if there := over.get(number):
                yield _Row(number, task, there.member, DONE if there.message else SKIPPED)
            elif (route := self.routes.get(number)) is None:
                yield _Row(number, task, "", OPEN)
            elif (now := doing.get(route.number)) is None and number in self.answered:
                yield _Row(number, task, route.target, DONE)
            else:
                yield _row(number, task, route, now, self.failed.get(number, ()))


def _by_host(placed: Sequence[Doing]) -> str:
    """Count the turns on each host: `gpu1: 5 running, 12 ended; gpu2: 4 running`; empty if all work here."""
    hosts = sorted({doing.host for doing in placed if doing.host})
    if not hosts:
        return ""
    parts = []
    for host in hosts:
        its = [doing for doing in placed if doing.host == host]
        running = sum(doing.ended is None for doing in its)
        counts = {"running": running, "ended": len(its) - running}
        parts.append(f"{host}: {', '.join(f'{number} {what}' for what, number in counts.items() if number)}")
    return "; ".join(parts)


def _row(number: int, task: str, route: Route, doing: Doing | None, failed: tuple[str, ...]) -> _Row:
    if doing is None or doing.what == WAITS:
        return _Row(number, task, route.target, OPEN, failed=failed)
    answered = doing.ended is not None and not doing.failed
    return _Row(number, task, doing.member, DONE if answered else "", doing, failed)


def _most_telling(rows: Sequence[_Row], most: int) -> list[_Row]:
    """Choose at most `most` rows; idle rows are left out first."""
    if len(rows) <= most:
        return list(rows)
    order = sorted(rows, key=lambda row: (bool(row.state), row.state == DONE, row.number))
    return sorted(order[:most], key=lambda row: row.number)


def _drawn(rows: Sequence[_Row], now: float, width: int, look: Look, colour: Callable[[str], int]) -> Iterator[str]:
    numbers = len(str(max((row.number for row in rows), default=0)))
    names = min(max((cells(row.member) for row in rows), default=0), max(width // 4, 1))
    free = max(width - numbers - names - 5, 0)  # minus the sign and the spaces
    rights = [_right(row, now, min(width * 2 // 5, free)) for row in rows]
    right = max(map(cells, rights), default=0)
    room = free - (right + 3 if right else 0)
    for row, words in zip(rows, rights, strict=True):
        name, task = cut(row.member, names), cut(row.task, room)
        left = (
            f"{row.number:>{numbers}} {look.coloured(name, colour(row.member), bold=True)}{' ' * (names - cells(name))}"
        )
        gap = " " * (room - cells(task) + 3)
        mark = sign(row.doing, now, look, colour(row.member)) if row.doing else look.dim(row.state)
        styled = look.dim(task) if row.state == OPEN else task
        yield f"{mark} {left}  {styled}{gap}{look.dim(words)}".rstrip()


def _right(row: _Row, now: float, most: int) -> str:
    """Say who has failed, what the member does, and for how long, in at most `most` columns."""
    failed = f"{', '.join(row.failed)} failed" if row.failed else ""
    words = row.doing.words(now) if row.doing and row.state != DONE else ""
    time = spent(row.doing, now) if row.doing else ""
    activity = cut(", ".join(filter(None, (failed, words))), most - cells(time) - 3)
    return "   ".join(filter(None, (activity, cut(time, most))))
