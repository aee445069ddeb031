"""The facts that a list shows for each conversation: its title, its queue, running turns, the last message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from teamchat.core.engine.state import Route
from teamchat.core.routing.titles import READ, first_words
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import MESSAGES, parent_of
from teamchat.core.store.messages import NEWEST_FIRST, NOT_HIDDEN, OLDEST_FIRST
from teamchat.core.store.routes import a_route
from teamchat.core.store.rows import Count, Moment, Row
from teamchat.core.store.sessions import Session, all_sessions

OWN_FIRST = f"""SELECT substr(content, 1, {READ}) AS head FROM messages
    WHERE session = ?1 {NOT_HIDDEN} ORDER BY id LIMIT 1"""  # noqa: S608 (our own words)
SHARED_FIRST = f"""SELECT substr(content, 1, {READ}) AS head FROM {MESSAGES}
    WHERE lineage.session = ?1 {NOT_HIDDEN} {OLDEST_FIRST} LIMIT 1"""  # noqa: S608 (our own words)
LAST = f"""SELECT messages.message, speaker_name, timestamp FROM {MESSAGES}
    WHERE lineage.session = ?1 {NOT_HIDDEN} {NEWEST_FIRST} LIMIT 1"""  # noqa: S608 (our own words)
QUEUES = "SELECT * FROM routes WHERE place IS NOT NULL ORDER BY session, place"
RUNNING = """SELECT session, member, number, started_at FROM turns WHERE status = 'running'
    ORDER BY session, number"""

T = TypeVar("T")


class RunningTurn(Struct, frozen=True):
    """A turn that has not ended; `started_at` in seconds since 1970."""

    member: str
    number: Count
    started_at: Moment


class LastMessage(Struct, frozen=True):
    """The newest message that was not undone; `at` in seconds since 1970."""

    id: str
    speaker: str
    at: float


class Listed(Struct, frozen=True):
    """A session in a list. `branch_of` is the session that it is a branch of, and the last message they share."""

    session: Session
    title: str
    queue: tuple[Route, ...]
    running: tuple[RunningTurn, ...]
    last: LastMessage | None
    branch_of: tuple[str, str] | None


def list_sessions(db: Database) -> list[Listed]:
    """List all sessions, last used first. The time this takes does not grow with their messages and turns."""
    queues = _by_session(db, a_route, QUEUES)
    running = _by_session(db, lambda row: row.read(RunningTurn), RUNNING)
    return [
        Listed(
            session,
            title_of(db, session),
            tuple(queues[session.id]),
            tuple(running[session.id]),
            db.value(_last, LAST, session.id),
            parent_of(db, session.id),
        )
        for session in all_sessions(db)
    ]


def title_of(db: Database, session: Session) -> str:
    """Return the given title, or else the first words of the session; for a branch, of its own first message."""
    if session.title is not None:
        return session.title
    heads = (db.scalar(str, sql, session.id) for sql in (OWN_FIRST, SHARED_FIRST))
    return first_words(next((head for head in heads if head is not None), ""))


def _by_session(db: Database, make: Callable[[Row], T], sql: str) -> defaultdict[int, list[T]]:
    by_session: defaultdict[int, list[T]] = defaultdict(list)
    for session, value in db.each(lambda row: (row.integer("session"), make(row)), sql):
        by_session[session].append(value)
    return by_session


def _last(row: Row) -> LastMessage:
    return LastMessage(row.text("message"), row.text("speaker_name"), row.integer("timestamp") / 1000)
