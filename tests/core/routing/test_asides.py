"""What a model thinks in tags, and HTML comments: no marker, verdict or JSON answer is read in there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.routing.markdown import asides_of, own_words, without_asides
from teamchat.core.routing.markers import Author, read_markers
from tests.core.routing.marker_texts import grows_linearly
from tests.trials import some

CALL = "[NEXT: b]"
PARTS = ("<think>", "</think>", "<thinking>", "</Thinking>", "<!--", "-->", "`", "```\n", "> ", "\n", "word ", CALL)


def calls(text: str, author: Author = "ai") -> list[str]:
    """The names that are called, and why the others are not."""
    return [marker.why_not or marker.body.strip() for marker in read_markers(text, author).markers]


@pytest.mark.parametrize("name", ["think", "thinking", "reasoning", "THINK", "think effort=3"])
def test_a_marker_in_a_block_of_thinking_calls_nobody(name: str) -> None:
    text = f"<{name}>\nI could ask {CALL}.\n</{name.partition(' ')[0]}>\n\nThe answer is 4. [NEXT: c]"
    assert calls(text) == ["in a block of thinking", "c"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{CALL} ok </think> [NEXT: c]", ["in a block of thinking", "c"]),
        (f"<think>a</think> {CALL} </think> [NEXT: c]", ["in a block of thinking", "c"]),
        (f"<think><think>{CALL}</think> [NEXT: c]", ["in a block of thinking", "c"]),
        (f"<think>{CALL}</thinking></think> [NEXT: c]", ["in a block of thinking", "c"]),
        (f"\n <think>{CALL}\n[NEXT: c]", ["in a block of thinking"] * 2),
        (f"So: <think>{CALL}", ["b"]),
        (f"`<think>` {CALL}", ["b"]),
        (f"`<think>` {CALL} `</think>`", ["b"]),
        (f"```\n<think>\n```\n{CALL}\n```\n</think>\n```", ["b"]),
        (f"> <think>\n\n{CALL}", ["b"]),
        (f"<thinker>{CALL}</thinker>", ["b"]),
        (f"<!-- {CALL} --> [NEXT: c]", ["in an HTML comment", "c"]),
        (f"a <!--\n{CALL}\n--> [NEXT: c]", ["in an HTML comment", "c"]),
        (f"   <!-- {CALL}\n[NEXT: c]", ["in an HTML comment"] * 2),
        (f"a <!-- {CALL}", ["b"]),
        (f"<!--> {CALL} -->", ["b"]),
        (f"<!---> {CALL} -->", ["b"]),
        (f"<!----> {CALL} -->", ["b"]),
        (f"`<!--` {CALL} -->", ["b"]),
        (f"<!-- <think> --> {CALL} </think> [NEXT: c]", ["in a block of thinking", "c"]),
        (f"<think> <!-- </think> {CALL}", ["b"]),
    ],
)
def test_where_an_aside_begins_and_ends(text: str, found: list[str]) -> None:
    assert calls(text) == found


def test_a_person_may_write_of_such_tags_but_not_call_in_a_comment() -> None:
    assert calls(f"{CALL} Why does it print </think>?", "human") == ["b"]
    assert calls(f"<think> {CALL}", "human") == ["b"]
    assert calls(f"<!-- {CALL} --> [NEXT: c]", "human") == ["in an HTML comment", "c"]


def test_an_aside_keeps_its_lines_and_columns() -> None:
    text = 'a <think>\n"b"\n</think> c\n> q\nd'
    assert without_asides(text) == "a        \n   \n         c\n> q\nd"
    assert own_words(text) == "a        \n   \n         c\n   \nd"
    assert asides_of("<think>a").unclosed == "<think>"
    assert asides_of("<think>a</think>").unclosed is None


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_asides_are_in_order_and_apart_and_blank_texts_are_as_long(text: str) -> None:
    ends = [0, *(end for span in asides_of(text).spans for end in (span.start, span.end)), len(text)]
    assert ends == sorted(ends)
    assert [len(line) for line in own_words(text).split("\n")] == [len(line) for line in text.split("\n")]


TAGS = ("<think>", "</think>", "<think></think>", "<!--", "<!-- -->", "<!-- --></think>", "`<think>", "a<think>")


@pytest.mark.parametrize("piece", some(TAGS, "<think></think>", "<!-- --></think>", "a<think>"))
def test_it_is_linear_in_the_text(piece: str) -> None:
    assert grows_linearly(without_asides, piece)
