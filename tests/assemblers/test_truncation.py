from __future__ import annotations

import re
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from teamchat.assemblers.truncation import (
    Cut,
    TruncationPolicy,
    approx_tokens,
    byte_length,
    least_bytes,
    truncate_end,
    truncate_middle,
)

MARKER = re.compile(r"…(\d+) tokens truncated…")
TEXTS = st.text() | st.text("aé水🙂", max_size=200) | st.integers(0, 5000).map(lambda n: "x" * n)


def test_a_text_that_fits_is_unchanged() -> None:
    assert truncate_middle("水" * 10, 30) == Cut("水" * 10, 0)


def test_head_and_tail_stay_around_a_marker_of_how_much_is_gone() -> None:
    text = "this is an example o" + "-" * 46 + "also some other line"

    assert truncate_middle(text, 65) == Cut("this is an example o…11 tokens truncated…also some other line", 46)


def test_the_odd_byte_goes_to_the_right() -> None:
    marker = "…23 tokens truncated…"

    assert truncate_middle("a" * 100, byte_length(marker) + 5) == Cut("aa" + marker + "aaa", 95)


def test_characters_stay_whole() -> None:
    marker = "…23 tokens truncated…"

    assert truncate_middle("水" * 33, byte_length(marker) + 7) == Cut("水" + marker + "水", 93)


def test_the_marker_counts_against_the_limit() -> None:
    assert byte_length(truncate_middle("a" * 1000, 100).text) == 100


def test_where_no_marker_fits_the_beginning_stays() -> None:
    assert truncate_middle("水水水 and a text longer than any marker", 7) == Cut("水水", 37)


def test_the_least_limit_leaves_the_marker_alone() -> None:
    text = "a" * 100

    assert truncate_middle(text, least_bytes(text)) == Cut("…25 tokens truncated…", 100)


def test_a_text_shorter_than_its_marker_is_its_own_least() -> None:
    assert least_bytes("Hello, world") == 12


@given(TEXTS, st.integers(-3, 300))
def test_every_result_is_within_the_limit(text: str, limit: int) -> None:
    assert byte_length(truncate_middle(text, limit).text) <= max(limit, 0)
    assert byte_length(truncate_end(text, limit)) <= max(limit, 0)


@given(TEXTS, st.integers(0, 300))
def test_what_is_left_is_the_texts_own_head_and_tail_and_the_number_is_right(text: str, limit: int) -> None:
    cut = truncate_middle(text, limit)
    marker = MARKER.search(cut.text)
    if cut.removed_bytes and marker and limit >= least_bytes(text):
        head, tail = cut.text[: marker.start()], cut.text[marker.end() :]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert cut.removed_bytes == byte_length(text) - byte_length(head) - byte_length(tail)
        assert int(marker[1]) == cut.removed_bytes // 4
        assert -4 < byte_length(tail) - byte_length(head) < 5  # halves, but for a character at either edge
    else:
        assert text.startswith(cut.text)
        assert cut.removed_bytes == byte_length(text) - byte_length(cut.text)


@given(TEXTS, st.integers(0, 300))
def test_no_more_is_cut_than_is_needed(text: str, limit: int) -> None:
    """At most a character at each edge could still have fitted in part, and a digit of the number."""
    cut = truncate_middle(text, limit)
    if cut.removed_bytes:
        assert byte_length(cut.text) > limit - 8


@given(TEXTS, st.integers(0, 300))
def test_the_end_is_cut_at_the_last_character_that_fits(text: str, limit: int) -> None:
    kept = truncate_end(text, limit)

    assert text.startswith(kept)
    assert kept == text or byte_length(text[: len(kept) + 1]) > limit


@given(st.integers(0, 10**9))
def test_a_token_is_about_four_bytes(size: int) -> None:
    assert approx_tokens(size) == size // 4
    assert TruncationPolicy(size, "tokens").byte_budget == size * 4


@given(TEXTS, st.integers(0, 300), st.sampled_from(["bytes", "tokens"]))
def test_a_policy_keeps_within_its_bytes(text: str, amount: int, unit: Literal["bytes", "tokens"]) -> None:
    policy = TruncationPolicy(amount, unit)
    assert byte_length(policy(text).text) <= policy.byte_budget
