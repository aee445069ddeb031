"""The same failing lines are the same, whatever their numbers and times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.checks.failing import failing_lines

FIRST = b"collected 12 items\nFAILED tests/test_a.py::test_add - assert 3 == 4\n2 failed, 10 passed in 0.31s\n"


@pytest.mark.parametrize(
    "again",
    [
        FIRST.replace(b"0.31s", b"12.5s"),
        FIRST.replace(b"3 == 4", b"7 == 9"),
        FIRST.replace(b"12 items", b"13 items"),
        b"\x1b[31m" + FIRST.replace(b"FAILED", b"\x1b[1mFAILED\x1b[0m"),
        FIRST + b"a line that says nothing\n",
        FIRST.replace(b"assert 3", b"assert 0x7f3a"),
    ],
)
def test_numbers_times_and_colours_make_no_difference(again: bytes) -> None:
    assert failing_lines(again) == failing_lines(FIRST)


def test_another_test_that_fails_does() -> None:
    assert failing_lines(FIRST.replace(b"test_add", b"test_sub")) != failing_lines(FIRST)


def test_without_a_line_that_tells_of_a_failure_all_lines_count() -> None:
    assert failing_lines(b"one\n") != failing_lines(b"two\n")
    assert failing_lines(b"") == failing_lines(b"\n \n") == ""


@given(st.binary())
def test_any_output_is_told_apart_or_not(output: bytes) -> None:
    assert len(failing_lines(output)) in (0, 16)
