"""The diff of two texts is that of difflib where they are short, and a true one in short time where they are long."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from time import process_time
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.text import line_diff
from teamchat.core.text.line_diff import unified_diff

some_lines = st.lists(st.sampled_from(["", "a", "b", "c", "+d", "-e", " f", *map(str, range(20))]), max_size=40)


@given(some_lines, some_lines, st.integers(0, 3))
def test_of_texts_without_common_ends_it_is_that_of_difflib(old: list[str], new: list[str], context: int) -> None:
    old, new = ["old", *old, "old"], ["new", *new, "new"]
    expected = [*difflib.unified_diff(old, new, "x", "y", lineterm="", n=context)]
    assert [*unified_diff(old, new, "x", "y", context)] == expected


@given(some_lines, some_lines, st.integers(0, 3))
def test_it_turns_one_into_the_other(old: list[str], new: list[str], context: int) -> None:
    diff = [*unified_diff(old, new, "x", "y", context)]
    assert patched(old, diff) == new
    assert bool(diff) is (old != new)


@given(some_lines, some_lines, st.integers(0, 3), st.integers(0, 100))
def test_of_texts_that_are_too_long_it_turns_one_into_the_other(
    old: list[str], new: list[str], context: int, most: int
) -> None:
    with patch.object(line_diff, "AT_MOST", most):
        diff = [*unified_diff(old, new, "x", "y", context)]
    assert patched(old, diff) == new
    assert bool(diff) is (old != new)


def test_of_a_long_text_the_lines_that_have_changed_are_shown() -> None:
    old = [f"line {n}" for n in range(20_000)]
    new = [*old[:15_000], "one", *old[15_000:16_000], *old[16_001:]]
    diff = [*unified_diff(old, new, "x", "y", 2)]
    assert [line for line in diff if line[0] in "+-"] == ["--- x", "+++ y", "+one", "-line 16000"]


LINES = 40_000
HOSTILE: dict[str, Callable[[int], tuple[str, str]]] = {
    "the same line": lambda n: ("x" if n else "h", "x" if n else "i"),
    "every other line": lambda n: (f"l{n}" if n % 2 else f"m{n}", f"l{n}" if n % 2 else f"n{n}"),
    "a few lines again and again": lambda n: (f"l{n % 150}", f"l{(n + 75) % 150}"),
    "backwards": lambda n: (f"l{n}", f"l{LINES - n}"),
    "unlike": lambda n: (f"a{n}", f"b{n}"),
    "common lines between unlike ones": lambda n: (
        f"l{n}" if n % 40 == 0 else f"x{n % 13}",
        f"l{n}" if n % 40 == 0 else f"x{n % 17}",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_prompt_of_hostile_lines_is_compared_in_seconds(kind: str) -> None:
    pairs = [HOSTILE[kind](n) for n in range(LINES)]
    began = process_time()
    assert sum(1 for _ in unified_diff([old for old, _ in pairs], [new for _, new in pairs], "x", "y", 2)) > 4
    assert process_time() - began < 5  # difflib takes from minutes to hours for some of them


def patched(old: list[str], diff: list[str]) -> list[str]:
    """The old text with the changes of a diff."""
    new, at = list[str](), 0
    for line in diff[2:]:
        if head := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", line):
            begin = int(head[1]) - (head[2] != "0")
            new += old[at:begin]
            at = begin
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [old[at]] if line[0] == " " else []
            at += 1
    return new + old[at:]
