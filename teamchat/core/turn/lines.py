"""The lines of `--json`, version 1: what a run tells, each line a value. `docs/json.md` is made from them.

The file of a run has the same lines, with the fields of `live` besides, and types of its own (`of_file`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, ClassVar, cast

from msgspec import UNSET, Struct, UnsetType, defstruct, field, to_builtins
from msgspec.structs import replace

from teamchat.assemblers.parts import Trimmed
from teamchat.core.check import CheckResult, Touched
from teamchat.core.engine.events import Dropped, Moved, Queued, Refused
from teamchat.core.engine.state import Route
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.engine.workflow import Part, Process
from teamchat.core.messages import ConversationMessage
from teamchat.core.receipt import QUANTITIES, Child, Outcome
from teamchat.core.store.checks import CheckRecord
from teamchat.core.store.lessons import Lesson
from teamchat.core.store.turns import Turn
from teamchat.core.turn.run_events import (
    AgentSpoke,
    CheckFinished,
    CheckStarted,
    Conclusion,
    ConversationEvent,
    GroupCompared,
    JsonLine,
    LessonsFound,
    MessageStored,
    RecordingFiles,
    Replied,
    SummaryStored,
    TaskChanged,
    TodoChanged,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Done,
    Error,
    Failure,
    FailureKind,
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
from teamchat.runners.untrusted.file_changes import FileChange, FileChanges, NoCheckpoint


class PartFields(Struct):
    """What a turn does in a process. A role that is not counted has neither number nor total."""

    role: str
    number: int | None
    of: int | None


class RouteFields(Struct):
    """A call in the queue: who is called, by whom, and in which message."""

    number: int
    target: str
    priority: int
    group: int | None
    parent: str
    by: str
    status: str
    attempt: int
    part: PartFields | None


class UsageFields(Struct):
    """Tokens and US dollars; null is unknown. `input_tokens` includes the cached ones."""

    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


class ChildFields(UsageFields):
    """A conversation that the agent ran in its turn. A sum that is not whole is null, and `at_least` has its part."""

    session: str
    store: str
    turns: int
    at_least: UsageFields


class FileChangeFields(Struct):
    """A file that changed during a turn. `reported`: its CLI says so, too."""

    path: str
    what: str
    added: int | None
    removed: int | None
    reported: bool


class ChangesFields(Struct, omit_defaults=True):
    """The difference of the checkpoints before and after a turn, or why it is `unknown`."""

    files: list[FileChangeFields] | UnsetType = UNSET
    more: int | UnsetType = UNSET
    left_out: tuple[str, ...] | UnsetType = UNSET
    shared_with: tuple[int, ...] | UnsetType = UNSET
    before: str | UnsetType = UNSET
    after: str | UnsetType = UNSET
    unknown: str | UnsetType = UNSET


class MessageLine(JsonLine, frozen=True, kw_only=True, tag="message"):
    """A message was stored.

    `kind` is `human` or `ai`, `to` names the members that it calls (empty: everybody) and `text` is verbatim, markers
    included. `stands_for` is the member that the speaker is the fallback of, `time_ms` counts since 1970, and `turn` is
    of a reply. The replies of a group come together, after its turns.
    """

    id: str
    speaker: str = field(name="from")
    kind: str
    stands_for: str | None
    to: tuple[str, ...]
    text: str
    time_ms: int
    turn: int | UnsetType | None = UNSET
    hidden: bool | UnsetType = UNSET


class QueuedLine(JsonLine, frozen=True, kw_only=True, tag="queued"):
    """A route entered the queue.

    `priority` is 1 to 3, `parent` the message that calls and `by` its speaker. `part` is what its turn does in a
    process, with `role` `number` `of`, else null.
    """

    number: int
    target: str
    priority: int
    group: int | None
    parent: str
    by: str
    status: str
    attempt: int
    part: PartFields | None


class DroppedLine(QueuedLine, frozen=True, kw_only=True, tag="dropped"):
    """A route left the queue, with the `status` `joined` because the turn before answers that call, too."""


class RefusedLine(QueuedLine, frozen=True, kw_only=True, tag="refused"):
    """A route was refused because the queue is full: it has `limit` routes."""

    limit: int


class LineOfTurn(JsonLine, frozen=True, kw_only=True):
    """A line of a member's turn."""

    turn: int
    member: str


