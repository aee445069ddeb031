"""What agents did in their turns, as rows: many events in one, and a long text in several.

Every reader of a turn's events gets a tool call with its result, or neither.

A turn may have a hundred thousand events, or one of hundreds of megabytes. A statement for each event would take long,
and a row for such a text several times its memory. Earlier versions stored each event in a row of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct, convert, to_builtins
from msgspec.json import encode
from msgspec.structs import replace

from teamchat.core.store.rows import Row, load
from teamchat.runners.events import SHOWN_ONLY, AgentEvent, Error, Note, Question, Text, Thinking, ToolResult
from teamchat.runners.growing import joined

if TYPE_CHECKING:
    from teamchat.core.store.database import Database

BATCH = "batch"  # in the place of an event's type: the row has a JSON array of `[at, type, fields]`
CONTINUES = "continues"  # a field of a part: its long text continues that of the event before it
PART = 256 * 1024  # characters of a text in one part
FULL = 64 * 1024  # bytes after which a row is full
_TEXTS = (Text, Thinking, Question, Note, Error)
LONG: dict[type[AgentEvent], str] = {**dict.fromkeys(_TEXTS, "text"), ToolResult: "output"}
"""The fields that may be long."""
KINDS = {kind.__name__: kind for kind in get_args(AgentEvent)}
SELECT = "SELECT at, type, data FROM turn_events WHERE turn = ? ORDER BY number"


class TimedEvent(Struct, frozen=True, gc=False):
    """An agent event and when it came, in seconds since the turn began."""

    at: float
    event: AgentEvent


def put_events(db: Database, turn: int, events: Iterable[TimedEvent]) -> None:
    """Store the events of a turn; part of the caller's transaction."""
    rows = ((turn, number, at, BATCH, data) for number, (at, data) in enumerate(_rows(events)))
    db.executemany("INSERT INTO turn_events VALUES (?, ?, ?, ?, ?)", rows)


def _rows(events: Iterable[TimedEvent]) -> Iterator[tuple[float, str]]:
    """The time of the first event in each row, and the row's JSON."""
    begun, parts, size = 0.0, list[bytes](), 0
    for timed in events:
        if isinstance(timed.event, SHOWN_ONLY):
            continue
        at = round(timed.at, 3)
        begun = begun if parts else at
        for part in _parts(at, timed.event):
            parts.append(part)
            size += len(part)
            if size >= FULL:
                yield begun, _array(parts)
                begun, parts, size = at, [], 0
    if parts:
        yield begun, _array(parts)


def _array(parts: list[bytes]) -> str:
    return f"[{b','.join(parts).decode()}]"


def _parts(at: float, event: AgentEvent) -> Iterator[bytes]:
    kind = type(event)
    name = LONG.get(kind)
    if name is None or len(text := getattr(event, name)) <= PART:
        yield _in_json((at, kind.__name__, event))
        return
    fields = {field: getattr(event, field) for field in event.__struct_fields__}
    yield _in_json((at, kind.__name__, {**fields, name: text[:PART]}))
    for begin in range(PART, len(text), PART):
        yield _in_json((at, kind.__name__, {**fields, name: text[begin : begin + PART], CONTINUES: True}))


def _in_json(part: tuple[float, str, object]) -> bytes:
    try:
        return encode(part)
    except UnicodeEncodeError:  # surrogates cannot be stored; JSON's escapes, up to six times as long, keep them
        return json.dumps(to_builtins(part)).encode()


def some_events(row: Row) -> list[StoredEvent]:
    """The events of a row, or parts of them. Raises `ValueError`."""
    at, kind, data = row.real("at"), row.text("type"), row.json("data")
    if kind != BATCH:
        return [_part(at, kind, data)]
    return [_part(*part) for part in convert(data, list[tuple[float, str, dict[str, Any]]])]


def _part(at: float, kind: str, fields: dict[str, Any]) -> StoredEvent:
    if kind not in KINDS:
        raise ValueError(f"type is {kind!r:.40}")
    load(KINDS[kind], fields)
    if CONTINUES in fields and KINDS[kind] not in LONG:
        raise ValueError(f"{kind} continues a text")
    return StoredEvent(at, kind, fields)


