"""Shows a run at a terminal: each turn as a block under its speaker's bar, and below what every member does now.

At the end it says why the run stopped, who is on hold, and the commands that continue it. `Ticker` redraws ten times a
second in a thread of its own, so that a busy event loop does not stop what moves.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib import import_module
from itertools import groupby
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING

from msgspec import Struct, field

from teamchat.cli.output.lines import (
    BEGINS,
    SHOW,
    compacted,
    compared_lines,
    counted,
    folded,
    found_lessons,
    gone,
    group_of,
    learned,
    left_out,
    plural,
    refusal,
    todo_line,
    tokens,
)
from teamchat.cli.output.listing import clock
from teamchat.cli.output.terminal.doing import AGAIN, PER_S, WAITS, Doing, Subtasks, status_lines
from teamchat.cli.output.terminal.look import COLOURS, Look, colours_of, own_colour
from teamchat.cli.output.terminal.surface import Surface
from teamchat.cli.output.terminal.tools import action, changed
from teamchat.cli.output.terminal.voice import WIDEST, Voice, arrows, without_calls
from teamchat.cli.output.terminal.wrap import cells, wrapped
from teamchat.cli.output.unreported import Unreported
from teamchat.core.engine.events import Dropped, Moved, Queued, Refused
from teamchat.core.engine.state import Route
from teamchat.core.engine.strategies import part_in_short
from teamchat.core.engine.workflow import Part
from teamchat.core.messages import ConversationMessage, name_of
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.turns import Turn
from teamchat.core.text.clean import printable, visible
from teamchat.core.turn.run_events import (
    AgentSpoke,
    CheckFinished,
    CheckStarted,
    Conclusion,
    ConversationEvent,
    GroupCompared,
    LessonsFound,
    MessageStored,
    RecordingFiles,
    Replied,
    SummaryStored,
    TodoChanged,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.agent_events import AgentEvent, Denied, FailureKind, TextDelta, ToolCall
from teamchat.runners.base import NOT_ENFORCED, NOT_PROVEN
from teamchat.runners.untrusted.file_changes import FileChange

if TYPE_CHECKING:
    from teamchat.cli.output.terminal.excerpt import Excerpts


PAUSE_S = 0.05  # between two drawings for pieces of text
MOST_ROWS = 8  # the most rows of a streaming text
MOST_OF_MESSAGE = 6  # lines of a person's message
NOT_BOUNDED = "not bounded"
ACCESS = {"read": "read only", "edit": "may edit", "full": "full access"}
SUMMARISED = 4_000  # how many characters of a message are read


class _Turn(Struct):
    """A turn that is shown. Members of a group keep their lines until they are shown in the order of their names."""

    voice: Voice
    number: int
    route: Route | None
    kept: list[str] | None = None  # waiting lines; None for a turn that runs alone
    footer: list[str] = field(default_factory=list)
    arrows: list[str] = field(default_factory=list)
    ended: bool = False
    told: bool = False

    @property
    def order(self) -> tuple[int, int]:
        return (self.route.number if self.route else 0, self.number)


class TerminalOutput:
    """Turns the events of a run into what a `Surface` shows.

    `names` are the members, and decide their colours; `people` are the persons who type. `you` is the person at this
    terminal; with None every person is. `receipt` is the command that shows the receipt of a turn, by its number, or a
    whole message or a check, by its id. With `now`, a clock in seconds, the caller says by `tick` when time has passed.
    `unreported` lists unknown values at the end, and `excerpts` has the first lines of a turn's changes.
    """

    def __init__(
        self,
        names: Collection[str],
        surface: Surface,
        look: Look = Look(),  # noqa: B008 (a value)
        *,
        people: Collection[str] = (),
        you: str | None = None,
        receipt: Callable[[int | str], str] | None = None,
        now: Callable[[], float] | None = None,
        unreported: Unreported | None = None,
        excerpts: Excerpts | None = None,
    ) -> None:
        self._unreported = unreported or Unreported(told=True)
        self._excerpts = excerpts
        self._surface, self._look, self._people, self._you, self._receipt = surface, look, people, you, receipt
        self._now = now or time.monotonic
        self._colours = colours_of(names)
        self._turns: dict[int, _Turn] = {}
        self._doing: dict[int, Doing] = {}  # by the route's number; without a route, minus the turn's number
        self._waiting: dict[int, Route] = {}
        self._subtasks: Subtasks | None = None  # the lines of a map-reduce
        self._workers: tuple[str, ...] = ()  # the workers of that map-reduce
        self._above: set[str] = set()  # the ids of the messages that were shown
        self._running: object = None  # the group whose members `_doing` has
        self._idle_since = self._now()
        self._after: list[str] = []  # lines that wait for the replies of a group
        self._streamed = -math.inf  # when a piece of text was drawn
        self._gap = self._wrote = False
        self._began = False  # a member began to do something else, which is drawn at once
        self._closed = False
        self._lock = RLock()
        self._clock = Ticker(self.tick, self._load) if now is None else None

    def __call__(self, event: ConversationEvent) -> None:
        with self._lock:
            if self._clock:
                self._clock.start()
            self._take(event)
            if isinstance(event, AgentSpoke) and event.more:
                return
            streams = isinstance(event, AgentSpoke) and isinstance(event.event, TextDelta)
            if streams and not (self._wrote or self._began) and self._now() - self._streamed < PAUSE_S:
                return  # the clock draws it
            if streams:
                self._streamed = self._now()
            self._draw()

    def _load(self) -> None:
        """Import what renders Markdown, while the first agent starts: later, text that streams would wait for it."""
        if self._look.styles:
            import_module("teamchat.cli.output.terminal.markdown")

    def tick(self) -> None:
        """Redraw what moves. Raises `OSError` if the surface is gone.

        While an event is shown, nothing is drawn here: a thread that waits for the lock is woken by each of thousands
        of events, which takes as long as they do, and it hardly ever gets the lock.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._draw()
            finally:
                self._lock.release()

    def finish(self, conclusion: Conclusion) -> None:
        with self._lock:
            self._flush_groups()
            self.close()
            width = min(self._surface.width, WIDEST)
            unknown = (
                self._look.dim(line) for said in self._unreported.lines() for line in wrapped(f"· {said}", width)
            )
            for lines in (
                unknown,
                closing_report(conclusion, width, self._look),
                closing(conclusion, self._people, width, self._look),
            ):
                if block := list(lines):
                    self._write(["", *block])

    def close(self) -> None:
        """Remove the changing lines. What comes later is written without any."""
        if self._clock:
            self._clock.stop()
        with self._lock:
            self._closed = True
            self._surface.show(())

    def _take(self, event: ConversationEvent) -> None:
        match event:
            case MessageStored(message=message):
                self._above.add(message.id)
                self._said(message)
            case Queued() | Dropped() | Refused():
                self._queue(event)
            case TurnStarted(turn=turn, route=route):
                self._start(turn, route)
            case AgentSpoke(turn=number, event=agent_event):
                self._heard(number, agent_event)
            case SummaryStored() | LessonsFound():
                self._made(event)
            case Replied(turn=turn, message=message, part=part):
                self._above.add(message.id)
                self._reply(turn, message, part)
            case TurnFinished(turn=turn, outcome=outcome):
                self._finish(turn, outcome)
            case TodoChanged() | GroupCompared() | Warned():
                self._note(event)
            case RecordingFiles(turn=number, over=over):
                if (shown := self._turns.get(number)) and (doing := self._doing.get(_key(number, shown.route))):
                    doing.record(over=over)
            case CheckStarted() | CheckFinished():
                self._check(event)
            case Moved():
                self._moved(event)

    def _check(self, event: CheckStarted | CheckFinished) -> None:
        """Show a line while a check runs, and a line for its result."""
        from teamchat.cli.output.checks import check_notes, name_and_command
        from teamchat.cli.output.terminal.reading import check_lines

        check, now = event.check, self._now()
        key = check.route if check.route is not None else -check.number
        if isinstance(event, CheckStarted):
            self._flush_groups()
            self._running = key
            self._doing.clear()
            self._waiting.pop(key, None)
            name, command = name_and_command(check)
            ago = max(time.time() - check.started_at, 0) if self._clock else 0
            self._doing[key] = Doing(name, now - ago, what=command)
            return
        self._doing.pop(key, None)
        self._idle_since = now
        receipt = self._receipt(check.label) if self._receipt else ""
        self._block(check_lines(check, (), self._surface.width, self._look, receipt))
        for line in check_notes(check):
            self._aside(line, self._look.warn)
        self._gap = True

    def _moved(self, moved: Moved) -> None:
        process = moved.process
        if process.kind != "mapreduce":
            return
        self._workers = process.members
        if self._subtasks is None or self._subtasks.process.request != process.request:
            self._subtasks = Subtasks(process)
            for route in (*self._waiting.values(), *(shown.route for shown in self._turns.values() if shown.route)):
                self._subtasks.called(route)
        self._subtasks.moved(process, moved.calls)

    def _heard(self, number: int, event: AgentEvent) -> None:
        shown = self._turns.get(number)
        if shown is None:  # who begins to watch in the middle of a turn has not seen it begin
            return
        if doing := self._doing.get(_key(number, shown.route)):
            before = doing.what
            doing.learn(event, self._now())
            self._began = self._began or doing.what != before
        shown.voice.hear(event)

    def _said(self, message: ConversationMessage) -> None:
        """Show what a person says: `you → max   Add a --version option`."""
        name = name_of(message)
        who = printable("you" if self._you in (None, name) else name)
        to = ", ".join(map(printable, message.routing.resolved_addressees))
        head = f"{who} → {to}   " if to else f"{who}   "
        typed = message.content[: message.typed or SUMMARISED]
        shown = (pasted := folded(typed, message.pasted))[:SUMMARISED]
        width = min(self._surface.width, WIDEST)
        indent = cells(head) if cells(head) <= width // 2 else 2
        said = shown if message.pasted else without_calls(shown, "human")
        lines = list(wrapped(visible(said.strip()), width - indent))
        cut = len(lines) > MOST_OF_MESSAGE or len(message.content) > len(typed) or len(pasted) > len(shown)
        whole = f": {self._receipt(message.id)}" if self._receipt else ""
        hides = cut or pasted != typed
        more = [self._look.dim(f"… ({message.id} has {len(message.content):,} characters{whole})")] if hides else []
        body = [f"{' ' * indent}{line}".rstrip() for line in (*lines[:MOST_OF_MESSAGE], *more)]
        begun = [self._look.bold(head.rstrip()), *body]
        if indent == cells(head):
            begun = [f"{self._look.bold(head)}{body[0][indent:]}", *body[1:]]
        self._block(begun)

    def _queue(self, event: Queued | Dropped | Refused) -> None:
        match event:
            case Queued(route=route):
                if not self._waiting and not self._doing:
                    self._idle_since = self._now()
                self._waiting[route.number] = route
                if self._subtasks:
                    self._subtasks.called(route)
            case Dropped(route=route):
                self._waiting.pop(route.number, None)
                self._aside(gone(route))
            case Refused(route=route, limit=limit):
                self._aside(refusal(route, limit))

    def _start(self, turn: Turn, route: Route | None) -> None:
        group = group_of(route) if route else turn.number
        if group != self._running:
            self._flush_groups()
            self._running = group
            self._doing.clear()
        now, key = self._now(), _key(turn.number, route)
        self._waiting.pop(key, None)
        ago = max(time.time() - turn.started_at, 0) if self._clock else 0  # who watches may come in its middle
        self._doing[key] = Doing(
            turn.member, now - ago, turn.setup.cwd, host=turn.setup.host or "", place=turn.setup.place
        )
        if route and self._subtasks:
            self._subtasks.called(route)
        for mate in self._mates(group):
            self._doing.setdefault(mate.number, Doing(mate.target, now, what=WAITS))
        shown = self._shown(turn, route)
        answers = turn.setup.answers if route else ""
        resumed = f" · answers {answers}" if answers and answers not in self._above else ""
        shown.voice.head(f"{_about(turn, route)}{resumed}")
        if line := left_out(turn.who, turn.setup):
            shown.voice.aside(line)

    def _mates(self, group: object) -> list[Route]:
        return [route for route in self._waiting.values() if group_of(route) == group]

    def _words(self, part: Part | None, member: str) -> Callable[[str], str] | None:
        """Return the function that puts the JSON of the part in words; None if the part asks for none."""
        if part is None:
            return None
        from teamchat.core.engine.processes.words import has_form, in_words  # only `teamchat run` has parts

        return (lambda text: in_words(part, member, text, self._workers)) if has_form(part) else None

    def _shown(self, turn: Turn, route: Route | None, part: Part | None = None) -> _Turn:
        """Return the turn's lines, which begin here if it was not seen before."""
        if turn.number in self._turns:
            return self._turns[turn.number]
        lines: list[str] | None = [] if route and route.group is not None else None
        part = route.part if route else part
        voice = Voice(
            turn.who,
            self._colour(turn.member),
            turn.setup.cwd,
            self._look,
            self._block if lines is None else lines.extend,
            lambda: self._surface.width,
            self._words(part, turn.member),
        )
        self._gap = True
        self._turns[turn.number] = _Turn(voice, turn.number, route, lines)
        return self._turns[turn.number]

    def _colour(self, name: str) -> int:
        if name not in self._colours:
            self._colours[name] = COLOURS[own_colour(name)]
        return self._colours[name]

    def _reply(self, turn: Turn, message: ConversationMessage, part: Part | None) -> None:
        known = turn.number in self._turns
        shown = self._shown(turn, None, part)
        if not known:
            shown.voice.head(turn.agent)
        shown.voice.whole(message.content)
        shown.arrows = list(arrows(map(printable, message.routing.resolved_addressees)))
        if shown.kept is not None or not known:
            self._tell(shown)

    def _finish(self, turn: Turn, outcome: Outcome) -> None:
        shown = self._shown(turn, None)
        shown.voice.end()
        shown.ended = True
        shown.footer = self._footer(turn.setup, outcome, turn.number)
        if line := files_line(outcome):
            shown.voice.plain([f"  {line}"])
        known = outcome.known_changes
        if self._excerpts and known and shown.kept is None:
            excerpt = self._excerpts.lines(known, turn.number, shown.voice.columns - len(INDENT), self._look)
            shown.voice.styled(f"{INDENT}{line}" for line in excerpt)
        self._unreported.learn(turn.member, turn.number, outcome)
        failed = outcome.failure is not None
        key = _key(turn.number, shown.route)
        if shown.kept is not None:
            if doing := self._doing.get(key):
                doing.end(self._now(), outcome.usage, failed=failed)
            return
        self._tell(shown)
        self._idle_since = self._now()
        if failed:
            self._doing[key] = Doing(turn.member, self._idle_since, what=AGAIN, place=turn.setup.place)
        else:
            self._doing.pop(key, None)

    def _footer(self, setup: Setup, outcome: Outcome, number: int) -> list[str]:
        width = min(self._surface.width, WIDEST)
        right = self._receipt(number) if self._receipt else ""
        if cells(right) + len(INDENT) > width:  # cut into pieces it could not be pasted
            right = ""
        lines = aligned(footer_parts(setup, outcome), right, width)
        style = self._look.warn if stopped(outcome) else self._look.dim
        return [style(piece) for line in lines for piece in wrapped(line, width)]

    def _tell(self, shown: _Turn) -> None:
        """Write the kept lines of a turn, its calls, and its costs."""
        if shown.told:
            return
        shown.told = True
        shown.voice.plain(shown.arrows)
        if shown.kept is not None:
            self._gap = True
            self._block(shown.kept)
            shown.kept.clear()
        self._write(shown.footer)
        self._gap = True

    def _flush_groups(self) -> None:
        for shown in sorted(self._turns.values(), key=lambda one: one.order):
            if not shown.told:
                shown.voice.end()
                self._tell(shown)
        after, self._after = self._after, []
        self._write(after)

    def _made(self, event: SummaryStored | LessonsFound) -> None:
        """Show the summary or the lessons that a turn has stored."""
        voice = self._shown(event.turn, None).voice
        if isinstance(event, SummaryStored):
            voice.whole(event.summary.text)
            voice.aside(compacted(event.turn, event.summary, self._receipt or SHOW))
            return
        voice.end_section()
        voice.aside(found_lessons(event, self._receipt or SHOW))
        voice.plain(f"  {printable(text)}" for text in event.found)
        for lesson in event.kept:
            voice.aside(learned(lesson))

    def _note(self, event: TodoChanged | GroupCompared | Warned) -> None:
        match event:
            case TodoChanged(change=change):
                self._aside(todo_line(change))
            case GroupCompared():
                self._after += [self._look.warn(f"· {printable(line)}") for line in compared_lines(event)]
            case Warned(text=text, route=route, again=again):
                if again and route is not None and (doing := self._doing.get(route)):
                    self._doing[route] = doing.trying_again(again, self._now())
                voice = self._kept(route)
                if voice is not None:
                    voice.aside(text, self._look.warn)
                else:
                    self._aside(visible(text), self._look.warn)

    def _kept(self, route: int | None) -> Voice | None:
        """Return the voice of the kept turn of a group that runs for the route."""
        turns = [turn for turn in self._turns.values() if turn.kept is not None and not turn.told]
        return next((turn.voice for turn in reversed(turns) if turn.route and turn.route.number == route), None)

    def _aside(self, text: str, style: Callable[[str], str] | None = None) -> None:
        width = min(self._surface.width, WIDEST)
        self._write([(style or self._look.dim)(line) for line in wrapped(f"· {text}", width)])

    def _block(self, lines: Sequence[str]) -> None:
        """Write lines, after an empty one if they begin a block."""
        if lines:
            self._write([*([""] if self._gap else []), *lines])
            self._gap = False

    def _write(self, lines: Sequence[str]) -> None:
        if lines:
            self._wrote = True
            self._surface.write("\n".join((*lines, "")))

    def _draw(self) -> None:
        if self._closed:
            return
        now = self._now()
        self._wrote = self._began = False
        width = self._surface.width - 1
        doing = [self._doing[key] for key in sorted(self._doing)] or self._about_to_begin()
        for activity in doing:
            self._colour(activity.member)
        status = self._status(doing, now, width)
        room = self._surface.height - len(status) - 1
        self._surface.show([*self._tail(min(room, MOST_ROWS)), *status])

    def _status(self, doing: Sequence[Doing], now: float, width: int) -> list[str]:
        """Draw a line for each member that speaks; in a map-reduce, for each subtask."""
        height, tree = self._surface.height, list[str]()
        if self._subtasks:
            tree = self._subtasks.lines(self._doing, now, width, height - 1, self._look, self._colour)
            if len(tree) > 1:
                return tree
        for shown in self._turns.values():
            if (
                shown.kept is not None
                and not shown.ended
                and (activity := self._doing.get(_key(shown.number, shown.route)))
            ):
                activity.says = shown.voice.last_words()
        return [*tree, *status_lines(doing, self._following(doing), now, width, self._look, self._colours)]

    def _tail(self, rows: int) -> list[str]:
        alone = [turn for turn in self._turns.values() if turn.kept is None and not turn.told]
        return alone[-1].voice.tail(rows) if alone and rows > 0 else []

    def _about_to_begin(self) -> list[Doing]:
        """List the members whose turns begin next, while nobody speaks."""
        first = next(iter(self._queued()), None)
        if first is None or first.target in self._people:
            return []
        mates = [route for route in self._queued() if group_of(route) == group_of(first)]
        return [Doing(route.target, self._idle_since, what=WAITS) for route in mates]

    def _queued(self) -> list[Route]:
        return sorted(self._waiting.values(), key=lambda route: (route.priority, route.number))

    def _following(self, doing: Sequence[Doing]) -> list[str]:
        """List who is queued behind the members that are shown."""
        shown = {activity.member for activity in doing} if not self._doing else set()
        running = [route for route in self._queued() if route.number not in self._doing]
        return list(dict.fromkeys(route.target for route in running if route.target not in shown)) if doing else []