class TurnStartedLine(LineOfTurn, frozen=True, kw_only=True, tag="turn_started"):
    """A member's agent starts.

    `agent` is its name in the team, `agent_type` the CLI that it is like, `route` the call (null: a side turn, which
    writes a summary or looks for lessons), `part` as in `queued`. `host` is where it runs (null: on this machine), and
    `place` the member's place beside its other turns, `sarah#3`, or null.
    """

    agent: str
    agent_type: str
    route: int | None
    part: PartFields | None
    attempt: int
    host: str | None
    place: str | None


class CompactedLine(LineOfTurn, frozen=True, kw_only=True, tag="compacted"):
    """A turn has summarised the conversation.

    `through` is the newest message in the summary, and `kept` has the ids of messages that are still quoted.
    """

    through: str
    kept: tuple[str, ...]
    text: str


class LessonsLine(LineOfTurn, frozen=True, kw_only=True, tag="lessons"):
    """A turn has looked for lessons in the conversation. `found` are the new ones, one a line."""

    live = ("lessons",)
    found: tuple[str, ...]
    lessons: tuple[Lesson, ...]


class LessonLine(JsonLine, frozen=True, kw_only=True, tag="lesson"):
    """A new lesson is stored."""

    number: int
    text: str
    session: str | None
    learned_at: float


class SpokenLine(LineOfTurn, frozen=True, kw_only=True):
    """What an agent does: the fields `names` of an `event` of its CLI."""

    event: ClassVar[type[AgentEvent]]
    names: ClassVar[tuple[str, ...]]


def _spoken_line(
    event: type[AgentEvent], tag: str, doc: str, live: Mapping[str, Any] | None = None, **fields: Any
) -> type[SpokenLine]:
    """The line of an event, with these fields of it by their types; those of `live` are for a live view alone."""
    every = {**fields, **(live or {})}
    own = {"__doc__": doc, "event": event, "names": tuple(every), "live": tuple(live or ())}
    kinds = {"streamed": tag in STREAMED, "of_file": tag in OF_FILE}
    made: Any = defstruct(
        f"{event.__name__}Line",
        [*every.items()],
        bases=(SpokenLine,),
        frozen=True,
        kw_only=True,
        tag=tag,
        rename={"kind": "failure"},
        namespace={**own, **kinds},
    )
    return cast("type[SpokenLine]", made)


STREAMED, OF_FILE = ("text_delta", "text", "thinking"), ("started", "used_so_far", "done")
TextDeltaLine = _spoken_line(TextDelta, "text_delta", "Text as it arrives.", text=str)
_BLOCK = "A finished block, which replaces the deltas since the last one."
TextLine = _spoken_line(Text, "text", _BLOCK, text=str)
NoteLine = _spoken_line(Note, "note", "Information about a turn, never fatal.", text=str)
_RESULT = "The tool has ended. `paths` are files that it changed."
_ASKED = """The agent asked its user by a tool of its CLI, with the options in `text`. The tool gets no answer: the
reply contains the question, and the person that the turn serves is asked (9)."""
_RETRIES, _USES = "The agent's CLI retries its model request.", "The agent begins to use a tool."
_LINES, _EXIT = {"lines": tuple[int, int] | None}, {"exit_code": int | None}
_WAITS = {"most": int | None, "delay_s": float | None}
SPOKEN: Mapping[type[AgentEvent], type[SpokenLine]] = {
    line.event: line
    for line in (
        *(TextDeltaLine, TextLine, _spoken_line(Thinking, "thinking", "What the model thinks.", text=str)),
        _spoken_line(ToolCall, "tool_call", _USES, _LINES, id=str, name=str, summary=str),
        _spoken_line(ToolResult, "tool_result", _RESULT, _EXIT, id=str, failed=bool, paths=tuple[str, ...]),
        _spoken_line(Denied, "denied", "The agent's CLI denied it an action.", tool=str, detail=str),
        _spoken_line(Question, "question", _ASKED, text=str),
        _spoken_line(Retry, "retry", _RETRIES, _WAITS, reason=str, kind=FailureKind, attempt=int | None),
        NoteLine,
        _spoken_line(Error, "error", "An error that `--json` has as a note.", text=str),
        _spoken_line(Started, "started", "The CLI has started."),
        _spoken_line(UsedSoFar, "used_so_far", "What the turn has used by now.", usage=Usage),
        _spoken_line(Done, "done", "The CLI says that it ends.", ok=bool),
    )
}


