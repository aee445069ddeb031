"""The formats of `export` that show a terminal: a recording of it (asciicast, version 2), and a picture.

A transcript is played as the events that the terminal showed, one turn after the other, with the pauses between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.cli.exporting.formats import FOLDER
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.output import TerminalOutput
from teamchat.cli.output.terminal.surface import Surface
from teamchat.core.check import CheckResult
from teamchat.core.engine.state import Route
from teamchat.core.made import made_of
from teamchat.core.messages import ConversationMessage
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.checks import CheckRecord
from teamchat.core.store.turn_events import KINDS
from teamchat.core.store.turns import Turn
from teamchat.core.text.clean import printable, visible
from teamchat.core.transcripts.collect import STEPS
from teamchat.core.transcripts.transcript import MemberTurn, RanCheck, SaidEntry, Transcript, TranscriptStep, mapped
from teamchat.core.turn.run_events import (
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
from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Failure,
    FailureKind,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
)
from teamchat.runners.untrusted.file_changes import FileChange, FileChanges

MOST_PIECES = 150  # the most pieces that a streamed reply is cut into
LEAST_PIECE = 24  # characters
PIECE_S = 0.06
TOOL_S = 0.5  # the longest time that a tool seems to run; the transcript knows only when it began
READING_S = 0.02  # a character
NAMES = frozenset(
    {"member", "agent", "model", "failure", "name", "path", "title", "session"}
    | {"role_id", "role_name", "role_title", "stands_for", "resolved_addressees", "id"}
)
SAID: dict[str, Callable[[str], AgentEvent]] = {kind: KINDS[name] for name, (kind, _) in STEPS.items()}


class Moment(Struct, frozen=True):
    """An event that comes `pause` seconds after the one before. `marker` is the name of a turn that begins."""

    pause: float
    event: ConversationEvent
    marker: str | None = None


def harmless(transcript: Transcript) -> Transcript:
    """Make the texts of the transcript fit for a terminal. Names may come from anywhere: theirs are on one line."""
    shown: Transcript = mapped(transcript, lambda name, text: printable(text) if name in NAMES else visible(text))
    return shown


def shown_on(surface: Surface, transcript: Transcript, now: Callable[[], float]) -> TerminalOutput:
    """Make the output for a harmless transcript on the surface, by the clock `now`. A person has its own name."""
    people = {said.message.speaker.role_name for said in transcript.said if said.message.speaker.type == "human"}
    return TerminalOutput(transcript.speakers, surface, Look(), people=people, you="", now=now)


def moments(transcript: Transcript) -> Iterator[Moment]:
    """List every event of the transcript. Pauses keep their lengths; each message leaves some time to read it."""
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
        message = replace(entry.message, content=entry.shown) if isinstance(entry, SaidEntry) else None
        began_ms = turn.began_ms if turn else message.timestamp if message else ended_ms
        pause = max((began_ms - ended_ms) / 1000, reading)
        yield from _turn(number, turn, message, pause) if turn else _said(number, message, pause)
        if entry.undone:
            yield Moment(0, Warned(f"{message.id if message else 'that turn'} is undone"))
        ended_ms = max(ended_ms, began_ms + round(1000 * ((turn and turn.seconds) or 0)))
        reading = READING_S * len(message.content if message else "")


def _said(number: int, message: ConversationMessage | None, pause: float) -> Iterator[Moment]:
    """Show a message without a turn."""
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


def _event(step: TranscriptStep, place: int) -> AgentEvent:
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
    """Build the turn under a number of its own: a branch may give the same number twice."""
    setup = Setup((), {}, FOLDER, turn.access, "", "", "", "", model=turn.model, host=turn.host)
    return made_of(
        Turn,
        turn,
        id=number,
        number=number,
        route=number,
        protocol="plain",
        started_at=turn.began_ms / 1000,
        shown_through="",
        setup=setup,
        folder=Path(FOLDER),
        undone=None,
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
