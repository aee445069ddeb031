"""The rows of messages, each made into a value in one step: a prompt may read ten thousand of them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated

from msgspec import DecodeError, Meta, Struct, ValidationError, convert
from msgspec.json import Decoder

from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Span, Speaker, SpeakerType
from teamchat.core.routing.markers import quoted_text
from teamchat.core.store.rows import Row
from teamchat.patterns import regex

LONGEST_QUOTED = 64 * 1024  # characters of a message whose quoted text is stored; of a longer one it is made each time
AS_SAID = 0  # stored for a quoted text that is the content
COLUMNS = """messages.id, messages.message, content, quoted, speaker_id, speaker_name, speaker_title, speaker_type,
    routing, turn, timestamp, stands_for, typed,
    COALESCE((SELECT parts FROM pastes WHERE pastes.message = messages.id), '[]') AS pasted, length(rest) AS more,
    (SELECT agent FROM turns WHERE turns.id = messages.turn) AS agent"""
"""What a `MessageRow` is made of, in the order of its fields."""

MOST_SHARED = 100  # speakers, and routings, that messages share: a conversation has few
_Routing = tuple[tuple[str, ...], tuple[str, ...]]
_routing = Decoder(_Routing).decode
_spans = Decoder(tuple[Span, ...]).decode
_PLACE = regex(r" - at `\$\[(\d+)\]`")


class MessageRow(Struct, frozen=True, array_like=True):
    """A row of `COLUMNS`. `more` is how many bytes of the content are not in it.

    msgspec checks and makes it at a tenth of the cost of reading each column by its name.
    """

    id: int
    message: str
    content: str
    quoted: str | int | None
    speaker_id: str
    speaker_name: str
    speaker_title: str | None
    speaker_type: SpeakerType
    routing: str
    turn: int | None
    timestamp: int
    stands_for: str | None
    typed: Annotated[int, Meta(ge=0)]
    pasted: str
    more: int
    agent: str | None

    def value(self, content: str | None = None) -> ConversationMessage:
        """The message with the content that the row has, or the whole of it."""
        return ConversationMessage(
            id=self.message,
            content=self.content if content is None else content,
            speaker=_a_speaker(self.speaker_id, self.speaker_name, self.speaker_title, self.speaker_type),
            routing=_a_routing(self.routing),
            timestamp=self.timestamp,
            turn_id=self.turn,
            stands_for=self.stands_for,
            agent=self.agent,
            typed=self.typed,
            pasted=spans(self.pasted),
        )


def message_row(row: Row) -> MessageRow:
    """A row of `COLUMNS`. Raises `ValueError` for what a healthy store cannot hold."""
    return _converted(tuple(row))


def a_message(row: Row) -> ConversationMessage:
    """A message with the head of its content, of a row of the table."""
    default = {"pasted": "[]", "more": 0}
    names = MessageRow.__struct_fields__
    return _converted(tuple(default[name] if name in default else row[name] for name in names)).value()


def _converted(columns: tuple[object, ...]) -> MessageRow:
    try:
        return convert(columns, MessageRow)
    except ValidationError as error:
        place = _PLACE.search(str(error))
        name = MessageRow.__struct_fields__[int(place[1])] if place else "a row"
        raise ValueError(f"{name} is wrong: {_PLACE.sub('', str(error))}") from error


@lru_cache(MOST_SHARED)
def _a_speaker(role_id: str, name: str, title: str | None, kind: SpeakerType) -> Speaker:
    return Speaker(role_id, name, role_title=title, type=kind)


@lru_cache(MOST_SHARED)
def _a_routing(stored: str) -> Routing:
    try:
        addressees, markers = _routing(stored)
    except DecodeError:  # half of a surrogate pair, which json writes and reads
        addressees, markers = convert(json.loads(stored), _Routing)
    return Routing(addressees, markers)


def spans(stored: str) -> tuple[Span, ...]:
    """The stored parts of a text. Raises `ValueError` for what a healthy store cannot hold."""
    try:
        return () if stored == "[]" else _spans(stored)
    except DecodeError as error:
        raise ValueError(f"pasted is wrong: {error}") from error


def a_paste(row: Row) -> tuple[Span, ...]:
    return spans(row.text("parts"))


def stored_spans(pasted: tuple[Span, ...]) -> str:
    return json.dumps(pasted) if pasted else "[]"


@lru_cache(MOST_SHARED)
def stored_routing(routing: Routing) -> str:
    return json.dumps([routing.resolved_addressees, routing.raw_next_markers])


def stored_quote(message: NewMessage) -> str | int | None:
    """What is stored of the text that prompts quote: `AS_SAID`, a text that differs from the content, or None."""
    content = message.content
    if len(content) > LONGEST_QUOTED:
        return None
    # of most messages of people nothing is taken out, and to see so here takes a tenth of the time
    if message.speaker.type == "human" and "[" not in content and content == content.strip():
        return AS_SAID
    text = quoted_text(message)
    return AS_SAID if text == content else text


def quote_of(stored: MessageRow, message: ConversationMessage) -> str:
    """The text that prompts quote. It is made here for a long message, and for one of an older version."""
    if isinstance(stored.quoted, str):
        return stored.quoted
    return quoted_text(message) if stored.quoted is None else message.content
