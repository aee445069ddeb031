"""Whatever a turn's events were, what is read of them has every tool call with its result."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.store.turn_events import StoredEvent, paired, tool_calls


def call(tool: str, at: float = 0.0) -> StoredEvent:
    return StoredEvent(at, "ToolCall", {"id": tool, "name": "Bash", "summary": "ls"})


def result(tool: str, output: str = "file", at: float = 0.0) -> StoredEvent:
    return StoredEvent(at, "ToolResult", {"id": tool, "output": output, "failed": False, "paths": []})


def text(said: str) -> StoredEvent:
    return StoredEvent(0.0, "Text", {"text": said})


TOOLS = st.sampled_from("abc")
EVENTS = st.lists(
    st.one_of(TOOLS.map(call), st.builds(result, TOOLS, st.text(max_size=2)), st.text(max_size=2).map(text)),
    max_size=12,
)


def balanced(events: list[StoredEvent]) -> bool:
    """Whether no result comes before its call, and none of either is alone."""
    open_calls: Counter[str] = Counter()
    for event in events:
        if event.type == "ToolCall":
            open_calls[event.data["id"]] += 1
        elif event.type == "ToolResult":
            open_calls[event.data["id"]] -= 1
            if open_calls[event.data["id"]] < 0:
                return False
    return not +open_calls


def made_up(events: list[StoredEvent], before: list[StoredEvent]) -> list[StoredEvent]:
    old = {id(event) for event in before}
    return [event for event in events if id(event) not in old]


@given(EVENTS)
def test_pairs_are_whole_whatever_came(events: list[StoredEvent]) -> None:
    assert balanced(paired(events))


@given(EVENTS)
def test_nothing_else_changes_and_the_order_is_kept(events: list[StoredEvent]) -> None:
    whole = paired(events)
    old = {id(event): place for place, event in enumerate(events)}
    places = [old[id(event)] for event in whole if id(event) in old]
    assert places == sorted(places)
    dropped = set(range(len(events))) - set(places)
    assert all(events[place].type == "ToolResult" for place in dropped)
    assert all(event.data["output"] == "aborted" for event in made_up(whole, events))


@given(EVENTS)
def test_a_made_up_result_stands_right_behind_its_call(events: list[StoredEvent]) -> None:
    whole = paired(events)
    new = {id(event) for event in made_up(whole, events)}
    for before, event in pairwise(whole):
        if id(event) in new:
            assert (before.type, before.data["id"], before.at) == ("ToolCall", event.data["id"], event.at)
    assert whole[:1] == [] or id(whole[0]) not in new


@given(EVENTS)
def test_what_is_whole_stays_as_it_is(events: list[StoredEvent]) -> None:
    whole = paired(events)
    assert paired(whole) == whole


@given(EVENTS)
def test_calls_are_read_with_their_own_results(events: list[StoredEvent]) -> None:
    whole = paired(events)
    pairs = tool_calls(whole)
    assert [call for call, _ in pairs] == [event for event in whole if event.type == "ToolCall"]
    assert all(call.data["id"] == result.data["id"] for call, result in pairs)
    assert sorted(id(result) for _, result in pairs) == sorted(id(one) for one in whole if one.type == "ToolResult")


def test_a_call_that_was_cut_short_is_told_as_aborted() -> None:
    aborted = StoredEvent(2.5, "ToolResult", {"id": "a", "output": "aborted", "failed": True, "paths": []})
    assert paired([call("a", 2.5), text("so")]) == [call("a", 2.5), aborted, text("so")]


def test_calls_at_the_same_time_keep_their_own_results() -> None:
    events = [call("a"), call("b"), result("b"), result("a")]
    assert paired(events) == events
    assert tool_calls(events) == [(events[0], events[3]), (events[1], events[2])]


def test_a_result_without_a_call_goes() -> None:
    assert paired([result("a"), call("a"), result("a", "late"), result("a", "again")]) == [
        call("a"),
        result("a", "late"),
    ]


def test_a_call_that_comes_again_has_its_own_result() -> None:
    aborted = StoredEvent(0.0, "ToolResult", {"id": "a", "output": "aborted", "failed": True, "paths": []})
    assert paired([call("a"), call("a"), result("a")]) == [call("a"), aborted, call("a"), result("a")]
