"""Storing what was said: a person's message or a member's reply, with what it asks for and what it notes to do.

All of it is part of the caller's transaction, and tells the engine what has happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from teamchat.core.context_manager import TASK_CUT, ContextManager
from teamchat.core.engine.events import HumanSpoke, TurnEnded
from teamchat.core.engine.route import Route
from teamchat.core.events import ConversationEvent, Warned
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.novelty import says_nothing_new
from teamchat.core.routing.addressing import Addressed, address_reply
from teamchat.core.store.database import Database
from teamchat.core.store.todos import note_todos
from teamchat.core.store.turns import Turn
from teamchat.core.team import Member, Team
from teamchat.core.todos import Noted

LOOK_BACK = 24  # messages in which a speaker's own last reply is looked for
Event = TypeVar("Event")


@dataclass(frozen=True, slots=True)
class Said(Generic[Event]):
    """A stored message, what it is to the engine, and what it noted to do."""

    message: ConversationMessage
    event: Event
    noted: Noted


@dataclass(frozen=True, slots=True)
class Saying:
    """Stores what is said in one session; `emit` is told of what could not be done as it was written."""

    team: Team
    db: Database
    session: int
    manager: ContextManager
    emit: Callable[[ConversationEvent], None]

    def person(self, addressed: Addressed) -> Said[HumanSpoke]:
        """Store a person's message, and the task that it sets."""
        message = self.manager.add_message(
            NewMessage(
                addressed.text,
                Speaker(addressed.speaker.name, addressed.speaker.name, addressed.speaker.title, type="human"),
                Routing(addressed.names, addressed.markers),
            )
        )
        if addressed.task is not None:
            self._set_task(addressed.task)
        noted = note_todos(self.db, self.session, addressed.todos, addressed.speaker.name, message.id)
        spoke = HumanSpoke(
            time.time(),
            message.id,
            addressed.speaker.name,
            addressed.requests,
            addressed.drops,
            wordless=addressed.wordless,
        )
        return Said(message, spoke, noted)

    def _set_task(self, task: str) -> None:
        self.manager.set_team_task(task)
        if self.manager.get_team_task() != task:
            self.emit(Warned(TASK_CUT))

    def reply(self, member: Member, turn: Turn, text: str, route: Route) -> Said[TurnEnded]:
        """Store a member's reply to the message of `route`."""
        reply = address_reply(text, self.team, member)
        for problem in reply.problems:
            self.emit(Warned(problem))
        new = not says_nothing_new(text, self._said_since(), member.name, self.team.limits.similarity)
        message = self.manager.add_message(
            NewMessage(
                text,
                Speaker(member.name, member.name, member.title, type="ai"),
                Routing(reply.names, reply.markers),
                turn_id=turn.id,
                stands_for=None if member.name == route.target else route.target,
            )
        )
        ended = TurnEnded(
            time.time(), route.number, message.id, reply.requests, reply.drops, speaker=member.name, new=new
        )
        return Said(message, ended, note_todos(self.db, self.session, reply.todos, member.name, message.id))

    def _said_since(self) -> list[tuple[str, str]]:
        """What agents said since the last human message, newest first."""
        said: list[tuple[str, str]] = []
        for message in reversed(self.manager.get_latest_messages(LOOK_BACK)):
            if message.speaker.type == "human":
                break
            said.append((message.speaker.role_name, message.content))
        return said
