"""Storing what was said: a person's message or a member's reply, with what it asks for and what it notes to do.

All of it is part of the caller's transaction, and tells the engine what has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from teamchat.core.context.context_manager import ContextManager
from teamchat.core.conversation.addressing import Addressed, AddressedReply, address_reply
from teamchat.core.conversation.loop_detection import says_nothing_new
from teamchat.core.engine.events import HumanSpoke, TurnEnded
from teamchat.core.engine.state import Route
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.routing.requests import RouteRequest
from teamchat.core.routing.todos import Noted
from teamchat.core.store.database import Database
from teamchat.core.store.image_values import Image
from teamchat.core.store.images import put_images
from teamchat.core.store.todos import note_todos
from teamchat.core.store.turns import Turn
from teamchat.core.team.team import Member, Team
from teamchat.core.turn.events import ConversationEvent, Warned

LOOK_BACK = 24  # messages in which a speaker's own last reply is looked for
Event = TypeVar("Event")


@dataclass(frozen=True, slots=True)
class Posted(Generic[Event]):
    """A stored message, what it is to the engine, and what it noted to do."""

    message: ConversationMessage
    event: Event
    noted: Noted


@dataclass(frozen=True, slots=True)
class Parsed:
    """A member's reply, read: what it asks for, and whether it is `new`."""

    member: Member
    text: str
    asks: AddressedReply
    new: bool


@dataclass(frozen=True, slots=True)
class Posting:
    """Stores what is said in one session; `emit` is told of what could not be done as it was written.

    `now` is the time in seconds.
    """

    team: Team
    db: Database
    session: int
    manager: ContextManager
    emit: Callable[[ConversationEvent], None]
    now: Callable[[], float]

    def person(self, addressed: Addressed, images: Sequence[Image] = (), typed: int = 0) -> Posted[HumanSpoke]:
        """Store a person's message with its images, and the task that it sets; the first `typed` were typed."""
        message = self.manager.add_message(
            NewMessage(
                addressed.text,
                Speaker(addressed.speaker.name, addressed.speaker.name, addressed.speaker.title, type="human"),
                Routing(addressed.names, addressed.markers),
                typed=typed,
            )
        )
        put_images(self.db, self.session, message.id, images)
        if addressed.task is not None:
            self.manager.set_team_task(addressed.task)
        noted = note_todos(self.db, self.session, addressed.todos, addressed.speaker.name, message.id)
        spoke = HumanSpoke(
            self.now(),
            message.id,
            addressed.speaker.name,
            addressed.requests,
            addressed.drops,
            wordless=addressed.wordless,
        )
        return Posted(message, spoke, noted)

    def hear(self, *replies: tuple[Member, str]) -> list[Parsed]:
        """Read replies that are to be stored one after the other, and tell what is wrong with them.

        That takes seconds for a large one, or longer where nobody reads what is told: no transaction may wait for it.
        """
        heard: list[Parsed] = []
        said = self._said_since()
        for member, text in replies:
            asks = address_reply(text, self.team, member)
            for problem in asks.problems:
                self.emit(Warned(problem))
            new = not says_nothing_new(text, said, member.name, self.team.limits.similarity)
            heard.append(Parsed(member, text, asks, new))
            said.insert(0, (member.name, text))
        return heard

    def reply(self, heard: Parsed, turn: Turn, route: Route, *, asked: bool = False) -> Posted[TurnEnded]:
        """Store a member's reply to the message of `route`.

        Where its agent `asked` its user something, the person whom the turn serves is called before all others.
        """
        member = heard.member
        asks = with_first_call(self._served(route), heard.asks) if asked else heard.asks
        message = self.manager.add_message(
            NewMessage(
                heard.text,
                Speaker(member.name, member.name, member.title, type="ai"),
                Routing(asks.names, asks.markers),
                turn_id=turn.id,
                agent=turn.agent,
                stands_for=None if member.name == route.target else route.target,
            )
        )
        ended = TurnEnded(
            self.now(), route.number, message.id, asks.requests, asks.drops, speaker=member.name, new=heard.new
        )
        return Posted(message, ended, note_todos(self.db, self.session, asks.todos, member.name, message.id))

    def _served(self, route: Route) -> str:
        """The person whose message the route serves, or whoever is there in that person's place."""
        asking = self.manager.get_message(route.request).speaker.role_name
        people = [human.name for human in self.team.humans]
        return asking if asking in people else people[0]

    def _said_since(self) -> list[tuple[str, str]]:
        """What agents said since the last human message, newest first."""
        said: list[tuple[str, str]] = []
        for message in reversed(self.manager.get_latest_messages(LOOK_BACK)):
            if message.speaker.type == "human":
                break
            said.append((message.speaker.role_name, message.content))
        return said


def with_first_call(name: str, asks: AddressedReply) -> AddressedReply:
    """The same with a call of `name` before all others."""
    others = (request for request in asks.requests if request.target != name)
    return replace(asks, requests=(RouteRequest(name), *others))
