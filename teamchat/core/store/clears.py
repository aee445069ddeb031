"""Where prompts begin after a conversation was cleared, as rows. Its messages and turns stay in the store."""

from __future__ import annotations

import time

from msgspec import Struct

from teamchat.core.store.database import Database
from teamchat.core.store.lineage import OF_ID
from teamchat.core.store.rows import Row

HOLDS = "undone = 0 AND undo IS NULL"


class Clear(Struct, frozen=True):
    """Prompts leave out every message up to the one of the id `through`. `task` was removed.

    `turn` is the number of the session's last turn by then, 0 without one.
    """

    id: int
    through: str
    turn: int
    task: str | None
    at: float


SELECT = """SELECT clears.*, messages.message FROM clears JOIN messages ON messages.id = clears.through
    WHERE clears.session = ?1"""


def add_clear(db: Database, session: int, through: str) -> None:
    """Have prompts of the session begin after the message of that id, and remove its task."""
    with db.transaction():
        db.execute(
            f"""INSERT INTO clears (session, through, turn, task, at)
            SELECT id, ({OF_ID}), (SELECT COALESCE(MAX(number), 0) FROM turns WHERE session = ?1), task, ?3
            FROM sessions WHERE id = ?1""",  # noqa: S608 (our own words)
            session, through, time.time(),
        )  # fmt: skip
        db.execute("UPDATE sessions SET task = NULL WHERE id = ?", session)


def last_clear(db: Database, session: int) -> Clear | None:
    """The newest one that was not undone."""
    return db.value(a_clear, f"{SELECT} AND {HOLDS} ORDER BY clears.through DESC, clears.id DESC LIMIT 1", session)


def clear_before(db: Database, session: int, message: str) -> str | None:
    """The id of the last message that prompts which answer the message of that id leave out."""
    sql = f"{SELECT} AND {HOLDS} AND clears.through < ({OF_ID}) ORDER BY clears.through DESC, clears.id DESC LIMIT 1"
    return db.value(lambda row: row.text("message"), sql, session, message)


def cleared_since(db: Database, session: int, turn: int) -> bool:
    """Whether the session was cleared after its turn of that number."""
    sql = f"SELECT 1 FROM clears WHERE session = ? AND turn >= ? AND {HOLDS}"  # noqa: S608 (our own words)
    return db.row(sql, session, turn) is not None


def clears_in(db: Database, session: int) -> list[Clear]:
    """All that were not undone, in order."""
    return db.values(a_clear, f"{SELECT} AND {HOLDS} ORDER BY clears.through, clears.id", session)


def undo_clear(db: Database, clear: Clear) -> None:
    """Have prompts begin where they did before."""
    db.execute("UPDATE clears SET undone = 1 WHERE id = ?", clear.id)


def undo_clears_from(db: Database, session: int, turn: int, undo: int) -> None:
    """The same for all since the beginning of the turn of that number, which an undo takes back."""
    db.execute(f"UPDATE clears SET undo = ? WHERE session = ? AND turn >= ? AND {HOLDS}", undo, session, turn)  # noqa: S608


def redo_clears(db: Database, session: int, undo: int) -> None:
    """Bring back those that an undo has taken back."""
    db.execute("UPDATE clears SET undo = NULL WHERE session = ? AND undo = ?", session, undo)


def share_clears(db: Database, session: int, branch: int, place: int) -> None:
    """Have a branch begin where the session does, if that is before the place of the last message that they share."""
    db.execute(
        f"""INSERT INTO clears (session, through, turn, task, at)
        SELECT ?2, through, 0, NULL, at FROM clears WHERE session = ?1 AND through <= ?3 AND {HOLDS}""",  # noqa: S608
        session, branch, place,
    )  # fmt: skip


def a_clear(row: Row) -> Clear:
    return Clear(row.integer("id"), row.text("message"), row.count("turn"), row.text_or_none("task"), row.moment("at"))
