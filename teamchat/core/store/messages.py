"""The message log of a stored session: the same protocol as the log in memory, over SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Protocol, TypeVar

from msgspec import DecodeError, convert
from msgspec.json import Decoder
from msgspec.structs import replace

from teamchat.core.errors import NoMessage, UsageError
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Span, Speaker, SpeakerType
from teamchat.core.routing.requests import quoted
from teamchat.core.store.counting import LAST_NUMBER, count_if_due, count_messages
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import MESSAGES, place_of
from teamchat.core.store.rows import Row
from teamchat.core.store.summaries import add_clear
from teamchat.core.store.turns import LARGEST
from teamchat.patterns import regex

# The FTS5 index of the messages' words.
#
# Adding one message takes as long as storing it, and adding hundreds hardly longer. So messages are added together:
# some hundreds while they are stored, and what is missing before a search. The latest time of them is kept, too, so
# that a search from a time on begins near it.

INDEXED = 1_000_000  # characters at the beginning of a message
INDEXED_TOGETHER = 256  # messages
LONG = 20_000  # characters; for a longer message the cost of beginning does not matter
AT_ONCE = 2_000_000  # characters that are added in one transaction, which keeps others from writing
BEHIND = "SELECT through FROM indexed WHERE through < (SELECT MAX(id) FROM messages)"
"""The id of the last message in the index, if there are later ones."""
NEXT_TO_INDEX = "SELECT id, length(content) AS size FROM messages WHERE id > ? ORDER BY id LIMIT ?"
ADD = f"""INSERT INTO message_text (rowid, content)
    SELECT id, spaced(substr(content, 1, {INDEXED})) FROM messages WHERE id > ? AND id <= ?"""  # noqa: S608 (our own words)

ADD_TIME = """INSERT INTO message_times SELECT MIN(id), MAX(timestamp) FROM messages WHERE id > ? AND id <= ?
    ON CONFLICT DO UPDATE SET latest = max(latest, excluded.latest)"""


def index_if_due(db: Database, message: int, content: str) -> None:
    """Add what is missing if that is much, in the transaction that stores the message of the id `message`."""
    if message % INDEXED_TOGETHER == 0 or len(content) > LONG:
        index_messages(db)


def index_messages(db: Database) -> None:
    """Add the words of every message that is not in the index yet."""
    while db.scalar(int, BEHIND) is not None:
        with db.transaction():
            _index_some(db)


def _index_some(db: Database) -> None:
    begin = db.scalar(int, BEHIND)
    if begin is None:  # another process has added them
        return
    through, size = begin, 0
    for message, length in db.values(
        lambda row: (row.integer("id"), row.integer("size")), NEXT_TO_INDEX, begin, INDEXED_TOGETHER
    ):
        if size and size + length > AT_ONCE:
            break
        through, size = message, size + length
    db.execute(ADD, begin, through)
    db.execute(ADD_TIME, begin, through)
    db.execute("UPDATE indexed SET through = ?", through)


# The messages and the task of a conversation: the protocol of every log, and the log in memory.
#
# `ContextManager` works on any log. Every log has to pass the contract in `tests/core/store/message_log_contract.py`.

NOT_EMPTY = "a conversation can only be restored into an empty one"
_NUMBERED = regex(r"msg-([0-9]{1,18})")  # a longer number may not fit into the 64 bits of a store
MOST_COUNTED = 10**18 - 1
"""The greatest N of a `msg-N` that counts. Only a greater one may be taken though it is more than all that count."""


class MessageLog(Protocol):
    """Messages in the order they were said, and the team task. An id that is not in the log is a `KeyError`."""

    team_task: str | None

    def append(self, draft: NewMessage) -> ConversationMessage:
        """Store the message under the next id: `msg-1`, `msg-2`, ..."""
        ...

    def latest(self, up_to: str | None = None) -> ConversationMessage | None:
        """The newest message, or the newest at or before the one of the id `up_to`."""
        ...

    def window(self, before_id: str, size: int) -> Sequence[ConversationMessage]:
        """The newest `size` messages before the one of that id, oldest first, at a cost of O(size)."""
        ...

    def get(self, message_id: str) -> ConversationMessage:
        """The message of that id."""
        ...

    def place(self, message_id: str) -> int:
        """Where the message of that id stands: greater for a later one."""
        ...

    def all(self) -> Sequence[ConversationMessage]:
        """Every message, in a sequence of the caller's own."""
        ...

    def restore(self, messages: Iterable[ConversationMessage], team_task: str | None) -> None:
        """Fill an empty log with an imported conversation and its ids, which must be unique; the next id follows.

        Raises `UsageError`, and changes nothing, when there are messages already.
        """
        ...

    def is_imported(self, message_id: str) -> bool:
        """Whether the message was read from a file: nobody said it here, to whomever the file says it was said."""
        ...

    def clear(self) -> None:
        """Begin anew: without messages and task, with the first id; a store only has prompts begin anew."""
        ...

    def when_stored(self, tell: Callable[[], None]) -> None:
        """Call `tell` once what was written so far is stored; never if it is taken back."""
        ...