def _key(turn: int, route: Route | None) -> int:
    return route.number if route else -turn


def _about(turn: Turn, route: Route | None) -> str:
    """Say who runs a turn (`claude on gpu1 · may edit`), its part in a process, and an attempt after the first one."""
    bounded = not turn.setup.access_note.startswith(NOT_ENFORCED)
    unproven = f" ({NOT_PROVEN})" if NOT_PROVEN in turn.setup.access_note else ""
    access = f"{ACCESS[turn.setup.access]}{unproven}" if bounded else NOT_BOUNDED
    agent = f"{turn.agent} on {turn.setup.host}" if turn.setup.host else turn.agent
    parts = [agent, access] if route else [agent, BEGINS[turn.setup.purpose]]
    if route and route.part:
        parts += filter(None, [part_in_short(route.part)])
    again = [f"attempt {turn.setup.attempt}"] if turn.setup.attempt > 1 else []
    return " · ".join([*parts, *again])


INDENT = "  "


def closing_report(conclusion: Conclusion, width: int, look: Look) -> Iterator[str]:
    """Draw the result of a process."""
    if conclusion.process is None:
        return
    from teamchat.cli.output.terminal.result import drawn
    from teamchat.core.engine.processes.words import result_of

    if result := result_of(conclusion.process):
        yield from drawn(result, width, look)


