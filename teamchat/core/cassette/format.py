"""A cassette: a recorded conversation as JSON lines (docs/cassettes.md).

The first line is the header with the team. Then come, in the order they happened, lines with one key each: `human` and
`resume` (an input), `turn` (what crossed the process boundary), `check` (what a check came to) and `end` (how the run
of that input ended, and what it stored and printed).
"""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from teamchat.core.agents import ProtocolName
from teamchat.core.cassette.team import RecordedTeam
from teamchat.core.check import MOST_TRIES, CheckStatus, NotRun, Touched
from teamchat.core.checked_structs import CheckedStruct
from teamchat.core.conversation.inputs import Message, Resume, typed_spans
from teamchat.core.engine.events import PauseKind, ResumeMode
from teamchat.core.engine.processes.mapreduce import MOST_SUBTASKS
from teamchat.core.engine.state import Bounds
from teamchat.core.engine.workflow import MOST_ROUNDS, Kind, Process, ProcessCheck
from teamchat.core.errors import UsageError
from teamchat.core.store.images import Image
from teamchat.core.store.images import Kind as ImageKind
from teamchat.core.team.team import MOST
from teamchat.core.text.clean import printable
from teamchat.runners.agent_events import FailureKind
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint
from teamchat.runners.untrusted.regular_files import read_regular_text


def schema() -> str:
    """The text of docs/cassette.schema.json, for any line of a cassette. `make pages` writes it."""
    lines: TypeAdapter[Header | Entry] = TypeAdapter(Header | Entry)
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A line of a teamchat cassette"}
    return json.dumps({**about, **lines.json_schema()}, indent=1, ensure_ascii=False) + "\n"


def fixed_words() -> set[str]:
    """The values of texts that the format restricts to some words: kinds of agents, of failures, and so on."""
    words: set[str] = set()
    json.loads(schema(), object_hook=lambda part: words.update(part.get("enum", ())))
    return words


LARGEST = 1 << 30  # bytes; a replay reads all of it into memory
Stream = Literal["out", "err", "out64", "err64"]
LONGEST_S = 31 * 86_400  # no turn, and no run, is taken to have lasted longer
Seconds = Annotated[float, Field(ge=0, le=LONGEST_S)]
ONE_KEY = {"minProperties": 1, "maxProperties": 1}


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Header(Line):
    """`label` says where the answers came from, such as "scripted model".

    `fence_key` is the secret from which the codes of the prompts are made, so that a replay makes the same ones.
    """

    cassette: Literal[1]
    team: RecordedTeam
    label: str | None = None
    fence_key: str | None = Field(None, pattern=r"^[0-9a-f]*$")


class InputLine(Line):
    """What begins a run. `cooling` are the agents that were cooling down after a rate limit, for so many seconds.

    `turns`, `only` and `window` are its bounds.
    """

    cooling: dict[str, Seconds] = {}
    turns: Annotated[int, Field(ge=1)] | None = None
    only: Literal[True] | None = None
    window: Annotated[int, Field(ge=0, le=MOST)] | None = None

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.turns, self.only is True, self.window)


class ImageLine(Line):
    """An image by its name and kind; its content is not recorded."""

    name: str
    kind: ImageKind


class ProcessLine(Line):
    """The process (`teamchat run`) that a person's message begins."""

    kind: Kind
    members: tuple[str, ...]
    lead: str
    excluded: tuple[str, ...] = ()
    name: str = ""
    prompt: str = ""
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] = 1
    planner: str = ""
    reducer: str = ""
    judge: str = ""
    jobs: Annotated[int, Field(ge=1)] | None = None
    most: Annotated[int, Field(ge=0, le=MOST_SUBTASKS)] = 0
    options: tuple[str, ...] = ()
    do: str = ""
    checks: tuple[Annotated[ProcessCheck, CheckedStruct()], ...] = ()
    review: tuple[str, ...] = ()
    fallbacks: dict[str, tuple[str, ...]] = {}
    quorum: Annotated[int, Field(ge=1)] | None = None
    worktree: bool = False

    @property
    def process(self) -> Process:
        return Process(**dict(self))


