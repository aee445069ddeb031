"""Messages, with speakers and addressees. Messages are values: a log stores them unedited."""

from __future__ import annotations

import time
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from teamchat.patterns import regex

MAX_TEAM_TASK_BYTES = 5 * 1024
SpeakerType = Literal["ai", "human", "system"]
Span = tuple[int, int]
"""The place of the first character of a part of a text, and of the one behind it."""


def now_ms() -> int:
    """Return the time in milliseconds since 1970 (UTC), the unit of every timestamp in messages and snapshots."""
    return time.time_ns() // 1_000_000


# Prompts are made of thousands of these values. They hold texts and no cycle, so the collector need not look at them.
class Speaker(Struct, frozen=True, gc=False):
    """The speaker of a message: `role_id` is the member's, `role_name` is shown in prompts."""

    role_id: str
    role_name: str
    type: SpeakerType
    role_title: str | None = None


class Routing(Struct, frozen=True, gc=False):
    """The addressees of a message by name (none means everybody), and in `raw_next_markers` the markers behind them."""

    resolved_addressees: tuple[str, ...] = ()
    raw_next_markers: tuple[str, ...] = ()


class NewMessage(Struct, frozen=True, gc=False):
    """A message without an id of a log yet."""

    content: str
    speaker: Speaker
    routing: Routing = Routing()
    timestamp: int = field(default_factory=now_ms)
    turn_id: int | None = None
    """The turn that it came from, if any."""
    stands_for: str | None = None
    """The member in whose place the speaker answered."""
    agent: str | None = None
    """The agent of the turn."""
    typed: int = 0
    """The number of characters at the beginning of a person's message that the person typed.

    The rest was piped in, or is a file.
    """
    pasted: tuple[Span, ...] = ()
    """The parts of typed text that came in several lines at once, and hold no markers."""

    def stored_as(self, message_id: str) -> ConversationMessage:
        return ConversationMessage(**{**asdict(self), "id": message_id})


class ConversationMessage(NewMessage, frozen=True, kw_only=True, gc=False):
    """A message of a log, which named it `msg-1`, `msg-2`, ...; an imported one may have another id."""

    id: str


class Said(Struct, frozen=True, gc=False):
    """A message, and its text without markers."""

    message: ConversationMessage
    text: str


_SURROGATE = regex("[\ud800-\udfff]")  # to encode a large text only to see would take as much memory again


def well_formed(text: str) -> str:
    """Make `text` fit for UTF-8: surrogate pairs become their character, lone surrogates become U+FFFD."""
    if text.isascii():
        return text
    if _SURROGATE.search(text):
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def name_of(message: ConversationMessage) -> str:
    """Name the speaker, and the member in whose place it answered."""
    name = message.speaker.role_name
    return f"{name} (for {message.stands_for})" if message.stands_for else name
