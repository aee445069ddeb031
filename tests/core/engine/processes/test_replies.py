"""The JSON that a member was asked for is found in what agents write, or the reply is said to have none."""

from __future__ import annotations

import json
from typing import Any

import json5
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from teamchat.core.engine.processes.replies import WrittenValue, written_list, written_object
from teamchat.core.engine.workflow import Fault
from tests.trials import some, trials

LEAVES = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
LISTS = st.lists(VALUES, min_size=1, max_size=4)
OBJECTS = st.dictionaries(st.text(max_size=5), VALUES, min_size=1, max_size=4)
WORDS = st.text("abc XYZ.,:;!?'-()\n\r\t", max_size=60)
HOSTILE = st.lists(
    st.sampled_from(
        (
            "[",
            "]",
            "{",
            "}",
            '"',
            "\\",
            ",",
            ":",
            "\n",
            " ",
            "```",
            "```json",
            "1",
            "true",
            "nul",
            "a",
            "é",
            "\x00",
            '"a"',
        )
    ),
    max_size=40,
).map("".join)


def written(text: str) -> Any:
    found = written_list(text)
    return found.value if isinstance(found, WrittenValue) else found


def why(text: str) -> str:
    found = written_list(text)
    assert isinstance(found, Fault)
    return found.why


@pytest.mark.parametrize(
    "text",
    [
        '["a", "b"]',
        '  ["a",\n "b"]\n',
        '```json\n["a", "b"]\n```',
        '```JSON\n["a", "b"]\n```',
        '```\n["a", "b"]\n```',
        'The plan:\n\n```json\n["a", "b"]\n```\n\nSee [1].',
        'Not this:\n```json\n["old"]\n```\nbut this:\n```json\n["a", "b"]\n```',
        'Text in a fence:\n```\nx = 1\n```\n["a", "b"]',
        '```python\nx = ["c"]\n```\n```json\n["a", "b"]\n```',
        'I propose ["a", "b"] for this. [NEXT: max]',
        'As in [1]:\n["a", "b"]\nas [2] says',
        '```json\n["a", "b"]',
        '````json\n["a", "b"]\n````',
        '[1]\n["a", "b"]',
    ],
)
def test_a_list_is_found_alone_in_a_fence_and_between_prose(text: str) -> None:
    assert written(text) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "there is no JSON list in it"),
        ("I would do this in two steps.", "there is no JSON list in it"),
        ("[NEXT: max] [a, b] [see above]", "there is no JSON list in it"),
        ('"a"', "there is no JSON list in it"),
        ('{"subtasks": ["a"]}', "its JSON is not a list"),
        ('```json\n{"a": 1}\n```', "its JSON is not a list"),
        ("```json\nFirst a, then b.\n```", "its fence has no JSON"),
        ("```json\n```", "its fence has no JSON"),
        ('["a",', "its JSON is cut off at line 1, column 6"),
        ('Plan:\n["a", "b', "its JSON is cut off in a string that begins at line 2, column 7"),
        ("[", "its JSON is cut off at line 1, column 2"),
        ('```json\n["a",\n"b"\n```', "its JSON is cut off at line 3, column 4"),
        ('["a" "b"]', "its JSON is broken at line 1, column 6: expecting ',' delimiter"),
        ('["a", ["b"], "c', "its JSON is cut off in a string that begins at line 1, column 14"),
        ('["a"\n["b"],\n"c"]', "its JSON is broken at line 2, column 1: expecting ',' delimiter"),
        ('["good"]\n["bad",', "its JSON is cut off at line 2, column 8"),
        ('```json\n["a"] and more\n```', "its JSON is broken at line 2, column 7: extra data"),
        ("[1, NaN]", "its JSON has NaN, which is no number in JSON"),
        ("[" * 100_000, "its JSON list is nested too deeply"),
        ("[" * 201 + "]" * 201, "its JSON list is nested too deeply"),
    ],
)
def test_a_reply_without_a_whole_list_is_said_to_have_none_and_where_it_breaks(text: str, expected: str) -> None:
    assert why(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "b"}',
        'A long answer with ["half\na list.\n{"a": "b"}\n',
        '```json\n{"old": 1}\n```\nMy position:\n  {"a": "b"}',
        'A table {"a": 1} in between,\n{"a": "b"} and a word after it',
        '{\n  "a":\n    "b"\n}',
        '["x"]\n```json\n{"a": "b"}\n```\nMore words.',
        '\x1b[32m{"a": "b"}\x1b[0m\n',
        '\x1b[1;39m{\n  \x1b[0m\x1b[34;1m"a"\x1b[0m\x1b[1;39m:\x1b[0m \x1b[0;32m"b"\x1b[0m\x1b[1;39m\n}\x1b[0m',
        'Done.\n{"a": "\x1b[1mb\x1b[0m"}',
        '\x1b[2m<think>{"a": 1}</think>\x1b[0m {"a": "b"}',
    ],
)
def test_an_object_is_found_as_the_last_line_in_a_fence_and_between_prose(text: str) -> None:
    found = written_object(text)

    assert isinstance(found, WrittenValue)
    assert found.value == {"a": "b"}


