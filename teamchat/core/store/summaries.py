"""Summaries as rows. Prompts have a summary in place of the messages up to the last one that it covers.

No summary is ever changed. It holds as long as it covers the messages that it was made of. Once one of them is taken
back, or comes back, the summary no longer holds, and the one before it holds again. The summary of an undone turn does
not hold either: its prompt may have had a task that was undone.
"""

from __future__ import annotations

import json

from msgspec import Struct

from teamchat.core.store.clears import HOLDS
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import OF_ID
from teamchat.core.store.rows import Row
from teamchat.core.store.texts import Packed, put_text, stored_text
from teamchat.core.store.turns import Turn


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
    """The valid summary that covers most of the messages before the one of that id, none from before a clear."""
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
    kept = tuple(str(message) for message in row.json("kept"))
    return Summary(row.text("member"), row.text("through"), kept, stored_text(db, row.text("text")))


def summary_key(db: Database, turn: Turn) -> str | None:
    """The key of the summary that a turn has made, if that is what it did."""
    return db.value(lambda row: row.text("text"), "SELECT text FROM summaries WHERE turn = ?", turn.id)


def summary_of(db: Database, turn: Turn) -> str | None:
    """The summary that a turn wrote, or None."""
    return db.value(lambda row: stored_text(db, row.text("text")), "SELECT text FROM summaries WHERE turn = ?", turn.id)
