"""Secrets that must not cross from one vendor to another by way of a prompt.

What an agent said is its own vendor's already, and what a person said is that of the vendors it was addressed to. For
every other vendor a prompt shows it without its secrets. The store keeps what was said.
"""

from __future__ import annotations

from collections.abc import Iterable

from teamchat.core.messages import ConversationMessage
from teamchat.core.redact import redact_shapes
from teamchat.core.team import Member, Team


class Crossing:
    """Quotes messages to one member, and remembers how many secrets it took out of each.

    A vendor is an agent of the team file: two programs that a team names apart are two. Who spoke was of the vendor of
    that turn, whatever its member's is now. Where the team does not `redact`, everything is quoted as it is.
    """

    def __init__(self, team: Team, receiver: Member) -> None:
        self._redact = team.redact
        self._vendors = {member.name: team.agent_of(member).name for member in team.ai_members}
        self._vendor = self._vendors[receiver.name]
        self._taken: dict[str, int] = {}

    def __call__(self, message: ConversationMessage, text: str) -> str:
        """The text of the message as the member is told it."""
        if not self._redact or self._vendor in self._knowing(message):
            return text
        text, self._taken[message.id] = redact_shapes(text)
        return text

    def count(self, message_ids: Iterable[str]) -> int:
        """How many secrets were taken out of these messages."""
        return sum(self._taken.get(message_id, 0) for message_id in set(message_ids))

    def _knowing(self, message: ConversationMessage) -> set[str | None]:
        """The vendors that have the whole message."""
        if message.speaker.type == "human":
            return {self._vendors.get(name) for name in message.routing.resolved_addressees}
        return {message.agent}
