"""The typed spans of a message: with what was pasted between them, and without what was piped in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.conversation.inputs import Message, typed_spans


@given(st.lists(st.integers(0, 30), min_size=1, max_size=9))
def test_the_spans_tell_what_was_pasted_and_where_the_typed_part_ends(places: list[int]) -> None:
    *cuts, through = sorted(places)
    pasted = tuple(zip(cuts[::2], cuts[1::2], strict=False))
    message = Message(text="x" * through, typed=typed_spans(through, pasted if through else ()))
    assert (message.typed_through, message.pasted) == (through, pasted if through else ())


def test_a_text_of_which_nothing_was_typed_has_no_spans() -> None:
    assert typed_spans(0) == ()
    assert Message(text="piped").typed_through == 0
