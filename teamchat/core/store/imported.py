"""The parts of imported conversations besides messages: turns and checks of another store, and the names of images.

These turns are only shown and exported again. They are not undone, not resumed, not counted in the usage and not part
of a member's memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from msgspec import Struct

from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row


class ImportedEntry(Struct, frozen=True):
    """The extras of a `message`, or a turn without one or a check that came after the message `after`.

    `turn` is the turn or check as JSON (`core/transcripts/transcript.py`), `images` the names of the message's images.
    """

    message: str | None
    after: str | None
    turn: str | None
    images: tuple[str, ...] = ()


def put_imported(db: Database, session: int, entries: Iterable[ImportedEntry]) -> None:
    """Store the entries of a session, in order. Part of the caller's transaction."""
    db.executemany(
        "INSERT INTO imported_entries (session, number, message, after, turn, images) VALUES (?, ?, ?, ?, ?, ?)",
        (
            (session, number, entry.message, entry.after, entry.turn, json.dumps(entry.images))
            for number, entry in enumerate(entries, 1)
        ),
    )


def imported_entries(db: Database, session: int) -> list[ImportedEntry]:
    """List the entries of a session in order; for a branch, include those before it."""
    return db.values(
        an_imported_entry,
        """SELECT imported_entries.* FROM lineage JOIN imported_entries ON imported_entries.session = lineage.ancestor
        WHERE lineage.session = ?1 ORDER BY lineage.through, imported_entries.number""",
        session,
    )


def an_imported_entry(row: Row) -> ImportedEntry:
    turn, images = row.text_or_none("turn"), row.json("images")
    if turn is not None:
        json.loads(turn)
    return ImportedEntry(row.text_or_none("message"), row.text_or_none("after"), turn, tuple(map(str, images)))
