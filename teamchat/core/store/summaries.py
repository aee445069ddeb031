"""Summaries as rows, and where prompts begin after a conversation was cleared.

Prompts have a summary in place of the messages up to the last one that it covers.

No summary is ever changed. It holds as long as it covers the messages that it was made of. Once one of them is taken
back, or comes back, the summary no longer holds, and the one before it holds again. The summary of an undone turn does
not hold either: its prompt may have had a task that was undone.
"""

from __future__ import annotations

import json
import time

from msgspec import Struct

from teamchat.core.store.database import Database
from teamchat.core.store.lineage import OF_ID
from teamchat.core.store.rows import Row
from teamchat.core.store.texts import Packed, put_text, stored_text
from teamchat.core.store.turns import Turn

HOLDS = "undone = 0 AND undo IS NULL"


class Clear(Struct, frozen=True):
    """A clear of a conversation: prompts leave out every message up to the one with the id `through`.

    `task` is the task that it removed. `turn` is the number of the session's last turn at that time, 0 without one.
    """

    id: int
    through: str
    turn: int
    task: str | None
    at: float


SELECT = """SELECT clears.*, messages.message FROM clears JOIN messages ON messages.id = clears.through
    WHERE clears.session = ?1"""


def add_clear(db: Database, session: int, through: str) -> None:
    """Have prompts of the session begin after the message with that id, and remove its task."""
    with db.transaction():
        db.execute(
            f"""INSERT INTO clears (session, through, turn, task, at)
            SELECT id, ({OF_ID}), (SELECT COALESCE(MAX(number), 0) FROM turns WHERE session = ?1), task, ?3
            FROM sessions WHERE id = ?1""",  # noqa: S608 (our own words)
            session, through, time.time(),
        )  # fmt: skip
        db.execute("UPDATE sessions SET task = NULL WHERE id = ?", session)


def last_clear(db: Database, session: int) -> Clear | None:
    """Return the newest clear that was not undone."""
    return db.value(a_clear, f"{SELECT} AND {HOLDS} ORDER BY clears.through DESC, clears.id DESC LIMIT 1", session)


def clear_before(db: Database, session: int, message: str) -> str | None:
    """Return the id of the last message left out of prompts that answer the message with that id."""
    sql = f"{SELECT} AND {HOLDS} AND clears.through < ({OF_ID}) ORDER BY clears.through DESC, clears.id DESC LIMIT 1"
    return db.value(lambda row: row.text("message"), sql, session, message)


def cleared_since(db: Database, session: int, turn: int) -> bool:
    """Whether the session was cleared after its turn with that number."""
    sql = f"SELECT 1 FROM clears WHERE session = ? AND turn >= ? AND {HOLDS}"  # noqa: S608 (our own words)
    return db.row(sql, session, turn) is not None


def clears_in(db: Database, session: int) -> list[Clear]:
    """List the clears that were not undone, in order."""
    return db.values(a_clear, f"{SELECT} AND {HOLDS} ORDER BY clears.through, clears.id", session)


def undo_clear(db: Database, clear: Clear) -> None:
    """Undo a clear: prompts begin where they did before."""
    db.execute("UPDATE clears SET undone = 1 WHERE id = ?", clear.id)


def undo_clears_from(db: Database, session: int, turn: int, undo: int) -> None:
    """Undo all clears since the turn with that number began, as part of an undo that a redo can reverse."""
    db.execute(f"UPDATE clears SET undo = ? WHERE session = ? AND turn >= ? AND {HOLDS}", undo, session, turn)  # noqa: S608


def redo_clears(db: Database, session: int, undo: int) -> None:
    """Bring back the clears that an undo took back."""
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


class Summary(Struct, frozen=True):
    """The summary by `member` of all messages up to the id `through`; the messages in `kept` are also quoted."""

    member: str
    through: str
    kept: tuple[str, ...]
    text: str


def add_summary(db: Database, session: int, turn: Turn, summary: Summary, text: Packed) -> Summary:
    """Store a turn's summary, its text packed as `text`, in the caller's transaction that ends the turn."""
    db.execute(
        f"""INSERT INTO summaries (session, turn, through, without, kept, text)
        SELECT ?1, ?2, id, (
            SELECT json_group_array(id) FROM (
                SELECT hides.message AS id FROM hides WHERE session = ?1 AND hides.message <= covered.id ORDER BY 1
            )
        ), ?3, ?4 FROM messages AS covered WHERE id = ({OF_ID.replace("?2", "?5")})""",  # noqa: S608 (our own words)
        session, turn.id, json.dumps(summary.kept), put_text(db, text), summary.through,
    )  # fmt: skip
    return summary


def summary_before(db: Database, session: int, message: str) -> Summary | None:
    """Return the valid summary that covers most of the messages before the one with that id.

    A summary from before a clear is not valid.
    """
    return db.value(
        lambda row: a_summary(db, row),
        f"""SELECT summaries.kept, summaries.text, covered.message AS through, turns.member FROM summaries
        JOIN messages AS covered ON covered.id = summaries.through
        JOIN turns ON turns.id = summaries.turn AND (turns.undone IS NULL OR turns.session <> ?1)
        WHERE summaries.session = ?1
            AND summaries.through < ({OF_ID})
            AND NOT EXISTS (
                SELECT 1 FROM clears WHERE clears.session = ?1 AND {HOLDS} AND clears.through < ({OF_ID})
                AND clears.through >= summaries.through
            )
            AND summaries.without = (
                SELECT json_group_array(id) FROM (
                    SELECT hides.message AS id FROM hides
                    WHERE session = ?1 AND hides.message <= summaries.through ORDER BY 1
                )
            )
        ORDER BY summaries.through DESC, summaries.id DESC LIMIT 1""",  # noqa: S608 (our own words)
        session, message,
    )  # fmt: skip


def a_summary(db: Database, row: Row) -> Summary:
    ids = tuple(str(message) for message in row.json("kept"))
    return Summary(row.text("member"), row.text("through"), ids, stored_text(db, row.text("text")))


def summary_of(db: Database, turn: Turn) -> str | None:
    """Return the summary that a turn wrote, or None."""
    return db.value(lambda row: stored_text(db, row.text("text")), "SELECT text FROM summaries WHERE turn = ?", turn.id)