class TurnFinishedLine(LineOfTurn, frozen=True, kw_only=True, tag="turn_finished"):
    """The receipt of the turn.

    `host`, `place` and `part` are as in `turn_started`. `failure` has `kind` `reason` `hint`, or is null; `reply` is a
    message's id. `seconds` is null where it is unknown, as when teamchat was killed during the turn. `version` is that
    of the CLI, or null. `files` are the changed ones, relative to the member's folder, `changes` says how (see below),
    and `reported` are those that the CLI says it changed. `files_that_run` make other tools run something, whether the
    agent reports them or not: [Security](security.md#files-that-other-tools-run); `not_all_looked_at`: there are more
    of them than teamchat compares. `tools` is null where the output does not tell, `failed_tools` counts denied calls,
    too, `left` are processes that had to be ended, `children` conversations that the agent ran in its turn (see below).
    `partial` is the text of a turn that failed, never a message, and `redacted` counts secrets removed from the prompt.
    `trimmed` is what the prompt had no room for, or null: `history_messages` and `layers` that were left out, `limit`
    that they exceeded, `long_messages` of the history that lost their middle, `bytes` of these three in all,
    `message_bytes` and `request_bytes` that were cut out of the message and the request.
    """

    host: str | None
    place: str | None
    part: PartFields | None
    redacted: int
    trimmed: Trimmed | None
    ok: bool
    code: int
    failure: Failure | None
    reply: str | None
    exit_code: int | None
    seconds: float | None
    first_byte_s: float | None
    model: str | None
    version: str | None
    usage: UsageFields | None
    denied: tuple[Denied, ...] | None
    files: tuple[str, ...]
    changes: ChangesFields | None
    reported: tuple[str, ...]
    files_that_run: tuple[str, ...]
    not_all_looked_at: bool
    tools: int | None
    failed_tools: int | None
    left: tuple[str, ...]
    children: tuple[ChildFields, ...]
    partial: str


class CheckStartedLine(JsonLine, frozen=True, kw_only=True, tag="check_started"):
    """Teamchat runs a check, of `run until` or of `teamchat check`. What is not known yet is null or empty."""

    check: str
    number: int
    name: str
    command: str | tuple[str, ...]
    route: int | None
    after_turn: int
    status: str
    reason: str | None
    exit_code: int | None
    not_run: str | None
    seconds: float | None
    output_bytes: int | None
    left: tuple[str, ...]
    touched: tuple[Touched, ...]
    count: int | None
    attempt: int
    fresh: bool
    before: str | None
    after: str | None
    files: tuple[FileChange, ...]
    hidden: bool | UnsetType = UNSET


class CheckFinishedLine(CheckStartedLine, frozen=True, kw_only=True, tag="check_finished"):
    """A check is over.

    `check` is `check-N`, as `show` takes it, `name` that of the team file or the typed command, `command` a text for
    the shell, or a list, `route` null by hand, `after_turn` the number of the last turn before it, or 0. `status` is
    `running`, `green`, `red` or `not_run`, and `reason` says why it is red or was not run, and which try it was; else
    it is empty. `exit_code` is null if a signal or teamchat ended it, or it did not start. `not_run` is `missing` (it
    could not start), `ended` (something else ended it), `interrupted` or null. `output_bytes` is what it wrote, `left`
    are processes that it left running and that were ended, `touched` protected files that make it red (`path`, and
    `by`, such as `sarah's turn`), `count` is the number that `expect` found, or null, `attempt` 2 for the second try,
    `fresh` true if it ran in a new folder, `before` and `after` are trees of the work tree, or null, and `files` those
    that changed meanwhile (`path` `what` `added` `removed`).
    """


