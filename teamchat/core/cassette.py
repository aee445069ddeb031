"""A cassette: a recorded conversation as JSON lines (docs/cassettes.md).

The first line is the header with the team. Then come, in the order they happened, lines with one key each: `human` (an
input), `turn` (what crossed the process boundary) and `end` (how that input's run ended, and what it stored).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from teamchat.core.errors import UsageError
from teamchat.core.messages import ConversationMessage

Stream = Literal["out", "err", "out64", "err64"]


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Header(Line):
    """`label` says where the answers came from, such as "scripted model"."""

    cassette: Literal[1] = 1
    team: dict[str, Any]
    label: str | None = None


class HumanLine(Line):
    text: str
    speaker: str | None = None
    to: str | None = None


class TurnLine(Line):
    """One turn. `output` is `[seconds, "out" or "err", text]` per line of output, with its line end.

    A line that is no UTF-8 stands in base64, as "out64" or "err64". `existing` are the `@paths` that existed.
    """

    member: str
    agent: str
    system: str | None
    stdin: str
    argv: list[str]
    env: list[str]
    existing: list[str] = []
    output: list[tuple[float, Stream, str]]
    exit_code: int
    seconds: float
    left: list[str] = []
    usage: dict[str, Any] | None = None


class Said(Line):
    """A stored message: who said what to whom."""

    speaker: str
    to: list[str]
    text: str

    @classmethod
    def of(cls, message: ConversationMessage) -> Said:
        return cls(
            speaker=message.speaker.role_name, to=list(message.routing.resolved_addressees), text=message.content
        )


class EndLine(Line):
    """`said` is every message of the conversation since the input, the input included."""

    code: int
    said: list[Said]


class Entry(Line):
    """A line after the header; exactly one of its keys is there."""

    human: HumanLine | None = None
    turn: TurnLine | None = None
    end: EndLine | None = None


class Cassette(Line):
    header: Header
    entries: tuple[Entry, ...]

    @property
    def turns(self) -> tuple[TurnLine, ...]:
        return tuple(entry.turn for entry in self.entries if entry.turn)

    @property
    def runs(self) -> Iterator[tuple[HumanLine, EndLine | None]]:
        """Each input with how its run ended (None: the recording broke off)."""
        for index, entry in enumerate(self.entries):
            if entry.human:
                rest = (later for later in self.entries[index + 1 :] if later.human or later.end)
                following = next(rest, None)
                yield entry.human, following.end if following else None


def read_cassette(path: Path) -> Cassette:
    """The cassette of a file. Raises `UsageError` that names the line which is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"the cassette {path} can not be read: {reason}") from error
    return parse_cassette(text, str(path))


def parse_cassette(text: str, name: str) -> Cassette:
    number = 1
    try:
        first, *rest = text.rstrip("\n").split("\n")
        header = Header.model_validate_json(first)
        entries = []
        for number, line in enumerate(rest, 2):  # noqa: B007 (named in the error below)
            entries.append(Entry.model_validate(json.loads(line)))
    except (ValidationError, ValueError) as error:
        wrong = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "not JSON"
        raise UsageError(f"{name} is no cassette of this version: line {number}: {wrong}") from error
    return Cassette(header=header, entries=tuple(entries))


def dump_line(line: Line) -> str:
    """A line of the file."""
    values = {key: value for key, value in line.model_dump(mode="python").items() if value is not None}
    return json.dumps(values, ensure_ascii=False) + "\n"
