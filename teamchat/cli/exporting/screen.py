"""The formats of `export` that show a terminal: a recording of it (asciicast, version 2), and a picture.

A transcript is played as the events that the terminal showed, one turn after the other, with the pauses between them.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.ansi import AnsiDecoder
from rich.console import Console

from teamchat.cli.exporting.formats import FOLDER, Options
from teamchat.cli.output.lines import plural
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.output import TerminalOutput
from teamchat.cli.output.terminal.surface import SIZE, Surface, TerminalSurface
from teamchat.core.check import CheckResult
from teamchat.core.engine.state import Route
from teamchat.core.messages import ConversationMessage
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.checks import CheckRecord
from teamchat.core.store.turns import Turn
from teamchat.core.text.clean import printable, visible
from teamchat.core.transcripts.transcript import MemberTurn, RanCheck, Said, Step, Transcript, mapped
from teamchat.core.turn.events import (
    AgentSpoke,
    CheckFinished,
    CheckStarted,
    ConversationEvent,
    MessageStored,
    Replied,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.patterns import regex
from teamchat.runners.events import (
    AgentEvent,
    Denied,
    Error,
    Failure,
    FailureKind,
    Note,
    Question,
    Retry,
    Text,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
)
from teamchat.runners.untrusted.file_changes import FileChange, FileChanges

MOST_PIECES = 150  # of a reply that streams
LEAST_PIECE = 24  # characters
PIECE_S = 0.06
TOOL_S = 0.5  # how long a tool seems to run at most; the transcript knows only when it began
READING_S = 0.02  # a character
NAMES = frozenset(
    {"member", "agent", "model", "failure", "name", "path", "title", "session"}
    | {"role_id", "role_name", "role_title", "stands_for", "resolved_addressees", "id"}
)
SAID: dict[str, Callable[[str], AgentEvent]] = {
    "said": Text,
    "question": Question,
    "retry": Retry,
    "note": Note,
    "error": Error,
}


class Moment(Struct, frozen=True):
    """An event that comes `pause` seconds after the one before. `marker` is the name of a turn that begins."""

    pause: float
    event: ConversationEvent
    marker: str | None = None


def harmless(transcript: Transcript) -> Transcript:
    """The transcript with texts that a terminal can show. Names may come from anywhere: theirs are on one line."""
    shown: Transcript = mapped(transcript, lambda name, text: printable(text) if name in NAMES else visible(text))
    return shown


def shown_on(surface: Surface, transcript: Transcript, now: Callable[[], float]) -> TerminalOutput:
    """What shows the events of a harmless transcript on the surface, by the clock `now`. A person has its own name."""
    people = {said.message.speaker.role_name for said in transcript.said if said.message.speaker.type == "human"}
    return TerminalOutput(transcript.speakers, surface, Look(), people=people, you="", now=now)


def moments(transcript: Transcript) -> Iterator[Moment]:
    """Every event of the transcript. A pause is as long as it was; what was said leaves some time to read it."""
    ended_ms, reading = transcript.began_ms, 0.0
    for number, entry in enumerate(transcript.entries, 1):
        if isinstance(entry, RanCheck):
            began, ended = entry.began_ms, _check_record(entry)
            begun = replace(ended, status="running", result=None, changes=None)
            yield Moment(max((began - ended_ms) / 1000, reading), CheckStarted(begun))
            yield Moment(entry.seconds or 0, CheckFinished(ended))
            if entry.undone:
                yield Moment(0, Warned(f"{ended.label} is undone"))
            ended_ms, reading = max(ended_ms, began + round(1000 * (entry.seconds or 0))), 0.0
            continue
        turn = entry if isinstance(entry, MemberTurn) else entry.turn
        message = replace(entry.message, content=entry.shown) if isinstance(entry, Said) else None
        began_ms = turn.began_ms if turn else message.timestamp if message else ended_ms
        pause = max((began_ms - ended_ms) / 1000, reading)
        yield from _turn(number, turn, message, pause) if turn else _said(number, message, pause)
        if entry.undone:
            yield Moment(0, Warned(f"{message.id if message else 'that turn'} is undone"))
        ended_ms = max(ended_ms, began_ms + round(1000 * ((turn and turn.seconds) or 0)))
        reading = READING_S * len(message.content if message else "")


def _said(number: int, message: ConversationMessage | None, pause: float) -> Iterator[Moment]:
    """A message of which no turn is known."""
    if message is None:
        return
    if message.speaker.type == "ai":
        unknown = MemberTurn(number, message.speaker.role_name, message.speaker.role_title or "", "read", 0, "done")
        yield Moment(pause, Replied(_stored(number, unknown), message))
    else:
        yield Moment(pause, MessageStored(message))


def _turn(number: int, turn: MemberTurn, message: ConversationMessage | None, pause: float) -> Iterator[Moment]:
    stored = _stored(number, turn)
    route = Route("", "", "", number, turn.member)
    yield Moment(pause, TurnStarted(stored, route), f"turn {turn.number}: {turn.member}")
    at = 0.0
    for place, step in enumerate(turn.steps):
        yield Moment(max(step.at - at, 0), AgentSpoke(turn.member, number, _event(step, place)))
        at = max(step.at, at)
        if step.kind == "tool":
            result = ToolResult(str(place), step.output, step.failed)
            following = min([later.at for later in turn.steps[place + 1 :]], default=at + TOOL_S)
            ran = min(max(following - at, 0), TOOL_S)
            at += ran
            yield Moment(ran, AgentSpoke(turn.member, number, result))
    rest = max((turn.seconds or at) - at, 0)
    text = message.content if message else turn.text
    for piece in _pieces(text):
        yield Moment(rest, AgentSpoke(turn.member, number, TextDelta(piece)))
        rest = PIECE_S
    if message:
        yield Moment(rest, Replied(stored, message))
    yield Moment(0 if message else rest, TurnFinished(stored, _outcome(turn), turn.text))
    if turn.failure:
        yield Moment(0, Warned(f"{turn.member} failed: {turn.failure}"))


def _pieces(text: str) -> Iterator[str]:
    size = max(LEAST_PIECE, -(-len(text) // MOST_PIECES))
    return (text[at : at + size] for at in range(0, len(text), size))


def _event(step: Step, place: int) -> AgentEvent:
    if step.kind == "tool":
        return ToolCall(str(place), step.name, step.text)
    return Denied(step.name, step.text) if step.kind == "denied" else SAID[step.kind](step.text)


def _check_record(check: RanCheck) -> CheckRecord:
    status = "not_run" if check.status == "running" else check.status
    known = tuple(FileChange(file.path, file.what, file.added, file.removed) for file in check.files if file.what)
    return CheckRecord(
        id=check.number,
        session=0,
        number=check.number,
        route=None,
        name=check.name or check.command,
        command=check.command,
        status=status,
        started_at=check.began_ms / 1000,
        after=0,
        cwd=Path(FOLDER),
        folder=Path(FOLDER),
        result=CheckResult(status, check.reason, check.exit_code, check.seconds or 0.0),
        changes=FileChanges("", "", "", known, check.more_files) if known else None,
    )


def _stored(number: int, turn: MemberTurn) -> Turn:
    """The turn under a number of its own: those of a branch may be given twice."""
    setup = Setup((), {}, FOLDER, turn.access, "", "", "", "", model=turn.model, host=turn.host)
    return Turn(
        id=number,
        number=number,
        route=number,
        member=turn.member,
        agent=turn.agent,
        protocol="plain",
        status=turn.status,
        started_at=turn.began_ms / 1000,
        shown_through="",
        setup=setup,
        folder=Path(FOLDER),
        outcome=None,
        vendor_session=None,
        opened=False,
        prompt_key="",
        system_key=None,
        partial_key=None,
    )


def _outcome(turn: MemberTurn) -> Outcome:
    usage = Usage(turn.input_tokens, turn.cached_tokens, turn.output_tokens, turn.cost_usd)
    known = [FileChange(file.path, file.what, file.added, file.removed) for file in turn.files if file.what]
    return Outcome(
        exit_code=None,
        seconds=turn.seconds,
        failure=Failure(FailureKind.AGENT, turn.failure) if turn.failure else None,
        model=turn.model,
        usage=None if usage == Usage() else usage,
        denied=tuple(Denied(step.name, step.text) for step in turn.steps if step.kind == "denied"),
        files=tuple(file.path for file in turn.files),
        changes=FileChanges("", "", "", tuple(known), turn.more_files) if known else None,
    )


# An asciicast (version 2): the conversation as a terminal showed it, with a marker where each turn begins.
#
# A pause is as long as it was, and never longer than `max_pause`; the clock in the picture shows the time that it
# took.

FRAME_S = 0.1
LAST_S = 2.0  # how long the last frame stays
COLUMNS, ROWS = SIZE


class _Tape(io.RawIOBase):
    """What a terminal would get, and when: `at` by the recording's clock, `now` by the conversation's. In seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.at = self.now = 0.0
        self._lines: list[str] = []

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        self.put("o", bytes(data).decode("utf-8", "replace").replace("\n", "\r\n"))
        return len(data)

    def put(self, kind: str, text: str) -> None:
        self._lines.append(json.dumps([round(self.at, 3), kind, text], ensure_ascii=False) + "\n")

    def wait(self, seconds: float, most: float, moved: Callable[[], None]) -> None:
        """Let that time pass, in `most` seconds of the recording; `moved` is called for each frame."""
        frames = math.ceil(min(seconds, most) / FRAME_S)
        for _ in range(frames):
            self.at += min(seconds, most) / frames
            self.now += seconds / frames
            moved()

    def taken(self) -> list[str]:
        """The lines since the last call."""
        lines, self._lines = self._lines, []
        return lines