def stored_events(db: Database, turn: int) -> list[StoredEvent]:
    """A stored turn's events, every tool call with its result."""
    return paired(_whole(_stored_parts(db, turn)))


def first_events(db: Database, turn: int, most: int, characters: int) -> tuple[list[StoredEvent], bool]:
    """At most so many of a turn's events with little more than so many characters, and whether that is all.

    Every tool call has a result: the one of a call at the end says "aborted". What the model thought is left out.
    """
    parts = (part for part in _stored_parts(db, turn) if part.type != Thinking.__name__)
    kept = list[StoredEvent]()
    for part in parts:
        kept.append(part)
        characters -= sum(len(value) for value in part.data.values() if isinstance(value, str))
        if characters < 0 or len(kept) >= most:
            return paired(_whole(kept)), next(parts, None) is None
    return paired(_whole(kept)), True


def _stored_parts(db: Database, turn: int) -> Iterator[StoredEvent]:
    return (event for some in db.each(some_events, SELECT, turn) for event in some)


def agent_events(db: Database, turn: int) -> list[AgentEvent]:
    """The same as they came, without the pieces of streamed text, which are not stored."""
    return [load(KINDS[event.type], event.data) for event in _whole(_stored_parts(db, turn))]


def _whole(parts: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
    """The events of the parts, in order."""
    last: StoredEvent | None = None
    more: list[str] = []  # what continues the long text of `last`
    for part in parts:
        continues = part.data.pop(CONTINUES, False)
        if continues and last and part.type == last.type:
            more.append(part.data[LONG[KINDS[part.type]]])
            continue
        if last:
            yield _continued(last, more)
        last, more = part, []
    if last:
        yield _continued(last, more)


def _continued(event: StoredEvent, more: list[str]) -> StoredEvent:
    if not more:
        return event
    name = LONG[KINDS[event.type]]
    return replace(event, data={**event.data, name: joined([event.data[name], *more])})


CALL, RESULT = "ToolCall", "ToolResult"
# Pairs tool calls with their results: every reader of a turn's events gets both or neither.
#
# A CLI that is stopped leaves calls without results, and a damaged stream may lack either. The store keeps the events
# as they came. Every reader gets them from here.

ABORTED = "aborted"


class StoredEvent(Struct, frozen=True):
    """An event of a turn as it is stored: seconds since the turn began, the event's type, and its fields."""

    at: float
    type: str
    data: dict[str, Any]


def paired(events: Iterable[StoredEvent]) -> list[StoredEvent]:
    """The events in their order, a call without a result followed by one that says "aborted", no result without a call.

    A result belongs to the newest call of its id that has none yet.
    """
    events = list(events)
    partners = _partners(events)
    whole: list[StoredEvent] = []
    for place, event in enumerate(events):
        if event.type == RESULT and place not in partners:
            continue
        whole.append(event)
        if event.type == CALL and place not in partners:
            whole.append(_aborted(event))
    return whole


def tool_calls(events: Sequence[StoredEvent]) -> list[tuple[StoredEvent, StoredEvent]]:
    """Each call with its result, in the order of the calls. `events` are what `paired` returns."""
    partners = _partners(events)
    return [(event, events[partners[place]]) for place, event in enumerate(events) if event.type == CALL]


def _partners(events: Sequence[StoredEvent]) -> dict[int, int]:
    """The place of each half of a pair by that of the other."""
    open_calls: dict[str, list[int]] = {}
    partners: dict[int, int] = {}
    for place, event in enumerate(events):
        if event.type == CALL:
            open_calls.setdefault(event.data["id"], []).append(place)
        elif event.type == RESULT and (calls := open_calls.get(event.data["id"])):
            partners[place] = calls.pop()
            partners[partners[place]] = place
    return partners


def _aborted(call: StoredEvent) -> StoredEvent:
    data = {"id": call.data["id"], "output": ABORTED, "failed": True, "paths": []}
    return StoredEvent(call.at, RESULT, data)
