"""The JSON form of a transcript, version 1 (docs/howto/export.md): one object, or one a line with the head first.

An export of an imported export is equal to the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, Literal

from msgspec import to_builtins
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError, model_validator

from teamchat.core.checked_structs import CheckedStruct
from teamchat.core.context.snapshot import Milliseconds
from teamchat.core.messages import ConversationMessage, Routing, Speaker, SpeakerType
from teamchat.core.routing.titles import LONGEST_TITLE
from teamchat.core.store.rows import LATEST
from teamchat.core.transcripts.transcript import Entry, MemberTurn, RanCheck, SaidEntry, Transcript

VERSION = 1
LONGEST_NAME = 255  # characters of a team's name
HEAD, MESSAGE, TURN, CHECK = "transcript", "message", "turn", "check"
_Version = Literal[1]
_Turn = Annotated[MemberTurn, CheckedStruct()]
_Check = Annotated[RanCheck, CheckedStruct()]
LATEST_MS = int(LATEST * 1000)


def head_of(transcript: Transcript) -> dict[str, Any]:
    """Describe the conversation, as the first line or the object itself does."""
    return {
        "transcript": VERSION,
        "session": transcript.session,
        "title": transcript.title,
        "team": transcript.team,
        "task": transcript.task,
        "began_ms": transcript.began_ms,
    }


def entry_fields(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, MemberTurn):
        return {"type": TURN, **turn_fields(entry)}
    if isinstance(entry, RanCheck):
        return {"type": CHECK, **to_builtins(entry)}
    message, speaker = entry.message, entry.message.speaker
    return {
        "type": MESSAGE,
        "id": message.id,
        "from": speaker.role_name,
        "speaker_id": speaker.role_id,
        "title": speaker.role_title,
        "kind": speaker.type,
        "stands_for": message.stands_for,
        "to": list(message.routing.resolved_addressees),
        "markers": list(message.routing.raw_next_markers),
        "text": message.content,
        "time_ms": message.timestamp,
        "images": list(entry.images),
        "undone": entry.undone,
        **({"cleared": True} if entry.cleared else {}),
        "turn": entry.turn and turn_fields(entry.turn),
    }


def turn_fields(turn: MemberTurn) -> dict[str, Any]:
    fields: dict[str, Any] = to_builtins(turn)
    del fields["patch"], fields["bounded"]
    return fields


def to_json(transcript: Transcript) -> dict[str, Any]:
    """Convert the transcript to the dicts, lists and strings that `json.dumps` takes; its entries are last."""
    return {**head_of(transcript), "entries": [entry_fields(entry) for entry in transcript.entries]}


def to_lines(transcript: Transcript) -> Iterator[dict[str, Any]]:
    """Convert the transcript to one object a line, as `to_json` does to one."""
    yield {"type": HEAD, **head_of(transcript)}
    yield from map(entry_fields, transcript.entries)


def from_json(value: object) -> Transcript:
    """Read the transcript in an object of `to_json`. Raises `ValueError`, which says where it is wrong."""
    try:
        model = _Transcript.model_validate(value)
    except ValidationError as error:
        raise ValueError(_first(error)) from None
    entries = tuple(entry.value() if isinstance(entry, _Message) else entry for entry in model.entries)
    return Transcript(model.session, model.team, model.task, model.began_ms, entries, model.title)


def from_lines(values: Iterable[object]) -> Transcript:
    """Read the transcript in the objects of `to_lines`. Raises `ValueError`."""
    first, *entries = values
    return from_json({**(first if isinstance(first, dict) else {}), "entries": entries})


def turn_from_json(text: str) -> MemberTurn | RanCheck:
    """Read the turn of `turn_fields`, or the check of `entry_fields`, as JSON. Raises `ValueError`."""
    value = json.loads(text)
    made: MemberTurn | RanCheck = _adapter(_Check if _type(value) == CHECK else _Turn).validate_python(value)
    return made


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _first(error: ValidationError) -> str:
    """Name the first mistake and its place."""
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in problem["loc"] if not str(part).startswith(("function-", "_")))
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Message(_Model):
    id: str = ""
    name: Annotated[str, Field(alias="from")] = ""
    speaker_id: str = ""
    title: str | None = None
    kind: SpeakerType
    stands_for: str | None = None
    to: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    text: str
    time_ms: Milliseconds
    images: tuple[str, ...] = ()
    undone: bool = False
    cleared: bool = False
    turn: _Turn | None = None

    @model_validator(mode="after")
    def _is_said_by_somebody(self) -> _Message:
        if not (self.name or self.speaker_id):
            raise ValueError("a speaker without id and name")
        return self

    def value(self) -> SaidEntry:
        message = ConversationMessage(
            id=self.id,
            content=self.text,
            speaker=Speaker(self.speaker_id or self.name, self.name, role_title=self.title, type=self.kind),
            routing=Routing(self.to, self.markers),
            timestamp=self.time_ms,
            stands_for=self.stands_for,
        )
        return SaidEntry(message, self.turn, self.images, self.undone, self.cleared)


def _type(entry: object) -> object:
    return entry.get("type") if isinstance(entry, dict) else None


_Entry = Annotated[
    Annotated[_Message, Tag(MESSAGE)] | Annotated[_Turn, Tag(TURN)] | Annotated[_Check, Tag(CHECK)],
    Discriminator(_type),
]


class _Transcript(_Model):
    transcript: _Version
    session: str
    title: Annotated[str, Field(max_length=LONGEST_TITLE)] | None = None
    team: Annotated[str, Field(max_length=LONGEST_NAME)]
    task: str | None = None
    began_ms: Annotated[int, Field(ge=0, le=LATEST_MS)]
    entries: list[_Entry]
