"""The actions of agents in their turns, an event in a row.

Every reader of a turn's events gets a tool call with its result, or neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from msgspec import Struct, convert

from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row, dump
from teamchat.runners.agent_events import SHOWN_ONLY, AgentEvent, Thinking

KINDS = {kind.__name__: kind for kind in get_args(AgentEvent)}
SELECT = "SELECT at, type, data FROM turn_events WHERE turn = ? ORDER BY number"
HALVES = """SELECT type, iif(json_valid(data), json_extract(data, '$.id'), NULL) AS id
    FROM turn_events WHERE turn = ? ORDER BY number"""


class TimedEvent(Struct, frozen=True, gc=False):
    """An agent event and when it came, in seconds since the turn began."""

    at: float
    event: AgentEvent


def put_events(db: Database, turn: int, events: Iterable[TimedEvent]) -> None:
    """Store the events of a turn; part of the caller's transaction."""
    stored = (timed for timed in events if not isinstance(timed.event, SHOWN_ONLY))
    rows = (
        (turn, number, round(timed.at, 3), type(timed.event).__name__, dump(timed.event))
        for number, timed in enumerate(stored)
    )
    db.executemany("INSERT INTO turn_events VALUES (?, ?, ?, ?, ?)", rows)


def an_event(row: Row) -> StoredEvent:
    """Read a stored event. Raises `ValueError`."""
    event = StoredEvent(row.real("at"), row.text("type"), row.json("data"))
    if event.type not in KINDS:
        raise ValueError(f"type is {event.type!r:.40}")
    convert(event.data, KINDS[event.type])
    return event


def stored_events(db: Database, turn: int) -> list[StoredEvent]:
    """List a stored turn's events, every tool call with its result."""
    return list(each_event(db, turn))


def each_event(db: Database, turn: int) -> Iterator[StoredEvent]:
    """Read a stored turn's events one by one, every tool call with its result: there may be hundreds of thousands."""
    alone = _alone(db.each(lambda row: (row.text("type"), row["id"]), HALVES, turn))
    return _whole(db.each(an_event, SELECT, turn), alone)


def first_events(db: Database, turn: int, most: int, characters: int) -> tuple[list[StoredEvent], bool]:
    """Read the first events of a turn, at most `most`, and say whether these are all.

    It stops at the event that exceeds `characters`. Every tool call has a result: the one of a call at the end says
    "aborted". The model's thoughts are left out.
    """
    events = (event for event in db.each(an_event, SELECT, turn) if event.type != Thinking.__name__)
    first = list[StoredEvent]()
    for event in events:
        first.append(event)
        characters -= sum(len(value) for value in event.data.values() if isinstance(value, str))
        if characters < 0 or len(first) >= most:
            return paired(first), next(events, None) is None
    return paired(first), True


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
    """Give each call without a result one that says "aborted", and drop results without a call; keep the order.

    A result belongs to the newest call of its id that has none yet.
    """
    events = list(events)
    return list(_whole(events, _alone((event.type, event.data.get("id")) for event in events)))


def _whole(events: Iterable[StoredEvent], alone: set[int]) -> Iterator[StoredEvent]:
    """Complete the events; `alone` holds the places of calls without a result, and of results without a call."""
    for place, event in enumerate(events):
        if place in alone and event.type == RESULT:
            continue
        yield event
        if place in alone and event.type == CALL:
            yield _aborted(event)


def _alone(halves: Iterable[tuple[str, object]]) -> set[int]:
    """Find the places of calls and results whose other half is missing, among events by type and id."""
    open_calls, results = dict[object, list[int]](), set[int]()
    for place, (kind, name) in enumerate(halves):
        calls = open_calls.get(name)
        if kind == CALL:
            open_calls.setdefault(name, []).append(place)
        elif kind == RESULT and calls:
            calls.pop()
        elif kind == RESULT:
            results.add(place)
    return results.union(*open_calls.values())


def tool_calls(events: Sequence[StoredEvent]) -> list[tuple[StoredEvent, StoredEvent]]:
    """List each call with its result, in the order of the calls. `events` come from `paired`."""
    partners = _partners(events)
    return [(event, events[partners[place]]) for place, event in enumerate(events) if event.type == CALL]


def _partners(events: Sequence[StoredEvent]) -> dict[int, int]:
    """Map the place of each half of a pair to that of the other."""
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