class HumanLine(InputLine):
    """What a person said. The first `typed` characters were typed; the rest was piped in, or comes from files.

    The parts `pasted` came in several lines at once.
    """

    text: str
    speaker: str | None = None
    to: str | None = None
    images: list[ImageLine] = []
    typed: Annotated[int, Field(ge=0)] = 0
    pasted: tuple[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]], ...] = ()
    process: ProcessLine | None = None

    @property
    def input(self) -> Message:
        return Message(
            text=self.text,
            typed=typed_spans(self.typed, self.pasted),
            speaker=self.speaker,
            to=self.to,
            images=tuple(Image(image.name, image.kind, b"") for image in self.images),
            process=self.process.process if self.process else None,
        )


class ResumeLine(InputLine):
    """A person resumed the conversation."""

    mode: ResumeMode = ResumeMode.RETRY

    @property
    def input(self) -> Resume:
        return Resume(self.mode)


class CutLine(Line):
    """What ended a turn early: a clock, a person, a rejected login."""

    at: Seconds
    kind: FailureKind
    reason: str
    hint: str | None = None


class ErrorLine(Line):
    """Why a turn did not start: no host, no program, a refused access, no folder, or the system's own error."""

    kind: Literal["missing", "refused", "usage", "spawn", "host"]
    text: str
    hint: str | None = None


class ToldLine(Line):
    """The layers of files, lessons and worktrees of a turn, by the layer's name. `answers` is what is answered.

    `part` is the role and the number of what the turn does in a process, and `go` that of its part.
    """

    answers: str
    part: tuple[str, int] | None = None
    go: Annotated[int, Field(ge=1)] = 1
    layers: dict[Literal["experience__context", "knowledge__context", "differences__context"], str]


class SlashLine(Line):
    """A custom command that the person typed for a turn: see `Slash`."""

    typed: str
    file: str
    text: str = ""
    refused: str | None = None


class RanLine(Line):
    """The host that a turn ran on. `began` is false where nothing was started there, `ended` where its end is unknown.

    `teamchat` is the version there, `access_note` what bounded the agent.
    """

    host: str = Field(pattern=r"^[\w.-]+$")
    began: bool = True
    ended: bool = True
    access_note: str = ""
    teamchat: str = ""


class TurnLine(Line):
    """One turn. `output` is `[seconds, "out" or "err", text]` per line of output, with its line end.

    A line that is no UTF-8 stands in base64, as "out64" or "err64". `at` is when it began, in seconds from its run's
    beginning. `existing` are the `@paths` that existed, `slash` is the custom command that its person typed, `cwd` the
    folder of the agent where its output names it. `version` is that of the CLI where it is known. `login` names the
    variables that its login was from: none where it was a stored one, null where that is not known.
    `changed` are files that run things and changed in the turn; `not_all_looked_at`: there are more of them than are
    compared. `files` is what changed in the agent's work tree, or why that is not known.
    `exit_code` is null where `error` says why it was not started. `ran` is where it ran if that was another machine.
    """

    member: str
    agent: ProtocolName
    system: str | None
    stdin: str
    argv: list[str] = []
    env: list[str] = []
    cwd: str | None = None
    version: str | None = None
    login: list[str] | None = None
    existing: list[str] = []
    slash: SlashLine | None = None
    told: ToldLine | None = None
    output: list[tuple[Seconds, Stream, str]] = []
    cut: CutLine | None = None
    exit_code: int | None = None
    over_limit: Annotated[int, Field(ge=0)] | None = None
    at: Seconds = 0.0
    seconds: Seconds = 0.0
    left: list[str] = []
    changed: list[str] = []
    not_all_looked_at: bool = False
    files: Annotated[FileChanges, CheckedStruct()] | Annotated[NoCheckpoint, CheckedStruct()] | None = None
    error: ErrorLine | None = None
    ran: RanLine | None = None

    @field_validator("output")
    @classmethod
    def _decodable(cls, output: list[tuple[float, Stream, str]]) -> list[tuple[float, Stream, str]]:
        for _, stream, text in output:
            if stream.endswith("64"):
                base64.b64decode(text, validate=True)
        return output

    @model_validator(mode="after")
    def _ended(self) -> TurnLine:
        if (self.exit_code is None) is (self.error is None):
            raise ValueError("expected either an exit_code or an error")
        return self


