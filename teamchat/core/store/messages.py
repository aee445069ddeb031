"""The message log of a stored session: the same protocol as the log in memory, over SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from teamchat.core.message_log import next_number
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import create_session

SHOWN = (
    "SELECT *, (SELECT agent FROM turns WHERE turns.id = messages.turn) AS agent FROM messages"
    " WHERE session = ? AND NOT hidden"
)


class SqliteLog:
    """The messages and the task of one session. Hidden messages (undone ones) are not part of the log.

    `session` changes when the log is cleared or replaced: the old conversation stays in the store.
    """

    def __init__(self, db: Database, session: int) -> None:
        self._db = db
        self.session = session

    @property
    def team_task(self) -> str | None:
        row = self._db.row("SELECT task FROM sessions WHERE id = ?", self.session)
        return row["task"] if row else None

    @team_task.setter
    def team_task(self, task: str | None) -> None:
        self._db.execute("UPDATE sessions SET task = ? WHERE id = ?", task, self.session)

    def append(self, draft: NewMessage) -> ConversationMessage:
        with self._db.transaction():
            row = self._db.row("SELECT COALESCE(MAX(number), 0) + 1 FROM messages WHERE session = ?", self.session)
            assert row is not None
            message = draft.stored_as(f"msg-{row[0]}")
            self._insert(message, row[0])
        return message

    def _insert(self, message: ConversationMessage, number: int | None) -> None:
        speaker, routing = message.speaker, message.routing
        self._db.execute(
            "INSERT INTO messages (session, message, number, content, speaker_id, speaker_name, speaker_title,"
            " speaker_type, routing, turn, timestamp, stands_for) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            self.session, message.id, number, message.content, speaker.role_id, speaker.role_name, speaker.role_title,
            speaker.type, json.dumps([routing.resolved_addressees, routing.raw_next_markers]), message.turn_id,
            message.timestamp, message.stands_for,
        )  # fmt: skip

    def latest(self, up_to: str | None = None) -> ConversationMessage | None:
        if up_to is not None:
            return self.get(up_to)
        row = self._db.row(f"{SHOWN} ORDER BY id DESC LIMIT 1", self.session)
        return _message(row) if row else None

    def window(self, before_id: str, size: int) -> list[ConversationMessage]:
        place = self._row(before_id)["id"]
        rows = self._db.rows(f"{SHOWN} AND id < ? ORDER BY id DESC LIMIT ?", self.session, place, size)
        return [_message(row) for row in reversed(rows)]

    def get(self, message_id: str) -> ConversationMessage:
        return _message(self._row(message_id))

    def place(self, message_id: str) -> int:
        return int(self._row(message_id)["id"])

    def _row(self, message_id: str) -> sqlite3.Row:
        row = self._db.row(f"{SHOWN} AND message = ?", self.session, message_id)
        if row is None:
            raise KeyError(message_id)
        return row

    def all(self) -> list[ConversationMessage]:
        return [_message(row) for row in self._db.rows(f"{SHOWN} ORDER BY id", self.session)]

    def clear(self) -> None:
        self.replace((), None)

    def replace(self, messages: Iterable[ConversationMessage], team_task: str | None) -> None:
        with self._db.transaction():
            row = self._db.row("SELECT team FROM sessions WHERE id = ?", self.session)
            assert row is not None
            self.session = create_session(self._db, row["team"], team_task).id
            for message in messages:
                number = next_number((message,)) - 1
                self._insert(message, number or None)


def _message(row: sqlite3.Row) -> ConversationMessage:
    addressees, markers = json.loads(row["routing"])
    return ConversationMessage(
        id=row["message"],
        content=row["content"],
        speaker=Speaker(row["speaker_id"], row["speaker_name"], row["speaker_title"], type=row["speaker_type"]),
        routing=Routing(tuple(addressees), tuple(markers)),
        timestamp=row["timestamp"],
        turn_id=row["turn"],
        stands_for=row["stands_for"],
        agent=row["agent"],
    )
