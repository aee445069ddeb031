"""A long line is read in pieces, and says what it says when it is read whole."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners import long_lines
from teamchat.runners.codex.events import CodexEvents
from teamchat.runners.events import Note, Text
from teamchat.runners.process import supervisor as framing
from teamchat.runners.process.supervisor import JsonFramer
from teamchat.runners.untrusted_json import LongLine, decode

MEGABYTE = 1 << 20
TEXTS = st.text(st.sampled_from('ab"\\/\n\t\x7fé水🙂\ud83d\ude00u0') | st.characters(), max_size=40)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@pytest.fixture(autouse=True, scope="module")
def short_is_long() -> object:
    """Every line is long, and every string of ten bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "LONG_LINE", 0)
        patch.setattr(long_lines, "LONG_TEXT", 10)
        yield


def framed(stream: bytes, cuts: list[int]) -> list[bytes]:
    framer = JsonFramer()
    ends = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    found = [line for begin, end in pairwise(ends) for line in framer.push(stream[begin:end])]
    return [*found, *framer.flush()]


CUTS = st.lists(st.integers(0, 10_000), max_size=40)


@given(st.lists(VALUES, min_size=1, max_size=3), st.booleans(), CUTS)
def test_what_it_says_is_the_same(values: list[object], ascii_only: bool, cuts: list[int]) -> None:
    lines = [json.dumps({"a": value}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") for value in values]
    assert list(map(decode, framed(b"\n".join(lines), cuts))) == list(map(decode, lines))


@given(VALUES, CUTS, st.data())
def test_so_it_is_when_the_line_is_damaged(value: object, cuts: list[int], data: st.DataObject) -> None:
    line = bytearray(json.dumps({"a": value}).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.sampled_from(b'"\\u{}\xff\x01d8'))
    [found] = framed(bytes(line), cuts) or [b""]
    assert repr(decode(found)) == repr(decode(bytes(line)))


@pytest.mark.parametrize(
    "inside",
    [
        rb"\ud83d\ude00" * 9, rb"a\ud83d" * 9, rb"\ude00\ud83d" * 9, rb"\\ud83d" * 9, rb"\\" * 50, rb'\"' * 50,
        b"\xff" * 50,
        "é水🙂".encode() * 9, b"\xed\xa0\xbd\xed\xb8\x80" * 9, rb"x\u12" * 9, rb"\u00e9" * 9, rb"\x" * 9, b"\x01" * 50,
        b"\\",
        rb"\u", rb"long enough \u00", rb"long enough \ud83d", "long enough é".encode()[:-1], b'long enough"', b"",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "around", [b'{"a": "%s"}', b' {"%s": 1}\r', b'{"a": ["x", {"b": "%s"}, "%s"]}', b'["%s"]', b'"%s"']
)
def test_wherever_it_is_cut(around: bytes, inside: bytes) -> None:
    line = around.replace(b"%s", inside)
    for cut in range(len(line)):
        [found] = framed(line, [cut]) or [b""]
        assert repr(decode(found)) == repr(decode(line)), cut
    [found] = framed(line, list(range(len(line)))) or [b""]
    assert repr(decode(found)) == repr(decode(line))


def test_its_beginning_is_noted_if_it_is_no_event() -> None:
    parser = CodexEvents()
    [line] = framed(b'["what somebody printed", 1]\n', [3, 7])
    assert isinstance(line, LongLine)
    assert list(parser.feed(line)) == [Note('printed a line that is no event: ["what somebody printed", 1]')]


def test_a_text_that_looks_like_a_reference_is_a_text() -> None:
    line = json.dumps({"a": "0" * 33, "b": "the long text", "c": "00"}).encode()
    assert [decode(found) for found in framed(line, [20])] == [json.loads(line)]


def test_a_reply_in_one_line_takes_little_more_memory_than_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "LONG_LINE", MEGABYTE)
    monkeypatch.setattr(long_lines, "LONG_TEXT", 65536)
    piece = b'a line of \\"it\\"\\n' * 4096
    begin, end = b'{"type":"item.completed","item":{"type":"agent_message","text":"', b'"}}\n'
    parser, framer = CodexEvents(), JsonFramer()
    tracemalloc.start()
    try:
        for chunk in (begin, *[piece] * 500):
            assert framer.push(chunk) == []
        [event] = parser.feed(*framer.push(end))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(event, Text)
    assert event.text == json.loads(b'"%s"' % piece) * 500
    assert peak < 1.5 * len(event.text)
