"""The fast reader of JSON reads every line as Python's own would."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.untrusted.json import decode, scalar

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)


def read_slowly(line: bytes) -> object:
    """The same without the fast reader, of what is between characters for a terminal."""
    line = line.strip(bytes(range(33)) + b"\x7f")
    try:
        value = json.loads(line.decode("utf-8", "replace"))
        return json.loads(scalar(json.dumps(value, ensure_ascii=False))) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        return None


def assert_read_as_python_does(line: bytes) -> None:
    assert repr(decode(line)) == repr(read_slowly(line))


@pytest.mark.parametrize(
    "value",
    [
        rb'"\ud83d"', rb'"\ud83d\ude00"', rb'"\ude00\ud83d"', rb'"a\ud800 b"', b'"\xff"', b'"\xed\xa0\xbd"',
        b'"\xf0\x9f"',
        b"12345678901234567890123", b"18446744073709551616", b"-9223372036854775809", b"9" * 5000, b"-0", b"-0.0",
        b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1E400", b"0.1e1", b"1.", b"01", b"-", b"0.1234567890123456789",
        b'"\x01"', b'"\x7f"', b'"x\ty"', rb'"\x"', rb'"\/"', b"[1,]", b"\x00", b'{"a":1,"a":2}',
        b"[" * 900 + b"]" * 900,
        b"true", b"null", b'""', b"[]", b"{}", b"tru", b'"',
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "line", [b'{"a": %s}', b' {"b": [%s]}\r', b'{"a": %s} x', b'\x0b{"a": %s}', b'{"c": 1, "c": %s}']
)
def test_odd_values_are_read_as_python_reads_them(line: bytes, value: bytes) -> None:
    assert_read_as_python_does(line % value)


@given(VALUES, st.booleans())
def test_whatever_python_writes_is_read_as_python_reads_it(value: object, ascii_only: bool) -> None:
    assert_read_as_python_does(json.dumps({"a": value}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))


@given(VALUES, st.data())
def test_so_is_what_was_damaged(value: object, data: st.DataObject) -> None:
    line = bytearray(json.dumps({"a": value}).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    assert_read_as_python_does(bytes(line))


MIB = 1 << 20


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b'{"a": 1, "b": [' + b"[]," * 4 * MIB + b"1]}", {"a": 1, "b": None}),
        (b'{"a": {"b": "c", "d": [' + b"1," * 5 * MIB + b"1]}}", {"a": {"b": "c", "d": None}}),
        (b'{"a": {"b": {"c": {"d": [' + b"1," * 5 * MIB + b"1]}}}}", {"a": {"b": {"c": {"d": None}}}}),
        (b'{"a": {"b": {"c": {"d": {"e": [' + b"1," * 5 * MIB + b"1]}}}}}", {"a": {"b": {"c": {"d": {}}}}}),
        (b'{"a": "' + b"x,[{" * 3 * MIB + b'", "b": [1]}', {"a": "x,[{" * 3 * MIB, "b": [1]}),
        (b'{"a": "' + rb"\",[{\"\":" * MIB + b'"}', {"a": '",[{"":' * MIB}),
        (b'{"a": [' + b'"' + b"x," * 5 * MIB + b'"]}', {"a": ["x," * 5 * MIB]}),
    ],
)
def test_of_a_long_line_what_has_very_many_values_is_left_out(line: bytes, event: dict[str, object]) -> None:
    assert decode(line) == event


@pytest.mark.parametrize("odd", [b"NaN", b"1]"])
def test_a_long_line_of_very_many_values_that_is_no_strict_json_is_not_decoded(odd: bytes) -> None:
    assert decode(b'{"a": [' + b"[]," * 4 * MIB + odd + b"]}") is None


def test_an_object_of_very_many_keys_is_left_out() -> None:
    line = b"{" + b",".join(b'"k%d":1' % number for number in range(1_200_000)) + b"}"
    assert decode(line) == {}
