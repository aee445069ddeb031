"""The message log of a stored session: the same protocol as the log in memory, over SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from msgspec import DecodeError, convert
from msgspec.json import Decoder
from msgspec.structs import replace

from teamchat.core.errors import NoMessage, UsageError
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Span, Speaker, SpeakerType
from teamchat.core.routing.requests import quoted
from teamchat.core.store.counting import LAST_NUMBER, count_if_due, count_messages
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import MESSAGES, place_of
from teamchat.core.store.message_index import index_if_due
from teamchat.core.store.message_log import MOST_COUNTED, NOT_EMPTY, free_number, next_number
from teamchat.core.store.rows import Row
from teamchat.core.store.summaries import add_clear
from teamchat.core.store.turns import LARGEST

COLUMNS = """messages.id, messages.message, content, speaker_id, speaker_name, speaker_title, speaker_type, routing,
    turn, timestamp, stands_for, typed, pasted, (SELECT agent FROM turns WHERE turns.id = messages.turn) AS agent"""
"""The columns that a message is read from."""

_Routing = tuple[tuple[str, ...], tuple[str, ...]]
_spans = Decoder(tuple[Span, ...]).decode


def a_message(row: Row) -> ConversationMessage:
    """Make the message of a row. Raises `ValueError` for values that no healthy store can hold."""
    return ConversationMessage(
        id=row.text("message"),
        content=row.text("content"),
        speaker=Speaker(
            row.text("speaker_id"),
            row.text("speaker_name"),
            role_title=row.text_or_none("speaker_title"),
            type=row.one_of(SpeakerType, "speaker_type"),
        ),
        routing=Routing(*convert(row.json("routing"), _Routing)),
        timestamp=row.integer("timestamp"),
        turn_id=row.integer_or_none("turn"),
        stands_for=row.text_or_none("stands_for"),
        agent=row.text_or_none("agent"),
        typed=row.count("typed"),
        pasted=spans(row.text("pasted")),
    )


def spans(stored: str) -> tuple[Span, ...]:
    """Read the stored parts of a text. Raises `ValueError` for values that no healthy store can hold."""
    try:
        return () if stored == "[]" else _spans(stored)
    except DecodeError as error:
        raise ValueError(f"pasted is wrong: {error}") from error


def stored_spans(pasted: tuple[Span, ...]) -> str:
    return json.dumps(pasted) if pasted else "[]"


def stored_routing(routing: Routing) -> str:
    return json.dumps([routing.resolved_addressees, routing.raw_next_markers])


NEXT = f"SELECT max({LAST_NUMBER}, shared) + 1 FROM sessions WHERE id = ?"  # noqa: S608 (our own words)
ANY = f"SELECT messages.id FROM {MESSAGES} WHERE lineage.session = ? LIMIT 1"  # noqa: S608 (our own words)
FROM = f"FROM {MESSAGES} AND messages.id <= ?2 WHERE lineage.session = ?1"
EVERY = f"SELECT {COLUMNS} {FROM}"
NOT_HIDDEN = "AND NOT EXISTS (SELECT 1 FROM hides WHERE hides.session = ?1 AND hides.message = messages.id)"
SHOWN = f"{EVERY} {NOT_HIDDEN}"
"""The messages of session ?1 up to the id ?2."""
NEWEST_FIRST = "ORDER BY lineage.through DESC, messages.id DESC"
OLDEST_FIRST = "ORDER BY lineage.through, messages.id"
OWN_AFTER = f"{SHOWN} AND +lineage.ancestor = ?1 AND messages.id > ?3 {OLDEST_FIRST}"
"""Without the `+`, SQLite takes the index by ancestor, and reads a row for every branch of the session."""

T = TypeVar("T")


class SqliteLog:
    """The messages and the task of one session. Hidden messages are not part of the log, but keep their ids.

    A restored message belongs to no turn: its turn is in another session.
    """

    def __init__(self, db: Database, session: int) -> None:
        self._db = db
        self.session = session

    @property
    def team_task(self) -> str | None:
        return self._db.scalar(str, "SELECT task FROM sessions WHERE id = ?", self.session)

    @team_task.setter
    def team_task(self, task: str | None) -> None:
        self._db.execute("UPDATE sessions SET task = ? WHERE id = ?", task, self.session)

    def append(self, draft: NewMessage) -> ConversationMessage:
        with self._db.transaction():
            number = self._db.number(NEXT, self.session)
            number = free_number(number, self.has) if number > MOST_COUNTED else number
            message = draft.stored_as(f"msg-{number}")
            self._insert(message, number)
            count_if_due(self._db, self.session, number)
        return message

    def clear(self) -> None:
        """Have prompts begin after the newest message, and remove the task. Messages and their ids stay."""
        if newest := self.latest():
            add_clear(self._db, self.session, newest.id)
        else:
            self.team_task = None

    def when_stored(self, tell: Callable[[], None]) -> None:
        self._db.when_stored(tell)

    def has(self, message_id: str) -> bool:
        """Whether a message of the session has that id; a hidden one keeps it."""
        return place_of(self._db, self.session, message_id) is not None

    def _insert(self, message: ConversationMessage, number: int | None) -> None:
        speaker = message.speaker
        inserted = self._db.execute(
            "INSERT INTO messages (session, message, number, content, speaker_id, speaker_name, speaker_title,"
            " speaker_type, routing, turn, timestamp, stands_for, typed, pasted)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            self.session, message.id, number, message.content, speaker.role_id, speaker.role_name,
            speaker.role_title, speaker.type, stored_routing(message.routing), message.turn_id,
            message.timestamp, message.stands_for, message.typed, stored_spans(message.pasted),
        )  # fmt: skip
        index_if_due(self._db, inserted.lastrowid or 0, message.content)

    def latest(self, up_to: str | None = None) -> ConversationMessage | None:
        if up_to is not None:
            return self.get(up_to)
        return self._db.value(a_message, f"{SHOWN} {NEWEST_FIRST} LIMIT 1", self.session, LARGEST)

    def window(self, before_id: str, size: int) -> list[ConversationMessage]:
        before = self.place(before_id) - 1
        return self._db.values(a_message, f"{SHOWN} {NEWEST_FIRST} LIMIT ?3", self.session, before, size)[::-1]

    def get(self, message_id: str, *, hidden: bool = False) -> ConversationMessage:
        """Return the message with that id; with `hidden`, it may be an undone one."""
        return self._found(a_message, message_id, EVERY if hidden else SHOWN)

    def place(self, message_id: str) -> int:
        return self._found(lambda row: row.integer("id"), message_id)

    def _found(self, make: Callable[[Row], T], message_id: str, among: str = SHOWN) -> T:
        made = self._db.value(make, f"{among} AND messages.message = ?3", self.session, LARGEST, message_id)
        if made is None:
            raise self._no_message(message_id)
        return made

    def _no_message(self, message_id: str) -> NoMessage:
        session = self._db.scalar(str, "SELECT name FROM sessions WHERE id = ?", self.session)
        name = quoted(message_id)
        undone = self.has(message_id)
        return NoMessage(
            f"message {name} was undone" if undone else f"session {session} has no message {name}",
            "teamchat log --all" if undone else "teamchat log",
        )

    def is_imported(self, message_id: str) -> bool:
        return self._found(lambda row: bool(row.integer("imported")), message_id, f"SELECT imported {FROM}")

    def all(self) -> list[ConversationMessage]:
        return list(self.newest(0))

    def newest(self, count: int, *, hidden: bool = False) -> Iterator[ConversationMessage]:
        """Read the last `count` messages one by one, oldest first; all of them if it is 0.

        With `hidden`, undone messages are included.
        """
        which = "" if hidden else NOT_HIDDEN
        last = f"SELECT messages.id FROM {MESSAGES} WHERE lineage.session = ?1 {which} {NEWEST_FIRST} LIMIT ?3"  # noqa: S608
        first = f"(SELECT COALESCE(MIN(id), 0) FROM ({last}))"  # noqa: S608 (our own words)
        sql = f"{EVERY} {which} AND messages.id >= {first} {OLDEST_FIRST}"
        return self._db.each(a_message, sql, self.session, LARGEST, min(count, LARGEST) or -1)

    def later(self, message_id: str) -> Iterator[ConversationMessage]:
        """Read the messages after the one with that id, one by one, in order."""
        sql = f"{SHOWN} AND messages.id > ?3 {OLDEST_FIRST}"
        return self._db.each(a_message, sql, self.session, LARGEST, self.place(message_id))

    def after(self, place: int) -> Iterator[ConversationMessage]:
        """Read the session's own messages after a place (0 for all), one by one, in order."""
        return self._db.each(a_message, OWN_AFTER, self.session, LARGEST, place)

    def is_hidden(self, message_id: str) -> bool:
        """Whether the message with that id was undone."""
        place = place_of(self._db, self.session, message_id)
        return self._db.row("SELECT 1 FROM hides WHERE session = ? AND message = ?", self.session, place) is not None

    def hidden(self) -> frozenset[str]:
        """Return the ids of the undone messages."""
        sql = "SELECT messages.message FROM hides JOIN messages ON messages.id = hides.message WHERE hides.session = ?"
        return frozenset(self._db.column(str, sql, self.session))

    def restore(self, messages: Iterable[ConversationMessage], team_task: str | None) -> None:
        with self._db.transaction():
            if self._db.row(ANY, self.session) is not None:
                raise UsageError(NOT_EMPTY)
            self.team_task = team_task
            for message in messages:
                number = next_number((message,)) - 1
                self._insert(replace(message, turn_id=None), number or None)
            self._db.execute("UPDATE messages SET imported = 1 WHERE session = ?", self.session)
            count_messages(self._db, self.session)
