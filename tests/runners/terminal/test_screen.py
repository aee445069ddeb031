from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.terminal.screen import COLUMNS, LONGEST_SEQUENCE, ROWS, Screen

SHOWN = (
    ("one\r\ntwo", ["one", "two"]),
    ("one\ntwo", ["one", "   two"]),
    ("half\rwhole", ["whole"]),
    ("lonely\rso", ["sonely"]),
    ("abc\b\bX", ["aXc"]),
    ("a\tb", ["a\tb"]),
    ("\x1b[1;31mred\x1b[0m\x1b(B", ["red"]),
    ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", ["alink"]),
    ("\x07\x00a\x0eb\x9b", ["ab"]),
    ("abc\x1b[Kd\r\x1b[K", [""]),
    ("abc\x1b[2D\x1b[Kx", ["ax"]),
    ("abc\x1b[2D\x1b[1Kx", [" xc"]),
    ("abc\x1b[2Kx", ["   x"]),
    ("abcd\x1b[3D\x1b[2P", ["ad"]),
    ("abcd\x1b[3D\x1b[2X", ["a  d"]),
    ("abcd\x1b[3D\x1b[2@", ["a  bcd"]),
    ("one\r\ntwo\r\n\x1b[2A\x1b[2Kuno\x1b[2E", ["uno", "two", ""]),
    ("one\r\ntwo\x1b[1F\x1b[J", [""]),
    ("a\x1b[5Gb\x1b[2Cc", ["a   b  c"]),
    ("\x1b7abc\x1b8x", ["xbc"]),
    ("one\x1bEtwo\x1bM!", ["one!", "two"]),
    ("old\x1b[2J\x1b[Hnew", ["old", "new"]),
    ("old\r\n\x1b[2J\x1b[2;3Hnew", ["old", "", "", "  new"]),
    ("a\x1b[zb\x1b\x1b[", ["ab"]),
    ("\x1b[99999999999999999999999999999999999999999999999999999999Ca", [" " * 10_000 + "a"]),
)


@pytest.mark.parametrize(("text", "rows"), SHOWN)
def test_what_is_shown_is_what_a_terminal_shows(text: str, rows: list[str]) -> None:
    assert shown(text.encode()).rows == rows


@given(st.sampled_from(SHOWN), st.data())
def test_it_does_not_matter_in_which_pieces_it_comes(case: tuple[str, list[str]], data: st.DataObject) -> None:
    whole = ("ä🎉" + case[0]).encode()
    screen, at = Screen(), 0
    while at < len(whole):
        size = data.draw(st.integers(1, 5))
        screen.feed(whole[at : at + size])
        at += size
    assert screen.rows == shown(whole).rows


_PIECES = st.sampled_from(
    ["\x1b[", "\x1b]", "\x1b", "0", "7;", "?2004", *"ABCDEFGHJKPX@fdhlncmM", "\r", "\n", "\b", "x"]
)


@given(st.lists(_PIECES | st.text(max_size=3), max_size=60).map("".join))
def test_nothing_makes_it_raise_or_leaves_the_cursor_outside(text: str) -> None:
    screen = shown(text.encode(errors="replace"))
    assert 0 <= screen.row < len(screen.rows)
    assert screen.column >= 0
    assert not any(character in row for row in screen.rows for character in "\r\n\x1b")
    screen.since((0, 0))


def test_lines_are_never_wrapped_and_never_scroll_away() -> None:
    screen = shown(("x" * (3 * COLUMNS) + "\r\n").encode() * (2 * ROWS))
    assert len(screen.rows) == 2 * ROWS + 1
    assert {len(row) for row in screen.rows} == {0, 3 * COLUMNS}


def test_the_cursor_moves_on_the_screen_only() -> None:
    screen = shown(b"\r\n" * (3 * ROWS) + b"\x1b[9999A")
    assert screen.row == 2 * ROWS + 1
    screen.feed(b"\x1b[9999B")
    assert screen.row == 3 * ROWS


def test_a_program_that_asks_the_terminal_is_answered() -> None:
    screen = shown(b"one\r\ntw\x1b[6n\x1b[c\x1b[5n")
    assert screen.answers == [b"\x1b[2;3R", b"\x1b[?6c"]


def test_a_program_may_ask_for_pasted_text_in_brackets() -> None:
    assert not shown(b"").pastes
    assert shown(b"\x1b[?2004h").pastes
    assert not shown(b"\x1b[?2004h\x1b[?2004l").pastes


def test_the_lines_since_a_place_end_at_the_cursor() -> None:
    screen = shown(b"one\r\ntwo\r\nthree")
    assert screen.since((0, 1)) == ["ne", "two", "three"]
    assert screen.since((2, 5)) == [""]
    screen.feed(b"\x1b[2A\r")
    assert screen.since((1, 0)) == [""]
    assert screen.line == ""
    assert shown(b"you>\x1b[2C").line == "you>  "


def test_a_sequence_without_an_end_hides_no_more_than_it_may() -> None:
    assert shown(b"\x1b]0;" + b"x" * 10).rows == [""]
    assert shown(b"\x1b]0;" + b"x" * LONGEST_SEQUENCE).rows == ["]0;" + "x" * LONGEST_SEQUENCE]


def test_its_size_is_what_it_holds_or_more() -> None:
    for sequence in (b"\x1b[10000Gx\r", b"\n", b"x", b"y\x1b[10D\x1b[100@"):
        screen = shown(sequence * 200)
        assert screen.size >= sum(map(len, screen.rows)) + len(screen.rows) - 1


def test_a_long_line_in_small_pieces_costs_linear_time() -> None:
    screen = Screen()
    for _ in range(50_000):
        screen.feed(b"x" * 200)
    assert (len(screen.line), screen.size) == (10_000_000, 10_000_000)


def shown(data: bytes) -> Screen:
    screen = Screen()
    screen.feed(data)
    return screen
