"""The todo list's changes as rows, with the messages that they came from."""

from __future__ import annotations

import time
from collections.abc import Iterable

from teamchat.core.routing.todos import Change, Noted, TodoList, What, Wish, apply_wishes, read_todos
from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row

CHANGES = """SELECT todo_changes.*, hides.message NOT NULL AS hidden FROM todo_changes
    LEFT JOIN messages USING (session, message)
    LEFT JOIN hides ON hides.session = todo_changes.session AND hides.message = messages.id
    WHERE todo_changes.session = ? ORDER BY todo_changes.id"""


def changes_of(db: Database, session: int) -> list[Change]:
    """Every change that was ever made, in order, those of hidden messages among them."""
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
        'INSERT INTO todo_changes (session, number, what, text, "by", at, message) VALUES (?, ?, ?, ?, ?, ?, ?)',
        ((session, c.number, c.what, c.text, c.by, c.at, c.message) for c in changes),
    )


def a_change(row: Row) -> Change:
    return Change(
        number=row.count("number"),
        what=row.one_of(What, "what"),
        text=row.text("text"),
        by=row.text("by"),
        at=row.moment("at"),
        message=row.text_or_none("message"),
        hidden=bool(row.integer("hidden")),
    )