class CheckLine(Line):
    """One run of a check. `output` is what is kept of its output; in base64 as `output64` if that is no UTF-8.

    `at` is when it began, in seconds from its run's beginning, `output_bytes` how much it wrote, `left` the processes
    that it left running. `files` is what changed in the work tree meanwhile, or why that is not known. `touched` are
    protected files that made it red, `count` the number that its `expect` found. `attempt` is 2 for a second try.
    `fresh`: it ran in a new folder.
    """

    name: str
    command: str | tuple[str, ...]
    status: CheckStatus
    reason: str = ""
    exit_code: int | None = None
    not_run: NotRun | None = None
    seconds: Seconds = 0.0
    output: str = ""
    output64: str | None = None
    output_bytes: Annotated[int, Field(ge=0)] = 0
    left: tuple[str, ...] = ()
    touched: tuple[Annotated[Touched, CheckedStruct()], ...] = ()
    count: Annotated[int, Field(ge=0)] | None = None
    attempt: Annotated[int, Field(ge=1, le=MOST_TRIES)] = 1
    fresh: bool = False
    files: Annotated[FileChanges, CheckedStruct()] | Annotated[NoCheckpoint, CheckedStruct()] | None = None
    at: Seconds = 0.0

    @model_validator(mode="after")
    def _whole(self) -> CheckLine:
        if (self.status == "not_run") is (self.not_run is None):
            raise ValueError("expected a reason in not_run where a check was not run, and only there")
        if self.output64 is not None:
            base64.b64decode(self.output64, validate=True)
        return self


class StoredMessage(Line):
    """A message. `turn` is the number of the turn whose reply it is."""

    id: str
    speaker: str
    kind: Literal["ai", "human", "system"]
    to: list[str]
    markers: list[str]
    text: str
    turn: int | None = None
    stands_for: str | None = None


class StoredTurn(Line):
    """A turn: the facts of its receipt that are equal on every machine, and its events by their names."""

    number: int
    member: str
    agent: str
    status: str
    route: int | None
    shown_through: str
    vendor_session: str | None = None
    setup: dict[str, Any]
    outcome: dict[str, Any] | None = None
    partial: str = ""
    events: list[tuple[str, dict[str, Any]]] = []


class StoredRoute(Line):
    number: int
    target: str
    priority: int
    group: int | None
    parent: str
    by: str
    request: str
    as_of: str | None
    status: str
    attempt: int
    part: dict[str, Any] | None = None


class StoredCheck(Line):
    """A run of a check: the facts of it that are equal on every machine. `files` are the paths that changed."""

    number: int
    route: int | None
    name: str
    command: str | list[str]
    after: int
    status: str
    reason: str
    exit_code: int | None
    not_run: str | None
    output_bytes: int
    left: list[str]
    files: list[str]
    touched: list[str] = []
    count: int | None = None
    attempt: int = 1
    fresh: bool = False


class StoredTodo(Line):
    """An item of the todo list."""

    number: int
    by: str
    text: str
    done: bool