def closing(conclusion: Conclusion, people: Collection[str], width: int, look: Look) -> Iterator[str]:
    """Draw the lines of an end that is not normal. Commands are not broken, so that they can be pasted."""
    if conclusion.done:
        yield from ([look.warn(visible(conclusion.reason))] if conclusion.reason else [])
    else:
        first, *more = wrapped(visible(_what(conclusion, people)), width - len(INDENT))
        style = look.bad if _failed(conclusion) else look.warn
        yield style(first)
        yield from (f"{INDENT}{style(line)}" for line in more)
        if conclusion.held:
            held = wrapped(f"on hold: {on_hold(conclusion.held)}", width - len(INDENT))
            yield from (f"{INDENT}{line}" for line in held)
    does = "answer" if conclusion.waiting_for else "try"
    for command in (conclusion.hint or "").splitlines():
        yield f"{INDENT}{does}: {look.bold(visible(command))}"


def _failed(conclusion: Conclusion) -> bool:
    return not (conclusion.waiting_for or conclusion.paused)


def _what(conclusion: Conclusion, people: Collection[str]) -> str:
    reason = conclusion.reason or ""
    if conclusion.waiting_for:
        asked = f" asks {conclusion.waiting_for}"
        alone = reason.endswith(asked) and len(people) == 1
        return f"? {reason.removesuffix(asked)} asks you" if alone else f"? {reason}"
    return f"✗ {reason}" if _failed(conclusion) else f"paused: {reason}"


