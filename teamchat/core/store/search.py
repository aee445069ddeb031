"""Finds messages of all sessions by their words. The store's FTS5 index has the first million characters of each."""

from __future__ import annotations

from msgspec import Struct

from teamchat.core.errors import DiskFull
from teamchat.core.store.database import Database
from teamchat.core.store.message_index import index_messages
from teamchat.core.store.rows import Row
from teamchat.core.store.turns import LARGEST
from teamchat.core.text.words import Phrase, SnippetPiece, match_of, snippet

COUNTED = 1000  # hits beyond those that are shown; counting all hits of a common word would take long
VISIBLE_IN = """CASE
    WHEN ?4 NOT NULL THEN CASE WHEN NOT EXISTS (
        SELECT 1 FROM hides WHERE hides.session = ?4 AND hides.message = said.id) THEN ?4 END
    WHEN NOT EXISTS (SELECT 1 FROM hides WHERE hides.session = said.session AND hides.message = said.id)
        THEN said.session
    ELSE (SELECT lineage.session FROM lineage
        WHERE lineage.ancestor = said.session AND said.id <= lineage.through AND NOT EXISTS (
            SELECT 1 FROM hides WHERE hides.session = lineage.session AND hides.message = said.id)
        ORDER BY lineage.session DESC LIMIT 1)
    END"""
"""The session that shows a message: its own, or a branch if it was undone there; else NULL."""
FOUND = f"""FROM message_text CROSS JOIN messages AS said ON said.id = message_text.rowid
    WHERE message_text MATCH ?1 AND message_text.rowid BETWEEN ?2 AND ?3
    AND (?4 IS NULL OR EXISTS (SELECT 1 FROM lineage
        WHERE lineage.session = ?4 AND lineage.ancestor = said.session AND said.id <= lineage.through))
    AND (?5 IS NULL OR said.timestamp >= ?5) AND (?6 IS NULL OR said.speaker_name = ?6 COLLATE NOCASE)
    AND (?7 OR {VISIBLE_IN} NOT NULL)"""  # noqa: S608 (our own words)
HITS = f"""SELECT said.session, said.message, said.speaker_name, said.timestamp, said.content,
    {VISIBLE_IN} AS visible {FOUND} ORDER BY message_text.rowid DESC LIMIT ?8"""
"""The newest first: the index is read from its end, and nothing is sorted."""
COUNT = f"SELECT COUNT(*) FROM (SELECT 1 {FOUND} LIMIT ?8)"  # noqa: S608 (our own words)
BOUNDS = """SELECT MIN((SELECT MIN(id) FROM messages WHERE session = ancestor)) AS first,
    MAX((SELECT MAX(id) FROM messages WHERE session = ancestor AND id <= through)) AS last
    FROM lineage WHERE session = ?"""
FIRST_SINCE = "SELECT MIN(first) FROM message_times WHERE latest >= ?"  # up to some hundreds too early


class Search(Struct, frozen=True):
    """The `parts` of the text that is searched, in one `session` or all, by one `member`, `since` a time.

    `since` is in seconds since 1970. `undone` includes messages that were undone.
    """

    parts: tuple[Phrase, ...]
    session: int | None = None
    member: str | None = None
    since: float | None = None
    undone: bool = False


class Hit(Struct, frozen=True):
    """A message that was found. `session` is the id of one that has it, and `at` in seconds since 1970."""

    session: int
    message: str
    speaker: str
    at: float
    undone: bool
    snippet: tuple[SnippetPiece, ...]


def search(db: Database, what: Search, limit: int) -> tuple[list[Hit], int]:
    """Return the newest hits, at most `limit` (0: all), and how many more there are, counted up to `COUNTED`."""
    try:
        index_messages(db)
    except DiskFull:  # Add missing messages to the index for this search only.
        with db.taken_back():
            index_messages(db)
            return _found(db, what, limit)
    return _found(db, what, limit)


def speakers(db: Database) -> set[str]:
    """Return the names of all who have said something."""
    return set(db.column(str, "SELECT DISTINCT speaker_name FROM messages"))


def _found(db: Database, what: Search, limit: int) -> tuple[list[Hit], int]:
    since = None if what.since is None else round(what.since * 1000)
    values = (match_of(what.parts), *_bounds(db, what.session, since), what.session, since, what.member, what.undone)
    limit = min(limit, LARGEST - COUNTED)
    hits = db.values(lambda row: _hit(row, what), HITS, *values, limit or -1)
    if not limit or len(hits) < limit:
        return hits, 0
    return hits, db.number(COUNT, *values, limit + COUNTED) - limit


def _bounds(db: Database, session: int | None, since: int | None) -> tuple[int, int]:
    """Return the first and last id that a hit can have, so that no other rows are read."""
    first, last = 0, LARGEST
    if session is not None:
        first, last = db.the(lambda row: (row["first"] or 0, row["last"] or 0), BOUNDS, session)
    if since is not None:
        newer = db.scalar(int, FIRST_SINCE, since)
        first = LARGEST if newer is None else max(first, newer)
    return first, last


def _hit(row: Row, what: Search) -> Hit:
    visible = row.integer_or_none("visible")
    return Hit(
        session=what.session or visible or row.integer("session"),
        message=row.text("message"),
        speaker=row.text("speaker_name"),
        at=row.integer("timestamp") / 1000,
        undone=visible is None,
        snippet=snippet(row.text("content"), what.parts),
    )
