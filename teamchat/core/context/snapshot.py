"""A conversation as JSON, version 1, with camelCase keys; times are written in milliseconds since 1970 (UTC).

A snapshot leaves out what means nothing outside its store: the turn and agent of a message, and whose place it took.
Other programs write snapshots too, so import asks for little: `version`, `messages`, each message's content, and one of
its speaker's id and name. Null is the same as a missing key, and unknown keys are ignored.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from teamchat.core.messages import ConversationMessage, Routing, Speaker, SpeakerType, now_ms, well_formed
from teamchat.core.store.message_log import free_number, next_number

MOST_MS = 2**63 - 1  # The most that a store holds.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # for programs that want it


class Renamed(Struct, frozen=True):
    """A message whose id was empty or taken, and the one that it got."""

    old: str
    new: str


class Conversation(Struct, frozen=True):
    """The content of a snapshot. Ids are unique; messages whose id was not are `renamed`."""

    messages: tuple[ConversationMessage, ...]
    team_task: str | None
    renamed: tuple[Renamed, ...] = ()


def to_json(messages: Iterable[ConversationMessage], team_task: str | None) -> dict[str, object]:
    """Write the snapshot as dicts, lists and strings for `json.dumps`."""
    models = (MessageModel.model_validate(message, from_attributes=True) for message in messages)
    return {
        "messages": [model.model_dump(mode="json", by_alias=True, exclude_none=True) for model in models],
        "teamTask": team_task,
        "timestamp": now_ms(),
        "version": 1,
    }


def from_json(snapshot: object) -> Conversation:
    """Read the conversation in a snapshot. Raises `ValueError` if it is not one of version 1.

    The first message with an id keeps it. A later one, and one without an id, gets the next free `msg-N`; a warning is
    logged. A message without a time has that of the snapshot, else the present. A time is a number of milliseconds or a
    text, of digits or in ISO 8601, which is UTC if it names no zone. A speaker without a type is `human`. If a
    speaker's id or name is missing, the other one is used for both.
    """
    try:
        model = SnapshotModel.model_validate(snapshot)
    except ValidationError as error:
        raise ValueError("Invalid snapshot format") from error
    default = now_ms() if model.timestamp is None else model.timestamp
    messages = [message.to_message(default) for message in model.messages]
    ids = own_ids(messages)
    renamed = tuple(Renamed(message.id, own) for message, own in zip(messages, ids, strict=True) if message.id != own)
    for renaming in renamed:
        _log.warning("[ContextManager] Message id %.80r is empty or taken, renamed to %s", renaming.old, renaming.new)
    with_ids = (replace(message, id=own) for message, own in zip(messages, ids, strict=True))
    return Conversation(tuple(with_ids), model.team_task, renamed)


def own_ids(messages: Sequence[ConversationMessage]) -> list[str]:
    """Give each message an id: its own, or the next free `msg-N` if that is empty or an earlier one has it."""
    taken, used, number = {message.id for message in messages}, {""}, next_number(messages)
    ids = []
    for message in messages:
        own = message.id
        if own in used:
            number = free_number(number, taken.__contains__)
            own = f"msg-{number}"
            taken.add(own)
        used.add(own)
        ids.append(own)
    return ids


def _well_formed(value: object) -> object:
    return well_formed(value) if isinstance(value, str) else value


def _milliseconds(value: object) -> object:
    """Convert a time to whole milliseconds since 1970; leave other values to be refused."""
    if isinstance(value, str):
        try:
            if value.isdecimal():
                return int(value)
            moment = datetime.fromisoformat(value)
        except ValueError:
            return value
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
    return math.floor(value) if isinstance(value, float) and math.isfinite(value) else value


Text = Annotated[str, BeforeValidator(_well_formed)]
Milliseconds = Annotated[int, Field(strict=True, ge=-MOST_MS, le=MOST_MS), BeforeValidator(_milliseconds)]


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_missing(cls, given: Any) -> Any:
        return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given


class SpeakerModel(_Model):
    role_id: Text = ""
    role_name: Text | None = None
    role_title: Text | None = None
    type: SpeakerType = "human"

    @model_validator(mode="after")
    def _is_somebody(self) -> SpeakerModel:
        if not (self.role_id or self.role_name):
            raise ValueError("a speaker without id and name")
        return self

    def to_speaker(self) -> Speaker:
        name = self.role_id if self.role_name is None else self.role_name
        return Speaker(self.role_id or name, name, role_title=self.role_title, type=self.type)


class RoutingModel(_Model):
    resolved_addressees: tuple[Text, ...] = ()
    raw_next_markers: tuple[Text, ...] = ()


class MessageModel(_Model):
    id: Text = ""
    content: Text
    speaker: SpeakerModel
    routing: RoutingModel = RoutingModel()
    timestamp: Milliseconds | None = None

    def to_message(self, default_timestamp: int) -> ConversationMessage:
        return ConversationMessage(
            id=self.id,
            content=self.content,
            speaker=self.speaker.to_speaker(),
            routing=Routing(**self.routing.model_dump()),
            timestamp=default_timestamp if self.timestamp is None else self.timestamp,
        )


class SnapshotModel(_Model):
    messages: tuple[MessageModel, ...]
    team_task: Text | None = None
    timestamp: Milliseconds | None = None
    version: Literal[1]
