"""Lessons of a workspace as rows: the text, the time, and the session where it was learned."""

from __future__ import annotations

import time
import unicodedata

from msgspec import Struct

from teamchat.core.errors import UsageError
from teamchat.core.messages import well_formed
from teamchat.core.store.database import Database
from teamchat.core.store.rows import Moment, Row
from teamchat.core.store.turns import LARGEST
from teamchat.core.text.clean import told
from teamchat.core.text.commands import LEARN
from teamchat.core.text.words import spaced

LONGEST_LESSON = 1000  # UTF-8 bytes
TOLD = 1000  # lessons at most, the newest, are considered for a prompt


class Lesson(Struct, frozen=True):
    """One line; `session` is the name of the conversation that it is from. `score` tells how well it fits a search."""

    number: int
    text: str
    session: str | None
    learned_at: Moment
    score: float = 0.0

    @property
    def line(self) -> str:
        """The lesson with its day and session, as a member is told it."""
        day = time.strftime("%Y-%m-%d", time.localtime(self.learned_at))
        return f"- {day}{f' ({self.session})' if self.session else ''}: {self.text}"


def lesson_text(text: str) -> str:
    """Put `text` on one line, without control characters. Raises `UsageError` if it is empty or too long."""
    line = " ".join(told(well_formed(text)).split())
    if not line:
        raise UsageError("the lesson is empty", LEARN)
    if len(line.encode()) > LONGEST_LESSON:
        raise UsageError(
            f"a lesson is one line of at most {LONGEST_LESSON:,} bytes, this one has {len(line.encode()):,}"
        )
    return line


def gist(line: str) -> str:
    """Reduce a line so that lines that differ only in case and emphasis become equal; empty without a word."""
    bare = " ".join(unicodedata.normalize("NFC", line).casefold().split()).strip(" .!*_`\"'")
    return bare if any(map(str.isalnum, bare)) else ""


def add_lesson(db: Database, text: str, session: str | None) -> tuple[Lesson, bool]:
    """Store a lesson. Return it and True, or an equal lesson and False. Raises `UsageError`."""
    line = lesson_text(text)
    with db.transaction():
        if known := db.value(a_lesson, "SELECT * FROM lessons WHERE gist = ?", gist(line) or line):
            return known, False
        lesson = db.the(
            a_lesson,
            "INSERT INTO lessons (text, gist, session, learned_at) VALUES (?, ?, ?, ?) RETURNING *",
            line, gist(line) or line, session, time.time(),
        )  # fmt: skip
        db.execute("INSERT INTO lesson_words (rowid, body) VALUES (?, ?)", lesson.number, spaced(line))
        return lesson, True


def delete_lesson(db: Database, number: int) -> Lesson | None:
    """Delete a lesson and return it; None if no lesson has that number."""
    with db.transaction():
        lesson = db.value(a_lesson, "DELETE FROM lessons WHERE id = ? RETURNING *", min(number, LARGEST))
        if lesson:
            db.execute("DELETE FROM lesson_words WHERE rowid = ?", lesson.number)
    return lesson


def newest_lessons(db: Database, count: int = TOLD) -> list[Lesson]:
    """List the newest `count` lessons, newest first."""
    return db.values(a_lesson, "SELECT * FROM lessons ORDER BY id DESC LIMIT ?", count)


def lessons_since(db: Database, session: str, moment: float) -> list[Lesson]:
    """List the lessons learned in the session of that name since a moment, oldest first."""
    sql = "SELECT * FROM lessons WHERE session = ? AND learned_at >= ? ORDER BY id"
    return db.values(a_lesson, sql, session, moment)


def fitting_lessons(db: Database, query: str) -> list[Lesson]:
    """List the lessons that match a search (`words.match`), best first."""
    return db.values(
        a_lesson,
        """SELECT lessons.*, -bm25(lesson_words) AS score FROM lesson_words
        JOIN lessons ON lessons.id = lesson_words.rowid WHERE lesson_words MATCH ?
        ORDER BY score DESC, lessons.id DESC LIMIT ?""",
        query, TOLD,
    )  # fmt: skip


def a_lesson(row: Row) -> Lesson:
    return row.read(Lesson, number=row.count("id"), score=row.real("score") if row.has("score") else 0.0)
