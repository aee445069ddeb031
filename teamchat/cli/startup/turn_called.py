"""Finds the turn that a person names, by its number or the id of its reply, and the check."""

from __future__ import annotations

from teamchat.core.errors import UnknownName, UsageError
from teamchat.core.messages import name_of
from teamchat.core.routing.requests import quoted
from teamchat.core.store.checks import CheckRecord, find_check
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import Session
from teamchat.core.store.turns import LARGEST, Turn, find_turn, get_turn, session_of
from teamchat.core.text.commands import quote

CHECK = "check-"
MOST_DIGITS = 100  # Python reads no number of more than 4,300


def check_name(name: str | None) -> None:
    """Raise `UsageError` for a name that is neither a turn's number nor a message's id."""
    if name is None or name.startswith("msg-") or (name.isdecimal() and len(name) <= MOST_DIGITS):
        return
    raise UsageError(f"expected the number of a turn or a reply such as msg-2, got {quoted(name)}", "teamchat log")


def names_check(name: str | None) -> bool:
    """Whether the name is one such as check-2."""
    number = (name or "").removeprefix(CHECK)
    return number != name and number.isdecimal() and len(number) <= MOST_DIGITS


def check_called(db: Database, session: Session, name: str) -> CheckRecord:
    """Find the check of that name. Raises `UnknownName`."""
    check = find_check(db, session.id, min(int(name.removeprefix(CHECK)), LARGEST))
    if check is None:
        raise UnknownName(f"session {session.name} has no {name}", "teamchat log")
    return check


def turn_called(db: Database, session: Session, name: str | None) -> Turn:
    """Find the turn with that number, or whose reply has that id; None is the last one. Raises `UnknownName`."""
    if name is not None and name.startswith("msg-"):
        message = SqliteLog(db, session.id).get(name)
        if message.turn_id is None:
            raise UnknownName(f"{name} is from {name_of(message)}, and no turn wrote it", "teamchat log")
        return get_turn(db, message.turn_id)
    turn = find_turn(db, session.id, None if name is None else int(name))
    if turn is None:
        which = "turn yet" if name is None else f"turn {name}"
        raise UnknownName(f"session {session.name} has no {which}", "teamchat log")
    return turn


def said_by_a_person(db: Database, session: Session, name: str | None) -> str | None:
    """Return the text of a person's message with that id; None for any other name."""
    if name is None or not name.startswith("msg-"):
        return None
    message = SqliteLog(db, session.id).get(name)
    return message.content if message.speaker.type == "human" else None


def turn_here(db: Database, session: Session, name: str) -> Turn:
    """Find the turn for a command that changes the session. Raises `UnknownName` also for a turn of another one.

    A branch shares the replies of its original session, but not the turns.
    """
    turn = turn_called(db, session, name)
    if (owner := session_of(db, turn)) != session.name:
        reason = f"{name} was written in session {owner}, which has the turn to undo"
        raise UnknownName(reason, f"teamchat undo {name} --session {quote(owner)}")
    return turn
