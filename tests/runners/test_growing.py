from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.growing import LEAST, GrowingText, joined

MEGABYTE = 1 << 20


@given(st.lists(st.text()))
def test_it_has_all_that_was_added(pieces: list[str]) -> None:
    assert joined(pieces) == "".join(pieces)


def test_pieces_larger_than_it_takes_at_once_are_kept_in_order() -> None:
    pieces = ["a" * (LEAST - 1), "é", "b" * LEAST, "水" * 3, "🙂", "c"]
    assert joined(pieces) == "".join(pieces)


def test_what_was_taken_is_not_there_again() -> None:
    text = GrowingText()
    text.add("one")
    assert text.take() == "one"
    text.add("two")
    assert (text.take(), text.take()) == ("two", "")


def test_it_takes_little_more_memory_than_the_text() -> None:
    tracemalloc.start()
    try:
        text = joined("x" * 65536 for _ in range(32 * 16))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(text) == 32 * MEGABYTE
    assert peak < 1.25 * len(text)
