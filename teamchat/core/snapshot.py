"""A conversation as JSON, version 1 (seed 000, 2.4), in the seed's camelCase; times are milliseconds since 1970.

A snapshot leaves out `turn_id`, which means nothing outside the store it came from. Unknown keys are ignored on import.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from teamchat.core.messages import ConversationMessage, Routing, Speaker, SpeakerType, now_ms, well_formed


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a snapshot holds."""

    messages: tuple[ConversationMessage, ...]
    team_task: str | None


def to_json(messages: Iterable[ConversationMessage], team_task: str | None) -> dict[str, object]:
    """The snapshot as the dicts, lists and strings that `json.dumps` takes."""
    models = (MessageModel.model_validate(message, from_attributes=True) for message in messages)
    return {
        "messages": [model.model_dump(mode="json", by_alias=True, exclude_none=True) for model in models],
        "teamTask": team_task,
        "timestamp": now_ms(),
        "version": 1,
    }


def from_json(snapshot: object) -> Conversation:
    """The conversation in a snapshot. Raises `ValueError` when it is none of version 1, or an id occurs twice in it."""
    try:
        model = SnapshotModel.model_validate(snapshot)
    except ValidationError as error:
        raise ValueError("Invalid snapshot format") from error
    return Conversation(tuple(message.to_message(model.timestamp) for message in model.messages), model.team_task)


def _well_formed(value: object) -> object:
    return well_formed(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_well_formed)]


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class SpeakerModel(_Model):
    role_id: Text = Field(min_length=1)
    role_name: Text
    role_title: Text | None = None
    type: SpeakerType


class RoutingModel(_Model):
    resolved_addressees: tuple[Text, ...] = ()
    raw_next_markers: tuple[Text, ...] = ()


class MessageModel(_Model):
    id: Text = Field(min_length=1)
    content: Text
    speaker: SpeakerModel
    routing: RoutingModel | None = None
    timestamp: int | None = None

    def to_message(self, default_timestamp: int) -> ConversationMessage:
        return ConversationMessage(
            id=self.id,
            content=self.content,
            speaker=Speaker(**self.speaker.model_dump()),
            routing=Routing(**self.routing.model_dump()) if self.routing else Routing(),
            timestamp=default_timestamp if self.timestamp is None else self.timestamp,
        )


class SnapshotModel(_Model):
    messages: tuple[MessageModel, ...]
    team_task: Text | None
    timestamp: int
    version: Literal[1]

    @model_validator(mode="after")
    def _ids_are_unique(self) -> SnapshotModel:
        if len({message.id for message in self.messages}) < len(self.messages):
            raise ValueError("two messages have the same id")
        return self
