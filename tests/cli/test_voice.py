from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from teamchat.cli.output.terminal import MemberStream

PIECES = st.lists(st.text(alphabet="ab\n"), max_size=20)


@given(PIECES)
def test_the_lines_of_streamed_pieces_are_those_of_the_whole_text(pieces: list[str]) -> None:
    voice = MemberStream("max", "cyan")
    lines = [line for piece in pieces for line in voice.whole_lines(piece)]
    assert [*lines, "".join(voice.pending)] == "".join(pieces).split("\n")


@given(PIECES)
def test_a_block_is_known_while_it_is_shown_and_until_another_has_ended(pieces: list[str]) -> None:
    voice = MemberStream("max", "cyan")
    voice.block.extend(pieces)
    text = "".join(pieces)
    assert voice.has_shown(text)
    voice.end_block()
    voice.end_block()
    assert voice.has_shown(text)
    voice.block.append("c")
    voice.end_block()
    assert voice.has_shown(f" {text}\n") is not bool(text.strip())