class TodoAddedLine(JsonLine, frozen=True, kw_only=True, tag="todo_added"):
    """The preceding message added to the todo list."""

    number: int
    text: str
    by: str
    message: str | None


class TodoDoneLine(TodoAddedLine, frozen=True, kw_only=True, tag="todo_done"):
    """The preceding message closed an item of the todo list."""


class ProcessMovedLine(JsonLine, frozen=True, kw_only=True, tag="process"):
    """A [process](processes.md) began, is resumed, got further or is over.

    `name` is that of the team file, or null, `request` the message with its task, and `process` as in `result`, so far.
    """

    name: str | None
    request: str
    over: bool
    process: dict[str, Any]


class ResultLine(JsonLine, frozen=True, kw_only=True, tag="result"):
    """The end.

    `code` is the exit code and `outcome` its name, `text` the last reply of this run, `hint` commands that continue,
    one a line, or null, `waiting` the person who is asked, `paused` the guard, `held` routes for `teamchat resume`.
    `turns` counts without side turns. `process` is what came out of a process that ran so far, else null. With
    `--verdict` there is also `verdict`: one of the words, or null.
    """

    session: str
    code: int
    outcome: str
    text: str
    reason: str | None
    hint: str | None
    waiting: str | None
    paused: str | None
    held: tuple[RouteFields, ...]
    turns: int
    denied: int | None
    usage: UsageFields
    process: dict[str, Any] | None
    verdict: str | UnsetType | None = UNSET


class RunLine(JsonLine, frozen=True, kw_only=True, tag="run"):
    """Only in the file of a run, first: a run of the `session` begins, with an `id` that no other one has.

    `number` counts its runs; 0 is before any.
    """

    of_file = True
    number: int
    session: str
    id: str = ""


class LeftOutLine(JsonLine, frozen=True, kw_only=True, tag="left_out"):
    """Only in the file of a run: here so many lines are missing, because there was no room for them."""

    of_file = True
    lines: int


LINES: tuple[type[JsonLine], ...] = (
    *(MessageLine, TaskChanged, QueuedLine, DroppedLine, RefusedLine, TurnStartedLine, CompactedLine, LessonsLine),
    LessonLine,
    *SPOKEN.values(),
    *(TurnFinishedLine, CheckStartedLine, CheckFinishedLine),
    *(TodoAddedLine, TodoDoneLine, GroupCompared, ProcessMovedLine, Warned, ResultLine),
    *(RunLine, LeftOutLine, RecordingFiles),
)
"""All lines, in the order of the documentation."""
ANY: Any = reduce(or_, LINES)


