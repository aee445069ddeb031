"""The todo list's changes as rows, with the messages that they came from."""

from __future__ import annotations

import time
from collections.abc import Iterable

from teamchat.core.routing.todos import Change, Noted, TodoList, Wish, apply_wishes, read_todos
from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row

CHANGES = """SELECT todo_changes.*, hides.message NOT NULL AS hidden FROM lineage
    CROSS JOIN todo_changes ON todo_changes.session = lineage.ancestor
        AND todo_changes.id <= lineage.todos AND todo_changes.place <= lineage.through
    LEFT JOIN messages ON messages.session = todo_changes.session AND messages.message = todo_changes.message
    LEFT JOIN hides ON hides.session = ?1 AND hides.message = messages.id
    WHERE lineage.session = ?1 ORDER BY lineage.through, todo_changes.id"""
PLACE = """COALESCE((SELECT id FROM messages WHERE session = ?1 AND message = ?7),
    (SELECT MAX(id) FROM messages WHERE session = ?1),
    (SELECT MAX(through) FROM lineage WHERE session = ?1 AND ancestor <> ?1), 0)"""


def changes_of(db: Database, session: int) -> list[Change]:
    """List every change ever made, in order, including changes of hidden messages."""
    return db.values(a_change, CHANGES, session)


def todos_of(db: Database, session: int) -> TodoList:
    return read_todos(changes_of(db, session))


def note_todos(db: Database, session: int, wishes: Iterable[Wish], by: str, message: str | None = None) -> Noted:
    """Store the todo changes that a message or command asks for."""
    wishes = tuple(wishes)
    if not wishes:
        return Noted()
    with db.transaction():  # numbers are given here: two processes at once must not give the same
        noted = apply_wishes(todos_of(db, session), wishes, by, time.time(), message)
        _insert(db, session, noted.changes)
    return noted


def clear_todos(db: Database, session: int, by: str) -> tuple[Change, ...]:
    """Take every item off the list, done or not. Their numbers are not given again."""
    with db.transaction():
        items = todos_of(db, session).items.values()
        now = time.time()
        changes = tuple(Change(item.number, "cleared", item.added.text, by, now) for item in items)
        _insert(db, session, changes)
    return changes


def _insert(db: Database, session: int, changes: Iterable[Change]) -> None:
    db.executemany(
        f"""INSERT INTO todo_changes (session, number, what, text, "by", at, message, place)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, {PLACE})""",  # noqa: S608 (our own words)
        ((session, c.number, c.what, c.text, c.by, c.at, c.message) for c in changes),
    )


def a_change(row: Row) -> Change:
    return row.read(Change, number=row.count("number"), at=row.moment("at"))