def on_hold(routes: Collection[Route]) -> str:
    """List who is on hold: `max + sarah (2), then carol`."""
    groups = (" + ".join(counted(route.target for route in group)) for _, group in groupby(routes, group_of))
    return visible(", then ".join(groups))


class Ticker:
    """The first `start` begins its thread, with `load`. It ends with `stop`, or if the function raises `OSError`."""

    def __init__(self, tick: Callable[[], None], load: Callable[[], None]) -> None:
        self._tick, self._load, self._ended = tick, load, Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        if self._thread is None and not self._ended.is_set():
            self._thread = Thread(target=self._run, daemon=True)
            with contextlib.suppress(RuntimeError):  # no thread can start: the lines change with the events
                self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        self._load()
        with contextlib.suppress(OSError):
            while not self._ended.wait(1 / PER_S):
                self._tick()


MOST_FILES = 8
BETWEEN = " · "


def files_line(outcome: Outcome) -> str | None:
    """List the changed files: `3 files  notes/cli.py +6 −1  README.md +2`; None if none changed."""
    if not outcome.files:
        return None
    known = outcome.known_changes
    named = [_file(file) for file in known.files] if known else list(map(printable, outcome.files))
    count = known.count if known else len(outcome.files)
    more = count - len(named[:MOST_FILES])
    rest = [f"and {more} more"] if more > 0 else []
    return "  ".join([plural(count, "file"), *named[:MOST_FILES], *rest])


