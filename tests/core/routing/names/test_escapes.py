r"""Models write `story\_writer`, because Markdown takes a bare `_` for emphasis."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.routing.markers import read_markers
from teamchat.core.routing.names import Found, fold, match_member
from teamchat.core.routing.requests import resolve
from teamchat.core.team.team import Member

MEMBERS = tuple(Member(name, "ai", Path("/work")) for name in ("kai", "story_writer", "c.d", "max-2"))


@pytest.mark.parametrize(
    ("written", "called"),
    [
        (r"[NEXT: story\_writer]", ["story_writer"]),
        (r"[NEXT: **story\_writer**]", []),
        (r"[NEXT: c\.d, max\-2]", ["c.d", "max-2"]),
        (r"[NEXT: story\_writer + kai!P1]", ["story_writer", "kai"]),
        (r"[NEXT: story\writer]", []),
        (r"[NEXT: story\\_writer, \\kai]", ["story_writer"]),
    ],
)
def test_a_backslash_before_punctuation_is_no_part_of_a_name(written: str, called: list[str]) -> None:
    resolution = resolve(read_markers(written, "ai").markers, MEMBERS, "max", "ai")
    assert [request.target for request in resolution.requests] == called


def test_a_note_has_the_name_as_it_was_typed() -> None:
    (problem,) = resolve(read_markers(r"[NEXT: stori\_riter]", "ai").markers, MEMBERS, "max", "ai").problems
    assert problem.message == r"nobody is called 'stori\_riter': did you mean story_writer?"


@given(name=st.sampled_from([member.name for member in MEMBERS]), places=st.sets(st.integers(0, 12)))
def test_escaping_any_punctuation_of_a_name_changes_nothing(name: str, places: set[int]) -> None:
    escaped = "".join(f"\\{c}" if at in places and not c.isalnum() else c for at, c in enumerate(name))
    found = match_member(escaped, MEMBERS)
    assert isinstance(found, Found)
    assert found.member.name == name
    assert fold(fold(escaped)) == fold(escaped)