def free_number(number: int, taken: Callable[[str], bool]) -> int:
    """The least number from `number` on whose `msg-N` is not taken."""
    return next(free for free in count(number) if not taken(f"msg-{free}"))


def next_number(messages: Iterable[ConversationMessage]) -> int:
    """One more than the greatest `msg-N` of at most 18 digits; ids of any other form do not count.

    An id of more digits may have that number; `free_number` passes over it.
    """
    matches = (_NUMBERED.fullmatch(message.id) for message in messages)
    return max((int(match[1]) for match in matches if match), default=0) + 1


class MemoryLog:
    """A log in memory."""

    def __init__(self) -> None:
        self.team_task: str | None = None
        self._messages: list[ConversationMessage] = []
        self._places: dict[str, int] = {}
        self._imported = frozenset[str]()
        self._next = 1

    def append(self, draft: NewMessage) -> ConversationMessage:
        number = free_number(self._next, self._places.__contains__)
        message = draft.stored_as(f"msg-{number}")
        self._next = number + 1
        self._places[message.id] = len(self._messages)
        self._messages.append(message)
        return message

    def latest(self, up_to: str | None = None) -> ConversationMessage | None:
        if up_to is not None:
            return self.get(up_to)
        return self._messages[-1] if self._messages else None

    def window(self, before_id: str, size: int) -> list[ConversationMessage]:
        end = self._places[before_id]
        return self._messages[max(end - size, 0) : end]

    def get(self, message_id: str) -> ConversationMessage:
        return self._messages[self._places[message_id]]

    def place(self, message_id: str) -> int:
        return self._places[message_id]

    def all(self) -> list[ConversationMessage]:
        return list(self._messages)

    def clear(self) -> None:
        self.team_task = None
        self._messages, self._places, self._imported, self._next = [], {}, frozenset(), 1

    def when_stored(self, tell: Callable[[], None]) -> None:
        tell()

    def restore(self, messages: Iterable[ConversationMessage], team_task: str | None) -> None:
        if self._messages:
            raise UsageError(NOT_EMPTY)
        self.team_task = team_task
        self._messages = list(messages)
        self._places = {message.id: place for place, message in enumerate(self._messages)}
        self._next = next_number(self._messages)
        self._imported = frozenset(self._places)

    def is_imported(self, message_id: str) -> bool:
        return message_id in self._imported


COLUMNS = """messages.id, messages.message, content, speaker_id, speaker_name, speaker_title, speaker_type, routing,
    turn, timestamp, stands_for, typed, pasted, (SELECT agent FROM turns WHERE turns.id = messages.turn) AS agent"""
"""What a message is made of."""