@pytest.mark.parametrize("said", ["a </think> b", "</reasoning>", "<!-- a --> </think>", "<think> a", "<!--"])
@pytest.mark.parametrize("before", ["", "<think>{}</think>\n", '{"a": 1}\n', "Such as:\n\n"])
def test_a_tag_in_a_string_is_text(said: str, before: str) -> None:
    found = written_object(before + json.dumps({"a": said}, indent=1))

    assert isinstance(found, WrittenValue)
    assert found.value == {"a": said}


@pytest.mark.parametrize("after", ["", "\nI do not know.", '\n{"b": 1'])
def test_json_before_the_end_of_what_a_model_thinks_is_no_answer(after: str) -> None:
    assert isinstance(written_object(f'{{"a": "b"}}\n</think>{after}'), Fault)


def test_half_a_character_becomes_one_that_can_be_stored() -> None:
    assert written(r'["\ud83d\ude00", "a\uD800b", {"\udc00": "\u00e9"}]') == ["😀", "a\ufffdb", {"\ufffd": "é"}]


def test_the_rest_of_a_reply_can_be_told_from_its_json() -> None:
    text = 'Yes, because.\n\n```json\n{"a": 1}\n```\nBye.'

    found = written_object(text)

    assert isinstance(found, WrittenValue)
    assert text[: found.start] + text[found.end :] == "Yes, because.\n\n\nBye."


@settings(max_examples=trials(200), deadline=None)
@given(LISTS, WORDS, WORDS, st.sampled_from([None, 2]), st.booleans())
def test_every_list_is_found_between_any_words(
    value: list[Any], before: str, after: str, indent: int | None, fenced: bool
) -> None:
    dumped = json.dumps(value, indent=indent)
    text = f"{before}\n```json\n{dumped}\n```\n{after}" if fenced else f"{before}\n{dumped}\n{after}"

    assert written(text) == value


@settings(max_examples=trials(200), deadline=None)
@given(OBJECTS, WORDS, HOSTILE)
def test_an_object_on_the_last_line_is_found_after_anything(value: dict[str, Any], before: str, hostile: str) -> None:
    text = f"{before}{hostile}\n{json.dumps(value)}"

    found = written_object(text)

    assert found == WrittenValue(value, len(text) - len(json.dumps(value)), len(text))


@settings(max_examples=trials(200), deadline=None)
@given(LISTS, st.data())
def test_nothing_is_read_of_a_list_that_is_cut_off(value: list[Any], data: st.DataObject) -> None:
    dumped = json.dumps(value)
    cut = dumped[: data.draw(st.integers(1, len(dumped) - 1))]

    assert isinstance(written_list(cut), Fault)


@settings(max_examples=trials(500), deadline=None)
@given(HOSTILE)
@example("[1,]")
def test_what_is_found_in_any_text_is_what_the_text_says_there(text: str) -> None:
    for found, kind in ((written_list(text), list), (written_object(text), dict)):
        if isinstance(found, WrittenValue):
            assert isinstance(found.value, kind)
            inside = text[found.start : found.end].strip("` \n\t").removeprefix("json")
            try:
                said = json.loads(inside)
            except json.JSONDecodeError:
                said = json5.loads(inside)  # a comma behind the last value, as models write it
            assert said == found.value
        else:
            assert found.why


HOSTILE_PIECES = (
    *("[", '["', '["\\"', "[NEXT ", "[1x]", "[1x]\n", "[true ", "[ ", '["a"]\n', '["\n', "[[1]", "   [1]"),
    *("{", '{"', '{"a":', '{"a":1}\n', '\\"', "\n", "`", "```\n", "```json\n", "```x `\n"),
)


@pytest.mark.parametrize("piece", some(HOSTILE_PIECES, '["a"]\n', "   [1]", "[1x]\n"))
def test_a_long_hostile_text_is_read_in_time_linear_in_its_length(piece: str) -> None:
    """Twenty times as much takes hours in a quadratic reader."""
    text = piece * 100_000

    assert isinstance(written_list(text), WrittenValue | Fault)
    assert isinstance(written_object(text), WrittenValue | Fault)


@pytest.mark.parametrize(
    "text",
    [
        '["a", "b",]',
        '[\n  // the first [one]\n  "a", /* it\'s "b" ] */ "b"\n]',
        '```json\n[\n  "a",  // fast\n  "b",\n]\n```',
        '<think>\n["x"]\n</think>\n["a", "b"]',
        '["a", "b"]\n<!-- ["x"] -->',
        'So:\n["x"]\n</think>\n["a", "b"]',
    ],
)
def test_comments_and_trailing_commas_are_read_and_asides_are_not(text: str) -> None:
    assert written(text) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["one\ntwo", "\ttab\x07"]', ["one\ntwo", "\ttab\x07"]),
        ('["<think>a</think>", "<!-- b -->"]', ["<think>a</think>", "<!-- b -->"]),
        ('["http://a/b", "c", // d\n]', ["http://a/b", "c"]),
        ('["// a", "/* b */"]', ["// a", "/* b */"]),
    ],
)
def test_what_a_string_holds_is_no_comment_and_no_aside(text: str, value: list[str]) -> None:
    assert written(text) == value


@pytest.mark.parametrize("text", ['["a", /* "b"]', '["a", // "b"]', '["a",, "b"]', '["a" "b"]', "[1, NaN,]"])
def test_what_no_reader_takes_is_not_guessed(text: str) -> None:
    assert why(text).startswith(("its JSON is broken", "its JSON is cut off", "its JSON has NaN"))
