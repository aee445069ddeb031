"""Pairs tool calls with their results: every reader of a turn's events gets both or neither.

A CLI that is stopped leaves calls without results, and a damaged stream may lack either. The store keeps the events as
they came. Every reader gets them from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

CALL, RESULT = "ToolCall", "ToolResult"
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
