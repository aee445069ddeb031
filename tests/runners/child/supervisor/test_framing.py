from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.child.supervisor import LineFramer, framer_of
from teamchat.runners.pipe import PipeOutput

CHUNKS = st.lists(st.binary() | st.sampled_from([b"\n", b"\r", "\u2028".encode(), b"a\nb"]))


@given(CHUNKS)
def test_however_the_bytes_are_cut_the_lines_are_the_same(chunks: list[bytes]) -> None:
    framer = LineFramer()
    found = [line for chunk in chunks for line in framer.push(chunk)] + framer.flush()
    expected = b"".join(chunks).split(b"\n")
    assert found == (expected if expected[-1] else expected[:-1])


@given(CHUNKS)
def test_a_parser_that_needs_no_lines_is_given_the_chunks(chunks: list[bytes]) -> None:
    unframed = framer_of(PipeOutput())
    assert [unframed.push(chunk) for chunk in chunks] == [[chunk] for chunk in chunks]
    assert unframed.flush() == []


def test_only_the_newline_byte_ends_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\rf"
    assert LineFramer().push(f"{text}\n".encode()) == [text.encode()]


def test_a_line_comes_only_when_it_is_complete() -> None:
    framer = LineFramer()
    assert framer.push(b'{"half":') == []
    assert framer.push(b"1}\nrest") == [b'{"half":1}']
    assert framer.flush() == [b"rest"]
    assert framer.flush() == []


def test_a_long_line_in_small_pieces_costs_linear_time() -> None:
    framer = LineFramer()
    for _ in range(200_000):
        framer.push(b"x" * 100)
    assert [len(line) for line in framer.push(b"\n")] == [20_000_000]