def write_cast(transcript: Transcript, options: Options) -> Iterator[str]:
    shown = harmless(transcript)
    head = {
        "version": 2,
        "width": COLUMNS,
        "height": ROWS,
        "timestamp": transcript.began_ms // 1000,
        "title": shown.title or shown.session,
        "env": {"TERM": "xterm-256color"},
    }
    yield json.dumps(head, ensure_ascii=False) + "\n"
    tape = _Tape()
    output = shown_on(TerminalSurface(tape, moves=True), shown, now=lambda: tape.now)
    for moment in moments(shown):
        tape.wait(moment.pause, options.max_pause, output.tick)
        if moment.marker:
            tape.put("m", moment.marker)
        output(moment.event)
        yield from tape.taken()
    output.close()
    tape.at += LAST_S
    tape.put("o", "")
    yield from tape.taken()


PICTURE_COLUMNS, PICTURE_ROWS = 100, 36
# without the fonts that would be fetched
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


def write_svg(transcript: Transcript, options: Options) -> Iterator[str]:
    """The end of the conversation. If it is not all, the first line says how much."""
    del options
    surface = _Written()
    last = harmless(replace(transcript, entries=transcript.entries[-PICTURE_ROWS:]))  # each has a line at least
    output = shown_on(surface, last, now=lambda: 0.0)
    ends = list[int]()  # of the messages: how many lines there are then
    for moment in moments(last):
        output(moment.event)
        if isinstance(moment.event, MessageStored | Replied):
            ends.append(surface.text.getvalue().count("\n"))
    output.close()
    lines = surface.text.getvalue().rstrip("\n").split("\n")
    total = len(list(transcript.said))
    if len(lines) > PICTURE_ROWS or len(ends) < total:
        first = max(len(lines) - PICTURE_ROWS + 2, 0)
        shown = sum(end > first for end in ends)
        part = f"the last {shown:,} of {plural(total, 'message')}" if shown < total else "the first lines are left out"
        lines = [Look().dim(f"· {part}"), "", *lines[first:]]
    yield drawn("\n".join(lines), PICTURE_COLUMNS, last.title or last.session)


def drawn(text: str, columns: int, title: str) -> str:
    """The lines of a terminal with that many columns, with their colours, as a picture in a window."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    for line in AnsiDecoder().decode(text):
        console.print(line)
    console.print()  # rich cuts the last line of a picture at its feet
    picture = console.export_svg(title=title, unique_id="terminal", code_format=TEMPLATE)
    return _NOT_IN_XML.sub("\ufffd", picture)
