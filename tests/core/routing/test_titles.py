"""The title of a conversation that nobody gave one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.routing.titles import LONGEST_FIRST_WORDS, first_words
from tests.core.routing.marker_texts import marked_up


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Add a version option", "Add a version option"),
        ("[NEXT: max] Add  a\nversion option", "Add a version option"),
        ("Look:\n```\ncode\n```\nIs it right? [TODO: test]", "Look: Is it right?"),
        ("```diff\n-old\n+new\n```", "-old +new"),
        ("[NEXT: max]", ""),
        ("", ""),
        ("words " * 20, "words " * 9 + "words…"),
        ("x" * 99, "x" * 59 + "…"),
        ("Say `[NEXT: max]` to call", "Say `[NEXT: max]` to call"),
    ],
)
def test_the_first_words_are_the_title(text: str, title: str) -> None:
    assert first_words(text) == title


@given(st.one_of(marked_up(), st.text()))
def test_any_text_has_a_title_of_one_short_line(text: str) -> None:
    title = first_words(text)
    assert len(title) <= LONGEST_FIRST_WORDS
    assert title == " ".join(title.split())
