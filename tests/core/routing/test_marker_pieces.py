"""A large text is searched for markers in pieces, and what is found is the same."""

from __future__ import annotations

import re
from unittest.mock import patch

from hypothesis import assume, given
from hypothesis import strategies as st

from teamchat.core.routing import markers

WORDS = ["[", "]", "NEXT", ":", "：", " ", "max", "\n", "\r", "[NEXT: a]", "[TEAM_TASK]", "[TODO:", "[[", "[ next ："]


@given(st.lists(st.sampled_from(WORDS)), st.integers(10, 40))
def test_in_pieces_of_any_size_the_same_markers_are_found(words: list[str], size: int) -> None:
    text = "".join(words)
    assume(max(map(len, re.split(r"[\]\r\n]", text))) < size)
    with patch.object(markers, "PIECE", size):
        assert markers.scan(text, "ai") == _whole(text)


def test_a_marker_that_does_not_end_within_a_piece_is_text() -> None:
    text = f"[TODO: {'x' * 2 * markers.PIECE}] [NEXT: max]"
    found = markers.scan(text, "ai")
    assert [(marker.kind, marker.counts) for marker in found] == [("TODO", False), ("NEXT", True)]


def _whole(text: str) -> tuple[markers.Marker, ...]:
    with patch.object(markers, "PIECE", len(text) + 1):
        return markers.scan(text, "ai")
