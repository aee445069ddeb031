"""A cassette: a recorded conversation as JSON lines (docs/cassettes.md).

The first line is the header with the team. Then come, in the order they happened, lines with one key each: `human` (an
input), `turn` (what crossed the process boundary) and `end` (how that input's run ended, what it stored and printed).
"""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from teamchat.core.errors import UsageError
from teamchat.core.printable import printable
from teamchat.core.team import Like
from teamchat.core.team.recorded import RecordedTeam
from teamchat.runners.agent_events import FailureKind

LARGEST = 1 << 30  # bytes; a replay holds all of it in memory
Stream = Literal["out", "err", "out64", "err64"]
Seconds = Annotated[float, Field(ge=0)]
ONE_KEY = {"minProperties": 1, "maxProperties": 1}


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Header(Line):
    """`label` says where the answers came from, such as "scripted model".

    `fence_key` is what the codes of the prompts were made of, for the replay to make the same ones.
    """

    cassette: Literal[1]
    team: RecordedTeam
    label: str | None = None
    fence_key: str | None = Field(None, pattern=r"^[0-9a-f]*$")


class HumanLine(Line):
    """What a person said. `cooling` are the agents that were cooling down after a rate limit."""

    text: str
    speaker: str | None = None
    to: str | None = None
    cooling: list[str] = []


class CutLine(Line):
    """What ended a turn before its own end: a clock, a person, a login that was refused."""

    at: Seconds
    kind: FailureKind
    reason: str
    hint: str | None = None


class ErrorLine(Line):
    """Why a turn was not started: no such program, access that is refused, no such folder, or the system's own word."""

    kind: Literal["missing", "refused", "usage", "spawn"]
    text: str
    hint: str | None = None


class ToldLine(Line):
    """What a turn was told of files and lessons, by the layer's name; `answers` is the message that it answers."""

    answers: str
    layers: dict[Literal["experience__context", "knowledge__context"], str]


class TurnLine(Line):
    """One turn. `output` is `[seconds, "out" or "err", text]` per line of output, with its line end.

    A line that is no UTF-8 stands in base64, as "out64" or "err64". `existing` are the `@paths` that existed, `cwd` is
    the folder of the agent where its output names it. `exit_code` is null where `error` says why it was not started.
    """

    member: str
    agent: Like
    system: str | None
    stdin: str
    argv: list[str] = []
    env: list[str] = []
    cwd: str | None = None
    existing: list[str] = []
    told: ToldLine | None = None
    output: list[tuple[Seconds, Stream, str]] = []
    cut: CutLine | None = None
    exit_code: int | None = None
    over_limit: int | None = None
    seconds: Seconds = 0.0
    left: list[str] = []
    error: ErrorLine | None = None

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


class StoredMessage(Line):
    """A message: who said what to whom. `turn` is the number of the turn that it is the reply of."""

    id: str
    speaker: str
    kind: Literal["ai", "human", "system"]
    to: list[str]
    markers: list[str]
    text: str
    turn: int | None = None
    stands_for: str | None = None


class StoredTurn(Line):
    """A turn with those facts of its receipt that are the same on every machine, and its events by their names."""

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


class EndLine(Line):
    """How the run of an input ended: what it stored, and what it printed, without what time and machine make of it.

    `shown` are the lines of `--json --stream`, without text as it comes; `printed` those of a piped run.
    """

    code: int
    messages: list[StoredMessage]
    turns: list[StoredTurn]
    routes: list[StoredRoute]
    shown: list[dict[str, Any]]
    printed: list[str]


class Entry(Line):
    """A line after the header; exactly one of its keys is there."""

    model_config = ConfigDict(json_schema_extra={**ONE_KEY})

    human: HumanLine | None = None
    turn: TurnLine | None = None
    end: EndLine | None = None

    @model_validator(mode="after")
    def _one(self) -> Entry:
        if sum(value is not None for value in (self.human, self.turn, self.end)) != 1:
            raise ValueError("expected one of human, turn and end")
        return self


class Cassette(Line):
    header: Header
    entries: tuple[Entry, ...]

    @property
    def turns(self) -> tuple[TurnLine, ...]:
        return tuple(entry.turn for entry in self.entries if entry.turn)

    @property
    def runs(self) -> Iterator[tuple[HumanLine, EndLine | None]]:
        """Each input with how its run ended (None: the recording broke off)."""
        human: HumanLine | None = None
        for entry in self.entries:
            if human and (entry.human or entry.end):
                yield human, entry.end
                human = None
            human = entry.human or human
        if human:
            yield human, None


def read_cassette(path: Path) -> Cassette:
    """The cassette of a file. Raises `UsageError` that names the line which is none."""
    name = printable(str(path))
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe or a device would never end
            raise UsageError(f"the cassette {name} can not be read: it is not a file")
        if found.st_size > LARGEST:
            raise UsageError(f"the cassette {name} can not be read: it is larger than {LARGEST >> 20} MiB")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name} is no cassette of this version: line {line}: not UTF-8") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"the cassette {name} can not be read: {reason}") from error
    return parse_cassette(text, name)


def parse_cassette(text: str, name: str) -> Cassette:
    """Raises `UsageError`: one line that names the first that is wrong."""
    number = 1
    try:
        first, *rest = text.removesuffix("\n").split("\n")
        header = Header.model_validate_json(first)
        entries = []
        for number, line in enumerate(rest, 2):  # noqa: B007 (named in the error below)
            entries.append(Entry.model_validate_json(line))
    except ValidationError as error:
        wrong = printable(_told(error))[:300]
        raise UsageError(f"{name} is no cassette of this version: line {number}: {wrong}") from error
    return Cassette(header=header, entries=tuple(entries))


def _told(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    if found["type"] == "json_invalid":
        return "not JSON"
    where = ".".join(str(part) for part in found["loc"])
    return f"{where}: {found['msg']}" if where else found["msg"]


def dump_line(line: Line) -> str:
    """A line of the file."""
    values = {key: value for key, value in line.model_dump(mode="json").items() if value is not None}
    return json.dumps(values, ensure_ascii=False) + "\n"
