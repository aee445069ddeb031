from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.untrusted.json import amount, count, decode, flat, one_line, scalar, summary, total


@given(st.text())
def test_text_that_can_be_written_is_left_alone(text: str) -> None:
    assert scalar(text) == text


@pytest.mark.parametrize(("text", "clean"), [("a\ud800", "a\ufffd"), ("\udc00b", "\ufffdb"), ("\ud83d\ude00", "😀")])
def test_lone_surrogates_are_replaced(text: str, clean: str) -> None:
    assert scalar(text) == clean


@given(st.binary())
def test_a_line_is_an_object_or_nothing(line: bytes) -> None:
    assert isinstance(decode(line), dict | None)


def test_damaged_bytes_inside_a_string_do_not_lose_the_event() -> None:
    assert decode(b'{"text":"a\xffb"}') == {"text": "a\ufffdb"}


@pytest.mark.parametrize("value", [True, -1, 1.5, "3", None, [], {}, 10**15, 10**400])
def test_what_is_no_number_of_tokens_is_unknown(value: object) -> None:
    assert count(value) is None


@pytest.mark.parametrize("value", [True, -0.1, float("nan"), float("inf"), 1e15, 10**400, "3", None])
def test_what_is_no_amount_of_money_is_unknown(value: object) -> None:
    assert amount(value) is None


def test_numbers_are_taken() -> None:
    assert count(10**12) == 10**12
    assert (count(0), count(7), amount(0), amount(0.25)) == (0, 7, 0.0, 0.25)
    assert (total(1, None, 2), total(None), total()) == (3, None, None)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"command": "ls\n -la", "description": "list"}, "ls -la"),
        ({"file_path": "a.py", "content": "x"}, "a.py"),
        ({"command": " ", "path": "b"}, "b"),
        ({"command": 3, "other": "é"}, '{"command": 3, "other": "é"}'),
        ({}, ""),
        (None, ""),
        ("text", '"text"'),
        ({"command": "x" * 300}, "x" * 199 + "…"),
    ],
)
def test_arguments_are_told_in_one_line(arguments: object, line: str) -> None:
    assert summary(arguments) == line


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x", "x"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, 3, {"text": 4}, {"text": "b"}], "a\nb"),
        (None, ""),
        ({"text": "a"}, ""),
    ],
)
def test_output_in_blocks_is_joined(content: object, text: str) -> None:
    assert flat(content) == text


@given(st.text())
def test_one_line_is_one_short_line_without_control_characters(text: str) -> None:
    line = one_line(text)
    assert len(line) <= 200
    assert len(line.splitlines()) <= 1
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in line)


@pytest.mark.parametrize(
    "text",
    ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07red", "\x1b[?25lred\x1b[>4m\x1b[<u", "\x1b(Bre\x08d\x1b7", "re\x9bd"],
)
def test_escape_sequences_go(text: str) -> None:
    assert one_line(text) == "red"


@pytest.mark.parametrize("mark", ["\u202e", "\u202a", "\u2066", "\u2069", "\ufeff"])
def test_what_turns_the_direction_of_the_line_around_goes(mark: str) -> None:
    assert one_line(f"{mark}rm -rf{mark} x") == "rm -rf x"


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_is_read_back(value: dict[str, str]) -> None:
    assert decode(json.dumps(value).encode()) == value
