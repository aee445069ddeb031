"""The todo list as a pure function of its changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.routing.todos import (
    LONGEST_TODO,
    MOST_OPEN,
    Add,
    Change,
    Finish,
    Noted,
    TodoList,
    Wish,
    apply_wishes,
    read_todos,
    rendered,
    todo_number,
    todo_text,
)


def noted(*wishes: Wish, before: tuple[Change, ...] = (), by: str = "max", message: str | None = None) -> Noted:
    return apply_wishes(read_todos(before), wishes, by, 0.0, message)


def changed(*wishes: Wish, before: tuple[Change, ...] = (), by: str = "max", message: str | None = None) -> TodoList:
    return read_todos([*before, *noted(*wishes, before=before, by=by, message=message).changes])


def test_items_are_numbered_in_order_and_closed_by_number() -> None:
    todos = changed(Add("a"), Add("b"), Add("c"), Finish(2))
    assert [(item.number, item.added.text, item.done is not None) for item in todos.items.values()] == [
        (1, "a", False),
        (2, "b", True),
        (3, "c", False),
    ]
    assert ([item.number for item in todos.open], todos.done) == ([1, 3], 1)


def test_a_number_that_is_not_there_is_told_and_the_others_are_closed() -> None:
    found = noted(Add("a"), Add("b"), Finish(7), Finish(1), Finish(9), Finish(7))
    assert found.unknown == (7, 9)
    assert found.problems == ("there is no todo 7, 9 (open: 2)",)
    assert [change.what for change in found.changes] == ["added", "added", "done"]


def test_an_item_can_be_closed_by_the_message_that_adds_it_but_not_before() -> None:
    assert noted(Add("a"), Finish(1)).problems == ()
    assert noted(Finish(1), Add("a")).problems == ("there is no todo 1 (open: 1)",)


def test_many_unknown_numbers_are_told_in_one_short_line() -> None:
    (problem,) = noted(*map(Finish, range(10_000))).problems
    assert problem == "there is no todo 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (open: none)"
    assert noted(*map(Finish, range(10))).problems == ("there is no todo 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 (open: none)",)


def test_a_long_text_is_cut_and_says_so() -> None:
    found = noted(Add("é" * LONGEST_TODO))
    text = found.changes[0].text
    assert text == "é" * ((LONGEST_TODO - len("…".encode())) // 2) + "…"
    assert found.problems == ("todo 1 is longer than 300 bytes, and was cut to its beginning",)
    assert noted(Add("x" * LONGEST_TODO)).problems == ()
    both = noted(Add("x" * 301), Add("a"), Add("y" * 301)).problems
    assert both == ("todo 1, 3 is longer than 300 bytes, and was cut to its beginning",)


def test_so_many_are_open_and_no_more() -> None:
    found = noted(*[Add(str(number)) for number in range(MOST_OPEN + 2)])
    assert len(found.changes) == MOST_OPEN
    assert found.problems == ("100 todos are open already: 2 more were not added",)
    full = found.changes
    assert noted(Add("x"), before=full).problems == ("100 todos are open already: 1 more was not added",)
    assert noted(Finish(5), Add("x"), before=full).problems == ()


def test_what_is_cleared_is_gone_and_its_number_stays_its_own() -> None:
    before = noted(Add("a"), Add("b")).changes
    cleared = (*before, Change(1, "cleared", "a", "kailai", 1.0), Change(2, "cleared", "b", "kailai", 1.0))
    assert read_todos(cleared).items == {}
    assert noted(Finish(1), before=cleared).unknown == (1,)
    assert [*changed(Add("c"), before=cleared).items] == [3]
    assert read_todos((*cleared, *cleared[2:])).items == {}


def test_a_command_does_not_close_again_what_is_closed() -> None:
    before = noted(Add("a"), Add("b"), Finish(1)).changes
    found = noted(Finish(1), Finish(2), Finish(2), before=before)
    assert [(change.number, change.what) for change in found.changes] == [(2, "done")]
    assert found.already == (1,)
    assert noted(Finish(1), before=before, message="msg-1").already == ()


def test_closed_twice_it_is_the_first_who_did_it_until_that_is_taken_back() -> None:
    first = noted(Add("a"), Finish(1), by="max", message="msg-1").changes
    twice = (*first, *noted(Finish(1), Finish(1), before=first, by="sarah", message="msg-2").changes)
    assert [change.by for change in twice] == ["max", "max", "sarah"]

    def done_by(changes: tuple[Change, ...]) -> str | None:
        done = read_todos(changes).items[1].done
        return done.by if done else None

    assert done_by(twice) == "max"
    assert done_by((twice[0], replace(twice[1], hidden=True), twice[2])) == "sarah"
    assert done_by((twice[0], *(replace(change, hidden=True) for change in twice[1:]))) is None


def test_an_item_of_a_hidden_message_does_not_count_whoever_closed_it() -> None:
    added = noted(Add("a"), message="msg-1").changes
    closed = (*added, *noted(Finish(1), before=added, message="msg-2").changes)
    hidden = (replace(closed[0], hidden=True), closed[1])
    assert read_todos(hidden) == TodoList({}, last=1)
    assert [*changed(Add("b"), before=hidden).items] == [2]


def test_the_block_has_what_is_open_and_a_count() -> None:
    before = noted(Add("write it"), Add("test it"), Add("ship it")).changes
    assert (
        rendered(read_todos(before[:1])) == "- 1 (max): write it\n0 done. [TODO: ...] adds one, [DONE: n] closes one."
    )
    assert rendered(changed(Finish(2), before=before)) == (
        "- 1 (max): write it\n- 3 (max): ship it\n1 done. [TODO: ...] adds one, [DONE: n] closes one."
    )
    assert rendered(changed(Finish(1), Finish(2), Finish(3), before=before)) == (
        "Nothing is open.\n3 done. [TODO: ...] adds one, [DONE: n] closes one."
    )
    assert rendered(TodoList()) is None


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("3", 3),
        (" #3 ", 3),
        ("１２", 12),
        ("x", None),
        ("-1", None),
        ("", None),
        ("²", None),
        ("9" * 9, 999_999_999),
        ("9" * 10, None),
        ("9" * 5000, None),
    ],
)
def test_a_number_may_have_a_hash(written: str, number: int | None) -> None:
    assert todo_number(written) == number


@given(st.text())
def test_no_text_leaves_its_line(text: str) -> None:
    line = todo_text(text)
    assert len(line.splitlines()) <= 1
    assert todo_text(line) == line
    assert not line or any(character.isalnum() for character in line)


wishes = st.builds(Add, st.sampled_from("ab")) | st.builds(Finish, st.integers(0, 6))
messages = st.lists(st.lists(wishes, max_size=5), max_size=8)


@given(messages, st.data())
def test_it_is_what_the_messages_that_are_not_hidden_say(said: list[list[Wish]], data: st.DataObject) -> None:
    """Taken back, a message might never have been; but for the numbers, which stay what they were."""
    changes: list[Change] = []
    for number, of_one in enumerate(said):
        changes += apply_wishes(read_todos(changes), of_one, "max", 0.0, str(number)).changes
    added = [change.number for change in changes if change.what == "added"]
    assert added == [*range(1, len(added) + 1)]
    hidden = data.draw(st.sets(st.sampled_from(range(len(said)))) if said else st.just(set[int]()))
    marked = [replace(change, hidden=int(change.message or 0) in hidden) for change in changes]
    shown = [change for change in changes if int(change.message or 0) not in hidden]
    assert read_todos(marked).items == read_todos(shown).items
    assert read_todos(marked).last == len(added)
    assert noted(Add("new"), before=tuple(marked)).changes[0].number == len(added) + 1
