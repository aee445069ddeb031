"""A branch: a session that begins as another one was at a message. Messages are shared, vendor sessions are not."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from teamchat.core.errors import UsageError
from teamchat.core.messages import ConversationMessage
from teamchat.core.routing.markers import read_markers
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import owner_of, parts_from, share_messages
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import Session, create_session, find_session, need_session
from teamchat.core.store.summaries import share_clears
from teamchat.core.store.turns import Turn, replied_between, states_of_turns, unreplied_between
from teamchat.core.text.commands import saying


def branch(db: Database, session: Session, at: str | None = None, name: str | None = None) -> Session:
    """Make a new session with the messages of `session` up to the one with the id `at`, by default all of them.

    Its task and its todo list are from that moment, its queue is empty, and nobody has had a turn in it. The next
    command continues it. Raises `NoMessage`, and `UsageError` when nothing was said yet and for a name
    that is taken.
    """
    with db.transaction():
        log = SqliteLog(db, session.id)
        message = log.latest() if at is None else log.get(at)
        if message is None:
            raise UsageError(f"nothing was said in session {session.name} yet", saying("--session", session.name))
        if name is not None and find_session(db, name):
            raise UsageError(f"session {name!r} already exists", "teamchat sessions")
        place = log.place(message.id)
        made = create_session(db, session.team, _task_at(db, log, message, place), name)
        share_messages(db, session.id, made.id, place)
        share_clears(db, session.id, made.id, place if at is None else place - 1)
        return need_session(db, made.name)


class Later(Struct, frozen=True):
    """A turn that ended after a message was said, and the name of its session."""

    session: str
    turn: Turn


def turns_after(db: Database, session: Session, message: str) -> Iterator[Later]:
    """List the turns of a session's messages that replied after `message`, or failed after it, in order.

    Undone ones are left out.
    """
    place = SqliteLog(db, session.id).place(message)
    for part in parts_from(db, session.id, place):
        turns = [*replied_between(db, part.session, place, part.through)]
        turns += unreplied_between(db, part.session, place, part.through)
        yield from (Later(part.name, turn) for turn in sorted(turns, key=lambda turn: turn.number))


def _task_at(db: Database, log: SqliteLog, message: ConversationMessage, place: int) -> str | None:
    """Find the task as it was when the message had been said.

    It is known when a turn began, and by the messages since. One that a command has set since the last turn before the
    message is known only if nothing was said later.
    """
    latest = log.latest()
    if latest and latest.id == message.id:
        return log.team_task
    owner = SqliteLog(db, owner_of(db, place))
    states = states_of_turns(db, owner.session)
    exact = next((state for state in states if state.through == place), None)
    before = next((state for state in reversed(states) if state.through < place), None)
    if exact or before is None:
        known = exact or next(iter(states), None)
        return known.task if known else log.team_task
    task = before.task
    for later in owner.after(before.through):
        if later.speaker.type == "human" and owner.place(later.id) <= place:
            markers = read_markers(later.content, "human", later.pasted).markers
            task = next((marker.task for marker in reversed(markers) if marker.task), task)
    return task
