"""Sessions as rows: one conversation each, with its own messages, task and queue."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from unicodedata import normalize

from msgspec import Struct
from msgspec.json import encode

from teamchat.core.errors import NoConversation, TeamchatError, UnknownName
from teamchat.core.store.counting import NOT_COUNTED
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import refuse_branches
from teamchat.core.store.rows import Moment, Row
from teamchat.core.text.commands import saying


class CalledBy(Struct, frozen=True):
    """The turn whose agent began a session: its number, its member, and the session and store that it is of."""

    store: str
    session: str
    turn: int
    member: str


class Session(Struct, frozen=True):
    """A conversation."""

    id: int
    name: str
    team: str
    task: str | None
    created_at: Moment
    used_at: Moment
    messages: int = 0
    turns: int = 0
    title: str | None = None
    """The title that a person gave it; without one its first words are its title."""
    cost_usd: float | None = None
    """The cost of the `turns_with_cost`; None if no turn's cost is known."""
    turns_with_cost: int = 0
    caller: CalledBy | None = None
    """The turn whose agent began it, if an agent did."""


MOST_LISTED = 10  # Sessions that an error lists.
SELECT = f"SELECT *, {NOT_COUNTED} AS not_counted FROM sessions"  # noqa: S608 (our own words)
USED_BY = {True: "used_typed", False: "used_by_scripts"}


def a_session(row: Row) -> Session:
    return row.read(
        Session,
        messages=row.integer("message_count") + row.integer("not_counted"),
        turns=row.integer("turn_count"),
        cost_usd=row.real("spent_usd") if row.integer("turns_with_cost") else None,
    )


def set_caller(db: Database, session: int, caller: CalledBy) -> None:
    """Note which turn's agent begins the session."""
    db.execute("UPDATE sessions SET caller = ? WHERE id = ?", encode(caller).decode(), session)


def create_session(
    db: Database,
    team: str,
    task: str | None,
    name: str | None = None,
    fence_key: str | None = None,
    title: str | None = None,
) -> Session:
    """Create a session, named `s1`, `s2`, ... unless `name` is given.

    It has a key of its own, unless it replays another session and gets that one's as `fence_key`.
    """
    now, key = time.time(), os.urandom(16).hex() if fence_key is None else fence_key
    with db.transaction():
        cursor = db.execute(
            "INSERT INTO sessions (name, team, task, fence_key, created_at, used_at, title)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            name or _free_name(db), team, task, key, now, now, title,
        )  # fmt: skip
        touch_session(db, cursor.lastrowid or 0)
        return db.the(a_session, f"{SELECT} WHERE sessions.id = ?", cursor.lastrowid)


def _free_name(db: Database) -> str:
    taken = set(db.column(str, "SELECT name FROM sessions"))
    return next(name for number in range(len(taken) + 1, 2 * len(taken) + 2) if (name := f"s{number}") not in taken)


def fence_key(db: Database, session: int) -> str:
    """Return the session's secret for the fences in its prompts; not in `Session`, which people see."""
    return db.the(lambda row: row.only(str), "SELECT fence_key FROM sessions WHERE id = ?", session)


def name_of(db: Database, session: int) -> str:
    return db.the(lambda row: row.only(str), "SELECT name FROM sessions WHERE id = ?", session)


def find_session(db: Database, name: str) -> Session | None:
    """Find the session by name, or else one whose name differs only in case or in Unicode composition."""
    if session := db.value(a_session, f"{SELECT} WHERE name = ?", name):
        return session
    wanted = _folded(name)
    alike = (other for other in db.column(str, "SELECT name FROM sessions ORDER BY id") if _folded(other) == wanted)
    same = next(alike, None)
    return db.value(a_session, f"{SELECT} WHERE name = ?", same) if same is not None else None


def _folded(name: str) -> str:
    return normalize("NFC", normalize("NFC", name).casefold())


def last_session(db: Database, *, typed: bool | None = None) -> Session | None:
    """Return the session that was used last, whatever the clock said; never one that an agent began in its turn.

    A person at a terminal and scripts each have a last session of their own, so that a hook does not change which one
    the person continues. Without one of their own, they get the last of all. `typed` tells the two apart; its default
    is that of `db`.
    """
    kind = USED_BY[db.typed if typed is None else typed]
    order = f"ORDER BY {kind} DESC, used DESC, id DESC LIMIT 1"
    last = f"SELECT id FROM sessions WHERE caller IS NULL {order}"  # noqa: S608 (our own names)
    return db.value(a_session, f"{SELECT} WHERE id = ({last})")


def last_child(db: Database, caller: CalledBy) -> Session | None:
    """Return the last used session that the agent of that turn began."""
    return next((session for session in all_sessions(db) if session.caller == caller), None)


def current_session(db: Database, name: str | None) -> Session | None:
    """Return the session with that name; without a name, the last one."""
    return find_session(db, name) if name else last_session(db)


def need_session(db: Database, name: str | None) -> Session:
    """Return the session with that name, or the last one. Raises `UnknownName` if there is none."""
    session = current_session(db, name)
    if session is None and name:
        begin = saying("--new", "--session", name)
        raise UnknownName(no_session(db, name), "teamchat sessions" if all_sessions(db) else begin)
    if session is None:
        raise NoConversation("there is no conversation here yet", saying())
    return session


def no_session(db: Database, name: str) -> str:
    """Write the error for an unknown session: suggest the closest names, or else list the newest sessions."""
    names = [session.name for session in all_sessions(db)]
    if close := get_close_matches(name, names, n=3):
        return f"there is no session {name!r}: did you mean {' or '.join(close)}?"
    known = ", ".join(names[:MOST_LISTED]) or "none yet"
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"there is no session {name!r} (sessions: {known}{more})"