class LineMaker:
    """Makes the lines of one run. Some events have no line, and what a turn has learned has several.

    The file of a run and its output may ask in turn for the same event, so its lines are made once.
    """

    def __init__(self) -> None:
        self._parts: dict[int, PartFields | None] = {}  # parts of the running turns
        self._event: ConversationEvent | None = None
        self._made: Sequence[JsonLine] = ()

    def of(self, event: ConversationEvent) -> Sequence[JsonLine]:
        """The lines of an event."""
        if event is not self._event:
            self._made = _spoken(event) if isinstance(event, AgentSpoke) else tuple(self._make(event))
            self._event = event
        return self._made

    def _make(self, event: ConversationEvent) -> Iterator[JsonLine]:
        match event:
            case MessageStored(message=message):
                yield message_line(message)
            case Replied(turn=turn, message=message):
                yield message_line(message, turn=turn.number)
            case Queued(route=route) | Dropped(route=route):
                kind = QueuedLine if isinstance(event, Queued) else DroppedLine
                yield kind(**_fields(route_fields(route)))
            case Refused(route=route, limit=limit):
                yield RefusedLine(**_fields(route_fields(route)), limit=limit)
            case TurnStarted() | SummaryStored() | LessonsFound() | TurnFinished():
                yield from self._turn(event)
            case CheckStarted(check=check) | CheckFinished(check=check):
                of_check = CheckStartedLine if isinstance(event, CheckStarted) else CheckFinishedLine
                yield of_check(**check_fields(check))
            case TodoChanged(change=change):
                of_todo = TodoDoneLine if change.what == "done" else TodoAddedLine
                yield of_todo(number=change.number, text=change.text, by=change.by, message=change.message)
            case Moved(process=process):
                yield ProcessMovedLine(**process_fields(process))
            case JsonLine():
                yield event

    def _turn(self, event: TurnStarted | SummaryStored | LessonsFound | TurnFinished) -> Iterator[JsonLine]:
        turn = event.turn
        number, member = turn.number, turn.member
        match event:
            case TurnStarted(route=route):
                part = self._parts[number] = part_fields(route.part if route else None)
                yield TurnStartedLine(
                    turn=number,
                    member=member,
                    agent=turn.agent,
                    agent_type=turn.protocol,
                    route=route.number if route else None,
                    part=part,
                    attempt=turn.setup.attempt,
                    host=turn.setup.host,
                    place=turn.setup.place,
                )
            case SummaryStored(summary=summary):
                at = summary.through
                yield CompactedLine(turn=number, member=member, through=at, kept=summary.kept, text=summary.text)
            case LessonsFound(found=found, kept=kept):
                yield LessonsLine(turn=number, member=member, found=found, lessons=kept)
                yield from map(lesson_line, kept)
            case TurnFinished(outcome=outcome, partial=partial):
                yield finished_line(turn, outcome, self._parts.pop(number, None), partial)


def _spoken(event: AgentSpoke) -> Sequence[JsonLine]:
    """The line of what an agent does, if there is one."""
    spoken = event.event
    if isinstance(spoken, ToolResult):
        spoken = replace(spoken, exit_code=spoken.told_exit_code)
    elif isinstance(spoken, Usage) and not spoken.cumulative:
        spoken = UsedSoFar(spoken)
    if not (made := SPOKEN.get(type(spoken))):
        return ()
    return (made(turn=event.turn, member=event.member, **{name: getattr(spoken, name) for name in made.names}),)


def _fields(value: Struct, *names: str) -> dict[str, Any]:
    """These fields of a value, or all, for a line that has the same ones."""
    return {name: getattr(value, name) for name in names or value.__struct_fields__}


def message_line(message: ConversationMessage, **more: Any) -> MessageLine:
    """The line of a message, and `more` of its fields."""
    return MessageLine(
        id=message.id,
        speaker=message.speaker.role_name,
        kind=message.speaker.type,
        stands_for=message.stands_for,
        to=message.routing.resolved_addressees,
        text=message.content,
        time_ms=message.timestamp,
        **more,
    )


def message_fields(message: ConversationMessage) -> dict[str, Any]:
    """The fields of a message's line, for an object that has it inside."""
    fields: dict[str, Any] = to_builtins(message_line(message))
    return {name: value for name, value in fields.items() if name not in ("type", "v")}


def lesson_line(lesson: Lesson) -> LessonLine:
    return LessonLine(**_fields(lesson, "number", "text", "session", "learned_at"))


def part_fields(part: Part | None) -> PartFields | None:
    return None if part is None else PartFields(part.role, part.number or None, part.total or None)


def route_fields(route: Route) -> RouteFields:
    names = ("number", "target", "priority", "group", "parent", "by", "status", "attempt")
    return RouteFields(**_fields(route, *names), part=part_fields(route.part))


def usage_fields(usage: Usage) -> UsageFields:
    return UsageFields(**_fields(usage, *QUANTITIES))


def process_fields(process: Process, report: Struct | None = None) -> dict[str, Any]:
    """How far a process is, with its `report`, if that is known to have more than the process itself."""
    reported = to_builtins(report or strategy_of(process.kind).report(process))
    return {"name": process.name or None, "request": process.request, "over": process.over, "process": reported}