_Routing = tuple[tuple[str, ...], tuple[str, ...]]
_spans = Decoder(tuple[Span, ...]).decode


def a_message(row: Row) -> ConversationMessage:
    """The message of a row. Raises `ValueError` for what a healthy store cannot hold."""
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
    """The stored parts of a text. Raises `ValueError` for what a healthy store cannot hold."""
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
    """The messages and the task of one session. Hidden messages are no part of the log, but keep their ids.

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
        """The message of that id; with `hidden` it may be one that was undone."""
        return self._found(a_message, message_id, EVERY if hidden else SHOWN)

    def place(self, message_id: str) -> int:
        return self._found(_place, message_id)

    def _found(self, make: Callable[[Row], T], message_id: str, among: str = SHOWN) -> T:
        found = self._db.value(make, f"{among} AND messages.message = ?3", self.session, LARGEST, message_id)
        if found is None:
            raise self._no_message(message_id)
        return found

    def _no_message(self, message_id: str) -> NoMessage:
        session = self._db.scalar(str, "SELECT name FROM sessions WHERE id = ?", self.session)
        name = quoted(message_id)
        undone = self.has(message_id)
        return NoMessage(
            f"message {name} was undone" if undone else f"session {session} has no message {name}",
            "teamchat log --all" if undone else "teamchat log",
        )

    def is_imported(self, message_id: str) -> bool:
        return bool(self._found(_imported, message_id, f"SELECT imported {FROM}"))

    def all(self) -> list[ConversationMessage]:
        return list(self.newest(0))

    def newest(self, count: int, *, hidden: bool = False) -> Iterator[ConversationMessage]:
        """The last `count` messages, all with 0, the oldest first; each is read when it is asked for.

        With `hidden` those are among them that were undone.
        """
        which = "" if hidden else NOT_HIDDEN
        last = f"SELECT messages.id FROM {MESSAGES} WHERE lineage.session = ?1 {which} {NEWEST_FIRST} LIMIT ?3"  # noqa: S608
        first = f"(SELECT COALESCE(MIN(id), 0) FROM ({last}))"  # noqa: S608 (our own words)
        sql = f"{EVERY} {which} AND messages.id >= {first} {OLDEST_FIRST}"
        return self._db.each(a_message, sql, self.session, LARGEST, min(count, LARGEST) or -1)

    def later(self, message_id: str) -> Iterator[ConversationMessage]:
        """The messages after the one of that id, in order. Each is read when it is asked for."""
        sql = f"{SHOWN} AND messages.id > ?3 {OLDEST_FIRST}"
        return self._db.each(a_message, sql, self.session, LARGEST, self.place(message_id))

    def after(self, place: int) -> Iterator[ConversationMessage]:
        """The session's own messages after a place, 0 for all, in order. Each is read when it is asked for."""
        return self._db.each(a_message, OWN_AFTER, self.session, LARGEST, place)

    def placed_after(self, place: int) -> dict[int, ConversationMessage]:
        """The same by their places."""

        def make(row: Row) -> tuple[int, ConversationMessage]:
            return _place(row), a_message(row)

        return dict(self._db.values(make, OWN_AFTER, self.session, LARGEST, place))

    def last_place(self) -> int:
        """The place of the session's own newest message, hidden or not; 0 without one."""
        return self._db.number("SELECT COALESCE(MAX(id), 0) FROM messages WHERE session = ?", self.session)

    def is_hidden(self, message_id: str) -> bool:
        """Whether the message of that id was undone."""
        place = place_of(self._db, self.session, message_id)
        return self._db.row("SELECT 1 FROM hides WHERE session = ? AND message = ?", self.session, place) is not None

    def hidden(self) -> frozenset[str]:
        """The ids of the messages that were undone."""
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


def _place(row: Row) -> int:
    return row.integer("id")


def _imported(row: Row) -> int:
    return row.integer("imported")
