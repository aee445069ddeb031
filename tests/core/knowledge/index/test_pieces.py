"""Cutting texts: nothing is lost, nothing is too large, and a piece knows its headings and lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from teamchat.assemblers.truncation import byte_length
from teamchat.core.knowledge.index import LARGEST, cut_pieces

GUIDE = """# Guide

## Install

Get it.

### Linux

```sh
# no heading
```

#tag is none either

## Use

Run it.
"""
lines = st.sampled_from(
    [
        "# A",
        "## B",
        "### C ##",
        "",
        "  ",
        "text",
        "    code",
        "```",
        "~~~",
        "水" * 700,
        "x" * 5000,
        "word " * 400,
        "a。" * 900,
    ]
)
texts = st.lists(lines | st.text(max_size=20), max_size=40).map("\n".join)


@given(texts, st.booleans())
def test_all_pieces_together_are_the_text_and_none_is_too_large(text: str, markdown: bool) -> None:
    pieces = cut_pieces(text, markdown=markdown)
    assert "".join(piece.text for piece in pieces) == text
    assert all(0 < byte_length(piece.text) <= LARGEST for piece in pieces)


@given(texts, st.booleans())
def test_a_piece_stands_in_the_lines_it_names(text: str, markdown: bool) -> None:
    every = text.split("\n")
    for piece in cut_pieces(text, markdown=markdown):
        named = "\n".join(every[piece.first - 1 : piece.last])
        assert piece.text.rstrip("\n") in named + "\n" * len(every)
        assert piece.first <= piece.last <= len(every)


def test_markdown_is_cut_at_its_headings() -> None:
    pieces = cut_pieces(GUIDE, markdown=True)
    assert [(piece.heading, piece.first, piece.last) for piece in pieces] == [
        ("Guide > Install", 1, 6),
        ("Guide > Install > Linux", 7, 14),
        ("Guide > Use", 15, 17),
    ]


def test_what_is_no_markdown_has_no_headings() -> None:
    (piece,) = cut_pieces(GUIDE, markdown=False)
    assert piece.heading == ""


def test_a_program_is_cut_between_its_functions() -> None:
    function = "def f{}():\n    first = 1\n\n    return first  # {}\n\n\n"
    text = "".join(function.format(number, "x" * 700) for number in range(4))
    pieces = cut_pieces(text, markdown=False)
    assert len(pieces) > 1
    assert all(piece.text.startswith("def f") for piece in pieces)


def test_a_large_section_is_cut_between_its_paragraphs_and_keeps_its_heading() -> None:
    text = "# Long\n\n" + "".join(f"{number} {'word ' * 150}\n\n" for number in range(5))
    pieces = cut_pieces(text, markdown=True)
    assert len(pieces) > 1
    assert {piece.heading for piece in pieces} == {"Long"}
    assert all(piece.text.endswith("\n\n") for piece in pieces)


def test_a_text_of_nothing_has_no_pieces() -> None:
    assert cut_pieces("", markdown=True) == cut_pieces("", markdown=False) == []