def _file(change: FileChange) -> str:
    if change.added is None or change.removed is None:
        return f"{printable(change.path)} {change.what}"
    gone = " deleted" if change.what == "deleted" else ""
    return f"{printable(change.path)} {changed((change.added, change.removed))}{gone}"


def footer_parts(setup: Setup, outcome: Outcome) -> list[str]:
    """Return `0:58`, `24k tokens`, `$0.11`, `1 command denied (git push)`. Only the time is told if it is unknown."""
    time_taken = "time unknown" if outcome.seconds is None else took(outcome.seconds)
    parts = [f"stopped after {time_taken}" if stopped(outcome) else time_taken]
    parts += filter(None, [tokens(outcome.usage)])
    if outcome.usage and outcome.usage.cost_usd is not None:
        parts.append(f"${outcome.usage.cost_usd:.2f}")
    if outcome.denied:
        parts.append(_denied(outcome.denied, setup.cwd))
    if setup.redacted:
        parts.append(f"{plural(setup.redacted, 'secret')} redacted")
    return parts


def stopped(outcome: Outcome) -> bool:
    """Whether a person has ended the turn."""
    return outcome.failure is not None and outcome.failure.kind is FailureKind.INTERRUPTED


def took(seconds: float) -> str:
    """Write a time in seconds: `0.8 s`, `0:58`."""
    return clock(seconds) if seconds >= 10 else f"{seconds:.1f} s"


def _denied(denied: tuple[Denied, ...], folder: str) -> str:
    first = action(ToolCall("", denied[0].tool, denied[0].detail), folder)
    noun = "command" if all(_runs(denial, folder) for denial in denied) else "action"
    what = first.what if noun == "command" else f"{first.done} {first.what}".strip()
    more = ", …" if len(denied) > 1 else ""
    return f"{plural(len(denied), noun)} denied ({what}{more})"


def _runs(one: Denied, folder: str) -> bool:
    return action(ToolCall("", one.tool, one.detail), folder).done == "ran"


def aligned(parts: list[str], right: str, width: int) -> Iterator[str]:
    """Set the parts at the left and `right` at the right margin, on the lines that they need."""
    lines, line = list[str](), ""
    for part in parts:
        joined = f"{line}{BETWEEN}{part}" if line else INDENT + part
        if line and cells(joined) > width:
            lines.append(line)
            joined = INDENT + part
        line = joined
    gap = width - cells(line) - cells(right)
    yield from lines
    if not right:
        yield line
    elif gap >= 2:
        yield f"{line}{' ' * gap}{right}"
    else:
        yield line
        yield f"{INDENT}{right}"
