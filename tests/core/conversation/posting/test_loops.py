from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.conversation.posting import LONGEST, alike, says_done, says_nothing_new


@given(st.text(), st.text())
def test_likeness_is_symmetric_and_between_nothing_and_all(one: str, other: str) -> None:
    assert alike(one, other) == alike(other, one)
    assert 0.0 <= alike(one, other) <= 1.0
    assert alike(one, one) == 1.0


def test_of_long_texts_only_the_same_are_alike() -> None:
    long = "word " * (LONGEST // 5)
    assert alike(long, f"{long} ") == 0.0
    assert alike(f"{long} ", f"{long} ") == 1.0
    assert alike(long, long.upper()) == 1.0


def test_counting_up_is_nothing_new_and_other_words_are() -> None:
    assert alike("Round 1: please go on with it.", "Round 2: please go on with it!") == 1.0
    assert alike("Take the first door on the left.", "There is a bug in the second loop.") == 0.0


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("We are done.", True),
        ("I have nothing more to add. [NEXT: max]", True),
        ("It is done when the tests pass; here is the list of what to do.", True),
        ("Let us begin.", False),
        ("I'm done. " + "But first a long explanation. " * 30, False),
    ],
)
def test_only_a_short_reply_says_that_all_is_done(text: str, done: bool) -> None:
    assert says_done(text) is done


def test_a_reply_is_held_against_the_speakers_own_last_one() -> None:
    before = [("sarah", "Pong now"), ("max", "Ping to you")]
    assert says_nothing_new("Ping to you", before, "max", 0.9)
    assert not says_nothing_new("Pong now", before, "max", 0.9)
    assert not says_nothing_new("Ping to you", before, "max", 0)
    assert not says_nothing_new("Ping to you", [], "max", 0.9)


def test_two_that_both_say_they_are_done_say_nothing_new() -> None:
    assert says_nothing_new("All done here.", [("sarah", "We are done.")], "max", 0.9)
    assert not says_nothing_new("All done here.", [("max", "Something else.")], "sarah", 0.9)
