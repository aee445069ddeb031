from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.cli.output.terminal.blocks import LONGEST, MOST, PER_BLOCK, Blocks, MarkdownBlock

LINES = st.sampled_from(
    ["", "text", "# head", "- item", "  - inner", "1. one", "```py", "```", "~~~", "    code", "> said", "| a | b |"]
)
TEXTS = st.one_of(st.lists(LINES, max_size=30).map("\n".join), st.text(alphabet="a \n`~#-*1.>|", max_size=200))


def blocks_of(*pieces: str) -> list[MarkdownBlock]:
    blocks = Blocks()
    return [*(block for piece in pieces for block in blocks.push(piece)), *blocks.flush()]


@given(TEXTS)
def test_the_blocks_together_are_the_text(text: str) -> None:
    assert "".join(block.text for block in blocks_of(text)) == text


@given(TEXTS, st.lists(st.integers(0, 200), max_size=10))
def test_the_blocks_are_the_same_however_the_text_comes(text: str, cuts: list[int]) -> None:
    ends = sorted({min(cut, len(text)) for cut in (0, *cuts, len(text))})
    pieces = [text[begin:end] for begin, end in pairwise(ends)]
    assert blocks_of(*pieces) == blocks_of(text)


@given(TEXTS)
def test_what_is_no_block_yet_is_shown_as_the_rest(text: str) -> None:
    blocks = Blocks()
    done = blocks.push(text)
    assert "".join(block.text for block in done) + blocks.rest(len(text) + 1) == text


def kinds(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text.strip()) for block in blocks_of(text) if block.text.strip()]


def test_paragraphs_headings_and_lists_are_blocks() -> None:
    text = "# Head\nOne\ntwo\n\n- a\n  more\n\n  - inner\n- b\n\nEnd"
    assert kinds(text) == [
        ("markdown", "# Head"),
        ("markdown", "One\ntwo"),
        ("markdown", "- a\n  more\n\n  - inner\n- b"),
        ("markdown", "End"),
    ]


def test_code_in_a_fence_has_its_language() -> None:
    assert blocks_of("Look:\n```py\nx = 1\n\ny = 2\n```\nSo.") == [
        MarkdownBlock("markdown", "Look:\n"),
        MarkdownBlock("code", "```py\nx = 1\n\ny = 2\n```\n", "x = 1\n\ny = 2\n", "py"),
        MarkdownBlock("markdown", "So."),
    ]


def test_a_fence_that_is_not_closed_is_code_up_to_the_end() -> None:
    assert blocks_of("```\nx")[0] == MarkdownBlock("code", "```\nx", "x", "")


def test_a_fence_in_a_list_is_part_of_the_list() -> None:
    assert kinds("- a\n\n  ```py\n  x\n  ```\n\nEnd")[0] == ("markdown", "- a\n\n  ```py\n  x\n  ```")


def test_a_long_block_comes_in_parts_and_long_code_stays_code() -> None:
    prose = blocks_of(*["word " * 100] * 100)
    assert len(prose) > 3
    assert {block.kind for block in prose[:-1]} == {"plain"}
    code = blocks_of("```py\n" + "x = 1\n" * LONGEST + "```\nEnd")
    assert {(block.kind, block.language) for block in code[:-1]} == {("code", "py")}
    assert "".join(block.code for block in code) == "x = 1\n" * LONGEST
    assert code[-1] == MarkdownBlock("markdown", "End")


def test_a_terminal_without_changing_lines_gets_every_line_at_once() -> None:
    blocks = Blocks(by_lines=True)
    assert blocks.push("# One\ntw") == [MarkdownBlock("lines", "# One\n")]
    assert blocks.push("o\n\nthree\n") == [MarkdownBlock("lines", "two\n\nthree\n")]
    assert [*blocks.push("fo"), *blocks.push("ur"), *blocks.flush()] == [MarkdownBlock("lines", "four")]


@pytest.mark.parametrize("text", ["```\nx\n```\n", "# Head\n", "One\n\n", "word ", "\n", "- a\n", "```py\n", "x\n"])
def test_what_follows_the_most_that_is_read_as_markdown_is_given_as_it_was_written(text: str) -> None:
    blocks = Blocks()
    pieces = [text * (LONGEST // len(text))] * (2 * MOST // LONGEST)
    done = [*(block for piece in pieces for block in blocks.push(piece)), *blocks.flush()]
    first = next(place for place, block in enumerate(done) if block.kind == "lines")
    assert "".join(block.text for block in done) == "".join(pieces)
    assert {block.kind for block in done[first:]} == {"lines"}
    assert MOST - 2 * LONGEST < sum(len(block.text) + PER_BLOCK for block in done[:first]) <= MOST + 2 * LONGEST