def finished_line(turn: Turn, outcome: Outcome, part: PartFields | None = None, partial: str = "") -> TurnFinishedLine:
    """The line of a turn that is over."""
    same = ("reply", "exit_code", "model", "version", "denied", "files", "reported", "files_that_run")
    return TurnFinishedLine(
        turn=turn.number,
        member=turn.member,
        host=turn.setup.host,
        place=turn.setup.place,
        part=part,
        redacted=turn.setup.redacted,
        trimmed=turn.setup.trimmed or None,
        ok=outcome.failure is None,
        code=int(outcome.code),
        failure=outcome.failure,
        seconds=outcome.seconds and round(outcome.seconds, 3),
        first_byte_s=outcome.first_byte_s and round(outcome.first_byte_s, 3),
        usage=usage_fields(outcome.usage) if outcome.usage else None,
        changes=_changes(outcome),
        tools=outcome.tools if turn.type.reports_tools else None,
        children=tuple(map(_child, outcome.children)),
        partial=partial,
        **_fields(outcome, *same, "not_all_looked_at", "failed_tools", "left"),
    )


def outcome_fields(turn: Turn, outcome: Outcome) -> dict[str, Any]:
    """What came of a turn, as its receipt has it: the fields from `ok` to `children`."""
    names = TurnFinishedLine.__struct_fields__
    return _fields(finished_line(turn, outcome), *names[names.index("ok") : names.index("children") + 1])


def _child(child: Child) -> ChildFields:
    unknown = {name: getattr(child, f"no_{name}") for name in QUANTITIES}
    sums = _fields(child, *QUANTITIES)
    at_least = {name: known if unknown[name] < child.turns else None for name, known in sums.items()}
    whole: dict[str, Any] = {name: None if unknown[name] else known for name, known in sums.items()}
    of = _fields(child, "session", "store", "turns")
    return ChildFields(**of, **whole, at_least=UsageFields(**at_least))


def _changes(outcome: Outcome) -> ChangesFields | None:
    """How the files changed, or why that is unknown; None for a turn that never started."""
    match outcome.changes:
        case None:
            return None
        case NoCheckpoint(reason=reason):
            return ChangesFields(unknown=reason)
        case changes:
            files = [
                FileChangeFields(**_fields(file), reported=file.path in outcome.reported) for file in changes.files
            ]
            return ChangesFields(files=files, **_fields(changes, "more", "left_out", "shared_with", "before", "after"))


def check_fields(check: CheckRecord) -> dict[str, Any]:
    """A check without its output."""
    result = check.result or CheckResult("not_run")
    changes = check.changes if isinstance(check.changes, FileChanges) else FileChanges("", "", "")
    known = check.result is not None
    return {
        "check": check.label,
        **_fields(check, "number", "name", "command", "route", "status"),
        "after_turn": check.after,
        **_fields(result, "exit_code", "not_run", "left", "touched", "count", "attempt", "fresh"),
        "reason": result.reason if known else None,
        "seconds": round(result.seconds, 3) if known else None,
        "output_bytes": result.output_bytes if known else None,
        "before": changes.before or None,
        "after": changes.after or None,
        "files": changes.files,
    }


def result_line(session: str, conclusion: Conclusion) -> ResultLine:
    """The last line of a run."""
    return ResultLine(
        session=session,
        code=int(conclusion.code),
        outcome=conclusion.code.name.lower(),
        waiting=conclusion.waiting_for,
        held=tuple(map(route_fields, conclusion.held)),
        usage=usage_fields(conclusion.usage),
        process=to_builtins(conclusion.process) if conclusion.process else None,
        verdict=conclusion.verdict.word if conclusion.verdict else UNSET,
        **_fields(conclusion, "text", "reason", "hint", "paused", "turns", "denied"),
    )


def printed(line: JsonLine) -> dict[str, Any]:
    """The line as `--json` has it."""
    fields: dict[str, Any] = to_builtins(line)
    if fields["type"] == "error":
        fields["type"] = "note"
    return {name: value for name, value in fields.items() if name not in line.live}
