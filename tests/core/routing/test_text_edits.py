"""A text is made without its edits in pieces, and they are the same text as when all of it is made at once."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterator
from itertools import accumulate
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.routing import edits
from teamchat.core.routing.edits import Edit, pieces_without_edits, without_edits
from teamchat.core.routing.markers import read_markers

SPACES = [" ", "  ", "\t", "\u2028", "\u00a0", "\n", "\r", "\r\n"]
WORDS = ["a", "bc", *SPACES, "[NEXT: a]", "\\[NEXT: a]", "[TEAM_TASK]\n"]


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A text with edits anywhere in it, except inside a line end."""
    words = draw(st.lists(st.sampled_from(WORDS), max_size=30))
    ends = [0, *accumulate(map(len, re.findall(r"\r\n|(?s:.)", "".join(words))))]
    cuts = sorted(draw(st.lists(st.sampled_from(ends), max_size=12)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return "".join(words), [Edit(start, end, draw(st.booleans())) for start, end in pairs if start < end]


@given(edited(), st.integers(1, 9))
def test_the_pieces_of_any_size_are_the_text_made_at_once(case: tuple[str, list[Edit]], size: int) -> None:
    with patch.object(edits, "PIECE", size):
        assert "".join(pieces_without_edits(*case)) == at_once(*case)
    assert without_edits(*case) == at_once(*case)


@given(st.lists(st.sampled_from([*WORDS, "`", "```\n", "> "])).map("".join), st.integers(1, 9))
def test_the_pieces_of_a_message_are_its_stripped_text(text: str, size: int) -> None:
    read = read_markers(text, "human")
    with patch.object(edits, "PIECE", size):
        assert "".join(read.stripped_pieces()) == read.stripped


@pytest.mark.parametrize(
    "text",
    [
        "`a ``b ```c [NEXT ",
        "a [TODO: x] \\[NEXT: a] ",
        "a  [NEXT: a]\n",
        "a\n\n",
    ],
)
def test_the_pieces_of_a_large_text_take_little_memory(text: str) -> None:
    large = text * (8_000_000 // len(text))
    with patch.object(edits, "PIECE", 10_000):
        pieces = read_markers(large, "ai").stripped_pieces()
        next(pieces)
        tracemalloc.start()
        length = sum(map(len, pieces))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert length > 5_000_000
    assert peak < 1_000_000


def at_once(text: str, changes: list[Edit]) -> str:
    """The rule in plain words: each line, joined with the next where an edit reaches over its end."""
    lines = "".join(_lines(text, changes))
    body = lines.rstrip()
    if not body:
        return ""
    spaces = len(body) - len(body.lstrip())
    begin = re.split(r"[\r\n]", lines[:spaces])[-1]
    return begin + body[spaces:] + re.split(r"[\r\n]", lines[len(body) :])[0]


def _lines(text: str, changes: list[Edit]) -> Iterator[str]:
    begin = 0
    for found in re.finditer(r"\r\n|\n|\r|\Z", text):
        if found.start() < begin or any(change.start <= found.start() < change.end for change in changes):
            continue
        inside = [change for change in changes if begin <= change.start < found.end()]
        yield _without(text[begin : found.start()], begin, found[0], inside)
        begin = found.end()


def _without(line: str, begin: int, line_end: str, changes: list[Edit]) -> str:
    gone = {at - begin for change in changes for at in range(change.start, change.end)}
    rest = "".join(sign for at, sign in enumerate(line) if at not in gone)
    first = next((change.start - begin for change in changes if change.tidy), None)
    if first is None:
        return rest + line_end
    lead = "".join(sign for at, sign in enumerate(line[:first]) if at not in gone)
    indentation = lead[: len(lead) - len(lead.lstrip())] if lead.strip() else ""
    tidied = indentation + re.sub(r"\s{2,}", " ", rest.strip())
    return tidied + line_end if tidied else ""
