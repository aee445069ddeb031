"""Calls that a conversation has on hold or set aside, by their messages."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from teamchat.core.engine.state import Route, RouteStatus
from teamchat.core.errors import NoMessage, UnknownName
from teamchat.core.routing.requests import quoted
from teamchat.core.routing.titles import first_words
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import open_routes
from teamchat.core.store.sessions import Session
from teamchat.core.store.unsent import handed_over_to


class Waiting(Struct, frozen=True):
    """The calls of one message that wait for a resume, in the order of speaking.

    `words` are the first ones of the message, quoted; empty where it was undone. `since` is its time, in seconds since
    the epoch. A message set `aside` runs only if a person picks it.
    """

    message: str
    words: str
    since: float
    routes: tuple[Route, ...]
    aside: bool

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(route.target for route in self.routes))

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(route.number for route in self.routes)

    @property
    def commands(self) -> str:
        """The commands that run it and that drop it, in words."""
        return f"to run it: teamchat resume {self.message}; to drop it: teamchat resume --drop {self.message}"

    def __str__(self) -> str:
        """Write `max, sarah for msg-1 'Write it'`."""
        return " ".join(filter(None, (", ".join(self.members), "for", self.message, self.words)))


def waiting_in(db: Database, session: int) -> list[Waiting]:
    """List what waits in a session that no process runs, in the order of the queue; what is set aside comes last.

    A person's open question is not part of it, nor are calls that only wait for the answer.
    """
    log, queue = SqliteLog(db, session), open_routes(db, session)
    there = {route.status for route in queue}
    others = {RouteStatus.ASKED}
    if RouteStatus.ASKED in there and there.isdisjoint((RouteStatus.RUNNING, RouteStatus.ANSWERED)):  # nothing has died
        others.add(RouteStatus.WAITING)
    by_message: dict[tuple[bool, str], list[Route]] = {}
    for route in queue:
        if route.status not in others:
            by_message.setdefault((route.status is RouteStatus.ASIDE, route.parent), []).append(route)
    waiting = [_waiting(log, message, tuple(routes), aside=aside) for (aside, message), routes in by_message.items()]
    return sorted(waiting, key=lambda one: one.aside)


def on_hold(db: Database, session: Session) -> bool:
    """Whether a resume would find something in the session: a call on hold or set aside, or a person who is asked."""
    return bool(open_routes(db, session.id) or handed_over_to(db, session.id))


def _waiting(log: SqliteLog, message: str, routes: tuple[Route, ...], *, aside: bool) -> Waiting:
    try:
        said = log.get(message)
    except NoMessage:
        return Waiting(message, "", 0.0, routes, aside)
    return Waiting(message, quoted(first_words(said.content)), said.timestamp / 1000, routes, aside)


def named_by(waiting: Sequence[Waiting], message: str) -> tuple[int, ...]:
    """Return the numbers of the routes that wait for that message. Raises `UnknownName` if none do."""
    numbers = tuple(number for group in waiting if group.message == message for number in group.numbers)
    if not numbers:
        there = ", ".join(dict.fromkeys(group.message for group in waiting)) or "nothing"
        raise UnknownName(f"nothing waits for {quoted(message)} (what waits: {there})", "teamchat log")
    return numbers
