"""Quotes texts of others in a prompt: inside a fence, and without secrets of another vendor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from msgspec.structs import replace

from teamchat.assemblers.parts import AssemblerInput
from teamchat.assemblers.truncation import MOST_BYTES, byte_length
from teamchat.core.context.history import Quote
from teamchat.core.messages import ConversationMessage
from teamchat.core.team import wording
from teamchat.core.team.team import Member, Team
from teamchat.core.text.redact import redact_shapes


class Crossing:
    """Quotes messages to one member and counts the secrets that it removes from each.

    A vendor is an agent of the team file: two entries are two vendors. A speaker has the vendor that its turn had,
    whatever its member has now. If the team does not `redact`, everything is quoted unchanged.
    """

    def __init__(self, team: Team, receiver: Member) -> None:
        self._redact = team.redact
        self._vendors = {member.name: team.agent_of(member).name for member in team.ai_members}
        self._vendor = self._vendors[receiver.name]
        self._taken: dict[str, int] = {}

    def __call__(self, message: ConversationMessage, text: str) -> str:
        """The text of the message as the member gets it."""
        if not self._redact or self._is_known(message):
            return text
        text, self._taken[message.id] = redact_shapes(text)
        return text

    def count(self, message_ids: Iterable[str]) -> int:
        """How many secrets were removed from these messages."""
        return sum(self._taken.get(message_id, 0) for message_id in set(message_ids))

    def _is_known(self, message: ConversationMessage) -> bool:
        """Whether the receiver's vendor already has the whole message."""
        if message.speaker.type == "human":
            return any(self._vendors.get(name) == self._vendor for name in message.routing.resolved_addressees)
        return message.agent == self._vendor


class Fitting:
    """Quotes the messages of a prompt, the newest first, while there may be room for them.

    A message that is sure to be left out becomes stars: as many as it has bytes, since the budget counts them. Nobody
    looks for secrets in it, which would take long. `room` and `longest`, of one message, are in bytes.
    """

    def __init__(self, quote: Quote, room: int, longest: int) -> None:
        self._quote, self._room, self._longest = quote, room + SLACK, max(longest - SLACK, 0)

    def __call__(self, message: ConversationMessage, text: str) -> str:
        """The text of the message, or as many stars as it has bytes."""
        # the middle of other texts may be cut at another byte
        if self._room < 0 and (text.isascii() or len(text) * MOST_BYTES <= self._longest):
            return "*" * byte_length(text)
        quoted = self._quote(message, text)
        self._room -= min(len(quoted), self._longest)
        return quoted


SLACK = 64  # bytes: more than separators take, or a cut leaves of its room
LENGTH = 8  # hexadecimal digits


def fence_code(key: str, message_id: str, texts: Iterable[str]) -> str:
    """The code of a prompt whose newest message is `message_id`. It is the same each time the prompt is built.

    `key` is the conversation's secret. None of the `texts` contains the code, in either case of letters.
    """
    texts = list(texts)  # not joined: what is beyond ASCII is lowered slowly, and would make all of it slow
    codes = (_code(key, f"{message_id} {number}") for number in count())
    return next(code for code in codes if not any(code in text.lower() for text in texts))


def _code(key: str, what: str) -> str:
    import hmac  # which loads OpenSSL

    return hmac.new(key.encode(), what.encode(), "sha256").hexdigest()[:LENGTH]


def fence_quotes(given: AssemblerInput, key: str, message_id: str) -> AssemblerInput:
    """The same parts with a fence around what somebody said. The turn note, if there is one, ends with its code."""
    code = fence_code(key, message_id, _texts_of(given))
    note = given.turn_note and given.turn_note + wording.CODE.format(code=code)
    return replace(given, fence=code, turn_note=note)


def _texts_of(given: AssemblerInput) -> Iterator[str]:
    """All texts of a prompt. None of them may contain the code of its fence."""
    yield from {name for message in given.context_messages for name in (message.from_, message.to or "")}
    yield from (message.content for message in given.context_messages)
    others = (given.current_message, given.request, given.team_task, given.turn_note)
    system = (given.system_instruction, given.instruction_file_text, *given.contexts.values())
    yield from (text for text in (*others, *system) if text)
