"""A conversation to keep outside its store: what was said and, of each turn, what its member did and changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import is_
from typing import Annotated, Any, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError, model_validator

from teamchat.core.checked_structs import Checked
from teamchat.core.context.snapshot import Milliseconds
from teamchat.core.engine.processes.words import Result
from teamchat.core.messages import ConversationMessage, Routing, Speaker, SpeakerType
from teamchat.core.routing.markers import LONGEST_TITLE
from teamchat.core.store.checks import CheckRowStatus
from teamchat.core.store.rows import LATEST
from teamchat.core.store.turns import TurnStatus
from teamchat.core.store.usage import Spent
from teamchat.runners.base import Access
from teamchat.runners.untrusted.file_changes import Kind

Count = Annotated[int, Field(ge=0, le=10**15)]
Seconds = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
StepKind = Literal["said", "tool", "denied", "question", "retry", "note", "error"]


class Step(Struct, frozen=True):
    """Something that a member did `at` so many seconds into its turn.

    `name` is the tool's, of a call that was made or denied. `output` and `failed` are the result of a call.
    """

    at: Seconds
    kind: StepKind
    text: str
    name: str = ""
    output: str = ""
    failed: bool = False


class ChangedFile(Struct, frozen=True):
    """A file that changed during a turn; `what` is None where only the CLI's own report is known.

    `added` and `removed` count lines; they are None where that is unknown.
    """

    path: str
    what: Kind | None = None
    added: Count | None = None
    removed: Count | None = None


class MemberTurn(Struct, frozen=True):
    """A turn of a member. None is unknown, never zero.

    `steps` leaves out what the member said in its reply, or in `text`, which it had written when it failed.
    `more_files` counts changed files beyond those in `files`. `host` is where it ran, if that was another machine.
    `patch` is what changed in the files, and `bounded` whether the access was enforced: both are for a reader, and the
    JSON form is without them.
    """

    number: Count
    member: str
    agent: str
    access: Access
    began_ms: Count
    status: TurnStatus
    model: str | None = None
    seconds: Seconds | None = None
    failure: str | None = None
    text: str = ""
    steps: tuple[Step, ...] = ()
    files: tuple[ChangedFile, ...] = ()
    more_files: Count = 0
    input_tokens: Count | None = None
    cached_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Annotated[float, Field(ge=0, le=10**15, allow_inf_nan=False)] | None = None
    undone: bool = False
    host: str | None = None
    patch: str = ""
    bounded: bool = True


class RanCheck(Struct, frozen=True):
    """A check that teamchat ran. One that a person typed has no name. None is unknown.

    `output` is the beginning of what it wrote, and `output_bytes` is how much that was.
    """

    number: Count
    command: str
    status: CheckRowStatus
    began_ms: Count
    name: str = ""
    reason: str = ""
    exit_code: int | None = None
    seconds: Seconds | None = None
    by_hand: bool = False
    output: str = ""
    output_bytes: Count = 0
    files: tuple[ChangedFile, ...] = ()
    more_files: Count = 0
    undone: bool = False


class Said(Struct, frozen=True):
    """A message, and the turn that it came from if that is known. `images` are the names of its images.

    `cleared`: prompts began after it. `words` is the reply to a process with its JSON in words; empty if it has none.
    """

    message: ConversationMessage
    turn: MemberTurn | None = None
    images: tuple[str, ...] = ()
    undone: bool = False
    cleared: bool = False
    words: str = ""

    @property
    def shown(self) -> str:
        """What a person reads of it."""
        return self.words or self.message.content

    @property
    def state(self) -> tuple[str, ...]:
        """What became of it, in words for a reader."""
        told = ("undone", self.undone), ("cleared: prompts begin after it", self.cleared)
        return tuple(words for words, holds in told if holds)


Entry = Said | MemberTurn | RanCheck
"""A message, a turn that gave none (one that failed, or one that is not over), or a check."""


def mapped(value: Any, change: Callable[[str, str], str], name: str = "") -> Any:
    """The value with every text in it changed. `change` gets the name of its field and the text.

    What holds no changed text is the same object.
    """
    if isinstance(value, str):
        return change(name, value)
    if isinstance(value, tuple):
        items = tuple(mapped(item, change, name) for item in value)
        return value if all(map(is_, items, value)) else items
    if not isinstance(value, Struct):
        return value
    changed = {}
    for each in value.__struct_fields__:
        held = getattr(value, each)
        if isinstance(held, str | tuple | Struct) and (made := mapped(held, change, each)) is not held:
            changed[each] = made
    return replace(value, **changed) if changed else value


class Transcript(Struct, frozen=True):
    """The entries are in the order of the conversation. `began_ms` is in milliseconds since 1970 (UTC).

    `title` is the one that a person gave it. `result` is what the process came to with which the conversation ended,
    `merges` are the commands that bring in what members have changed in their worktrees, and `spent` is what all turns
    took.
    """

    session: str
    team: str
    task: str | None
    began_ms: int
    entries: tuple[Entry, ...] = ()
    title: str | None = None
    result: Result | None = None
    merges: tuple[str, ...] = ()
    spent: Spent | None = None

    @property
    def without_undone(self) -> Transcript:
        return replace(self, entries=tuple(entry for entry in self.entries if not entry.undone))

    @property
    def said(self) -> Iterator[Said]:
        return (entry for entry in self.entries if isinstance(entry, Said))

    @property
    def speakers(self) -> tuple[str, ...]:
        """The names of all who spoke or tried to, in the order of their first entry."""
        spoke = (entry for entry in self.entries if not isinstance(entry, RanCheck))
        names = (entry.message.speaker.role_name if isinstance(entry, Said) else entry.member for entry in spoke)
        return tuple(dict.fromkeys(names))


# The JSON form of a transcript, version 1 (docs/howto/export.md): one object, or one a line with the head first.
#
# What is exported, imported and exported again is the same.

VERSION = 1
LONGEST_NAME = 255  # characters of a team's name
HEAD, MESSAGE, TURN, CHECK = "transcript", "message", "turn", "check"
_Version = Literal[1]
_Turn = Annotated[MemberTurn, Checked()]
_Check = Annotated[RanCheck, Checked()]
LATEST_MS = int(LATEST * 1000)


def head_of(transcript: Transcript) -> dict[str, Any]:
    """What the first line, or the object itself, says of the conversation."""
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
    """The transcript as the dicts, lists and strings that `json.dumps` takes."""
    return {**head_of(transcript), "entries": [entry_fields(entry) for entry in transcript.entries]}


def to_lines(transcript: Transcript) -> Iterator[dict[str, Any]]:
    """The same as one object a line."""
    yield {"type": HEAD, **head_of(transcript)}
    yield from map(entry_fields, transcript.entries)


def from_json(value: object) -> Transcript:
    """The transcript in an object that `to_json` made. Raises `ValueError`, which says where it is wrong."""
    try:
        model = _Transcript.model_validate(value)
    except ValidationError as error:
        raise ValueError(_first(error)) from None
    entries = tuple(entry.value() if isinstance(entry, _Message) else entry for entry in model.entries)
    return Transcript(model.session, model.team, model.task, model.began_ms, entries, model.title)


def from_lines(values: Iterable[object]) -> Transcript:
    """The transcript in the objects that `to_lines` made. Raises `ValueError`."""
    first, *entries = values
    return from_json({**(first if isinstance(first, dict) else {}), "entries": entries})


def turn_from_json(text: str) -> MemberTurn | RanCheck:
    """The turn of `turn_fields`, or the check of `entry_fields`, as JSON. Raises `ValueError`."""
    value = json.loads(text)
    if _type(value) == CHECK:
        return _checks().validate_python(value)
    return _turns().validate_python(value)


@cache
def _turns() -> TypeAdapter[MemberTurn]:
    return TypeAdapter(_Turn)


@cache
def _checks() -> TypeAdapter[RanCheck]:
    return TypeAdapter(_Check)


def _first(error: ValidationError) -> str:
    """The first thing that is wrong: where it is, and why."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in found["loc"] if not str(part).startswith(("function-", "_")))
    return f"{where}: {found['msg']}" if where else str(found["msg"])


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

    def value(self) -> Said:
        message = ConversationMessage(
            id=self.id,
            content=self.text,
            speaker=Speaker(self.speaker_id or self.name, self.name, role_title=self.title, type=self.kind),
            routing=Routing(self.to, self.markers),
            timestamp=self.time_ms,
            stands_for=self.stands_for,
        )
        return Said(message, self.turn, self.images, self.undone, self.cleared)


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