class EndLine(Line):
    """How the run of an input ended: what it stored, and what it printed, without what time and machine make of it.

    `paused` is the guard that paused it, or "interrupted". `task` and `todos` are those of the conversation by then,
    `cleared` the last message that prompts left out since it was cleared.
    `shown` are the lines of `--json --stream`, without text as it comes; `printed` those of a piped run.
    """

    code: int
    paused: PauseKind | None = None
    messages: list[StoredMessage]
    turns: list[StoredTurn]
    routes: list[StoredRoute]
    checks: list[StoredCheck] = []
    task: str | None = None
    todos: list[StoredTodo] | None = None
    cleared: str | None = None
    shown: list[dict[str, Any]]
    printed: list[str]


class Entry(Line):
    """A line after the header; exactly one of its keys is there."""

    model_config = ConfigDict(json_schema_extra={**ONE_KEY})

    human: HumanLine | None = None
    resume: ResumeLine | None = None
    turn: TurnLine | None = None
    check: CheckLine | None = None
    end: EndLine | None = None

    @model_validator(mode="after")
    def _one(self) -> Entry:
        if sum(value is not None for value in (self.human, self.resume, self.turn, self.check, self.end)) != 1:
            raise ValueError("expected one of human, resume, turn, check and end")
        return self


class RecordedRun(Struct, frozen=True):
    """An input, the turns and checks that followed from it, and how it ended (None: the recording breaks off)."""

    input: HumanLine | ResumeLine
    turns: list[TurnLine] = field(default_factory=list)
    checks: list[CheckLine] = field(default_factory=list)
    end: EndLine | None = None


class Cassette(Struct, frozen=True):
    header: Header
    runs: tuple[RecordedRun, ...]

    @property
    def turns(self) -> tuple[TurnLine, ...]:
        return tuple(turn for run in self.runs for turn in run.turns)


def read_cassette(path: Path) -> Cassette:
    """The cassette of a file. Raises `UsageError` that names the first wrong line."""
    name = printable(str(path))
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe or a device may never end
            raise UsageError(f"the cassette {name} cannot be read: it is not a file")
        if status.st_size > LARGEST:
            raise UsageError(f"the cassette {name} cannot be read: it is larger than {LARGEST >> 20} MiB")
        text = read_regular_text(path, most=LARGEST)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name} is not a cassette of this version: line {line}: not UTF-8") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"the cassette {name} cannot be read: {reason}") from error
    return parse_cassette(text, name)


def parse_cassette(text: str, name: str) -> Cassette:
    """Raises `UsageError`: one line that names the first wrong line."""
    number = 1
    try:
        first, *rest = text.removesuffix("\n").split("\n")
        header = Header.model_validate_json(first)
        runs: list[RecordedRun] = []
        for number, line in enumerate(rest, 2):  # noqa: B007 (named in the error below)
            _add(runs, Entry.model_validate_json(line))
    except ValueError as error:
        wrong = printable(_told(error) if isinstance(error, ValidationError) else str(error))[:300]
        raise UsageError(f"{name} is not a cassette of this version: line {number}: {wrong}") from error
    return Cassette(header, tuple(runs))


def _add(runs: list[RecordedRun], entry: Entry) -> None:
    """Raises ValueError for a line that belongs to no input, or to one that has ended."""
    if begins := entry.human or entry.resume:
        runs.append(RecordedRun(begins))
    elif not runs or runs[-1].end:
        kind = "a turn" if entry.turn else "a check" if entry.check else "an end"
        raise ValueError(f"{kind} without an input before it")
    elif entry.turn:
        runs[-1].turns.append(entry.turn)
    elif entry.check:
        runs[-1].checks.append(entry.check)
    else:
        runs[-1] = replace(runs[-1], end=entry.end)


def _told(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    if problem["type"] == "json_invalid":
        return "not JSON"
    if problem["loc"] == ("cassette",) and problem["type"] == "literal_error":
        return f"version {problem['input']}"
    where = ".".join(str(part) for part in problem["loc"])
    what = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {what}" if where else what


def dump_line(line: Line) -> str:
    """A line of the file."""
    values = {key: value for key, value in line.model_dump(mode="json", by_alias=True).items() if value is not None}
    return json.dumps(values, ensure_ascii=False) + "\n"