def check_there(db: Database, session: Session) -> None:
    """Raise `UnknownName` if the session was deleted since it was found."""
    if db.row("SELECT 1 FROM sessions WHERE id = ? AND created_at = ?", session.id, session.created_at) is None:
        raise UnknownName(f"session {session.name} was deleted meanwhile", "teamchat sessions")


def all_sessions(db: Database) -> list[Session]:
    """List all sessions, last used first."""
    return db.values(a_session, f"{SELECT} ORDER BY used DESC, sessions.id DESC")


def session_names(file: Path) -> list[str]:
    """List the names in the store `file`, last used first, without making or changing it. Raises `sqlite3.Error`."""
    # not mode=ro: it could not take the write-ahead log away again, and would leave it beside the store
    with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=0.1)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sessions ORDER BY used DESC, id DESC")]


def rename_session(db: Database, session: int, title: str | None) -> None:
    """Give the session a title; without one, its first words become its title again. Its name stays."""
    db.execute("UPDATE sessions SET title = ? WHERE id = ?", title, session)


def edits_of(db: Database, session: int) -> int:
    """Count the hidden messages of the session, without messages that a redo brought back."""
    return db.number("SELECT edits FROM sessions WHERE id = ?", session)


def set_beginning(db: Database, session: int, moment: float) -> None:
    """Note that the session began at that time, in seconds since 1970: an imported one began elsewhere."""
    db.execute("UPDATE sessions SET created_at = ? WHERE id = ?", moment, session)


def touch_session(db: Database, session: int) -> None:
    """Make it the session that the next command continues, be it one that a person types or a script runs."""
    used = "(SELECT MAX(used) + 1 FROM sessions)"  # a counter: clocks are set back
    sql = f"UPDATE sessions SET used_at = ?, used = {used}, {USED_BY[db.typed]} = {used} WHERE id = ?"  # noqa: S608
    db.execute(sql, time.time(), session)


BEFORE_MESSAGES = (
    "unsent", "routes", "todo_changes", "summaries", "images", "hides", "imported_entries", "adoptions", "usage",
    "vendor_usage", "children", "clears", "checks", "accepted",
)  # fmt: skip
"""The tables with rows of a session that are removed before its messages, because most of them refer to messages."""
DELETE_MESSAGE = "DELETE FROM messages WHERE id = (SELECT MAX(id) FROM messages WHERE session = ?)"
AT_ONCE_S = 0.5
REST_S = 0.15  # longer than others, who wait for their turn, take between two looks
OWN_TEXTS = """SELECT system_text FROM turns WHERE session = ?1 UNION SELECT prompt FROM turns WHERE session = ?1
    UNION SELECT text FROM turns WHERE session = ?1 UNION SELECT text FROM summaries WHERE session = ?1
    UNION SELECT body FROM images WHERE session = ?1 UNION SELECT output FROM checks WHERE session = ?1"""
DELETE_TEXT = """DELETE FROM texts WHERE hash = ?1
    AND NOT EXISTS (SELECT 1 FROM turns WHERE system_text = ?1 UNION ALL SELECT 1 FROM turns WHERE prompt = ?1
        UNION ALL SELECT 1 FROM turns WHERE text = ?1 UNION ALL SELECT 1 FROM summaries WHERE text = ?1
        UNION ALL SELECT 1 FROM images WHERE body = ?1 UNION ALL SELECT 1 FROM checks WHERE output = ?1)"""


def is_bare(db: Database, session: Session, task: str | None) -> bool:
    """Whether nothing was said, noted or queued in the session since it began with that task."""
    tables = (f"SELECT 1 FROM {table} WHERE session = ?" for table in BEFORE_MESSAGES)  # noqa: S608 (our own names)
    return not session.messages and session.task == task and not any(db.row(sql, session.id) for sql in tables)


def remove_session(db: Database, session: int) -> None:
    """Remove the session with all its rows, and the texts that no other session refers to.

    A large one goes piece by piece, so that others can write in between. After a kill the rest can be removed. Raises
    `UsageError` if a branch shares its messages.
    """
    while not _removed(db, session):
        time.sleep(REST_S)


def _removed(db: Database, session: int) -> bool:
    """Remove as much of the session as a moment allows. Return whether that was all.

    Removing the words of messages from the index takes long.
    """
    with db.transaction():
        refuse_branches(db, session)  # between two pieces one may begin
        until = time.monotonic() + AT_ONCE_S
        # All of it goes at once: between two pieces there is a shorter conversation, in which nothing is missing.
        texts = [(row[0],) for row in db.rows(OWN_TEXTS, session) if row[0]]
        for table in BEFORE_MESSAGES:
            db.execute(f"DELETE FROM {table} WHERE session = ?", session)  # noqa: S608 (our own names)
        db.execute("UPDATE messages SET turn = NULL WHERE session = ? AND turn NOT NULL", session)
        db.execute("DELETE FROM turn_events WHERE turn IN (SELECT id FROM turns WHERE session = ?)", session)
        db.execute("DELETE FROM turns WHERE session = ?", session)
        db.execute("DELETE FROM undos WHERE session = ?", session)
        db.executemany(DELETE_TEXT, texts)
        while (left := db.execute(DELETE_MESSAGE, session).rowcount) and time.monotonic() < until:
            pass
        if not left:
            db.execute("DELETE FROM sessions WHERE id = ?", session)
    return not left


@contextlib.contextmanager
def begun(db: Database, session: Session) -> Iterator[None]:
    """Remove a session that has just begun if the command is refused before its first message."""
    try:
        yield
    except TeamchatError:
        stored = find_session(db, session.name)
        if stored and not stored.messages:
            remove_session(db, session.id)
        raise
