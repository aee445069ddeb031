from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from teamchat.core.routing.asides import Aside
from teamchat.core.routing.markdown import Places, is_escaped, open_fence
from tests.core.routing.marker_texts import PATHOLOGICAL, grows_linearly, marked_up
from tests.trials import some

FENCE, CODE, QUOTE = Aside.FENCE, Aside.CODE, Aside.QUOTE


def place_of(word: str, text: str) -> Aside | None:
    return Places(text).at(text.index(word))


@pytest.mark.parametrize(
    "text",
    [
        "```\nX\n```",
        "~~~\nX\n~~~",
        "```python\nX\n```",
        "``` with words and ~~~\nX\n```",
        "~~~ with `backticks`\nX\n~~~",
        "   ```\nX\n   ```",
        "````\n```\nX\n````",
        "```\n~~~\nX\n```",
        "```\n    ```\nX",
        "```\n``` not an end\nX",
        "```\n> X",
        "```\nnever closed\n\n\nX",
        "text\n```\nX",
        "```X",
        "```\r\nX\r\n```",
        "```\rX\r```",
        "- item\n  ```\n  X\n  ```",
        "1. item\n\n    ```py\n\n    X\n    ```",
        "- ```\n  X",
        "- a\n  - b\n    ```\n    X",
        "- lazy\nline\n    ```\n    X",
        "*    \n\t~~~\tX",
        "```\n```\n- ```\n  a\n  X",
        "a\n   ```\nX",
        "   - ```X",
        "- -   ```X",
        "- \t ```X",
        "  1. \t```X",
        "1. > a\n> b\n   ```\nX",
        "- a\n\n  \t```\n\n  \tX",
    ],
)
def test_a_fence_reaches_from_its_opening_line_to_its_closing_line(text: str) -> None:
    assert place_of("X", text) is FENCE


@pytest.mark.parametrize(
    "text",
    [
        "```\n```\nX",
        "```\n`````\nX",
        "```\n   ```  \nX",
        "```` \n````\nX",
        "~~\nX",
        "``\nX",
        "    ```\n\nX",
        "``` not `an opening\nX",
        "- ```\n  code\nX",
        "1. item\n\n   ```\n   code\n   ```\n\nX",
        "> ```\nX",
        "- ```\n  code\n  ```\n  X",
        "- a\n```\n```\n    ```\n    X",
        "-    ```\n   X",
        "\t```\nX",
        " \t```\nX",
        "   - ```\n  X",
    ],
)
def test_outside_a_fence_is_ordinary_text(text: str) -> None:
    assert place_of("X", text) is None


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("```py\ncode", "```"),
        ("~~~~ a\ncode\n~~~", "~~~~"),
        ("```\ncode\n```", None),
        ("- ```\n  code", None),
        ("text", None),
    ],
)
def test_what_closes_an_open_fence_is_its_own_run_of_signs_and_one_in_an_item_ends_with_it(
    text: str, closing: str | None
) -> None:
    assert open_fence(text) == closing


@pytest.mark.parametrize(
    "text",
    [
        "`X`",
        "`` ` X ``",
        "a `b\nX` c",
        "`X\\`",
        "\\\\`X`",
        "# `X`",
        "- `a\nX`",
        "1. `a\n   X`",
        "| `X` |",
        "    `X`",
        "> a\n~~~\nb\n~~~\n`X`",
        "`a\n    # X`",
        "`a\n    1. X`",
        "100000000. `a\n    # X`",
    ],
)
def test_inline_code_lies_between_runs_of_backticks_of_one_length_in_one_paragraph(text: str) -> None:
    assert place_of("X", text) is CODE


@pytest.mark.parametrize(
    "text",
    [
        "` X",
        "`` X `",
        "``` X ``",
        "\\`X`",
        "`a` X `b`",
        "`a\n\nX`",
        "# `a\nX`",
        "`a\n# X`",
        "`a\n- X`",
        "`a\n---\nX`",
        "`a\n> b\n\nX`",
        "`a\n```\n```\nX`",
        "    `a\nX`",
    ],
)
def test_unmatched_backticks_are_ordinary_text(text: str) -> None:
    assert place_of("X", text) is None


@pytest.mark.parametrize("text", ["> X", ">X", "   > X", "> > X", "- > X", "text\n> X", "> a\n> X", "1. a\n   > X"])
def test_a_quote_is_a_line_that_begins_with_its_sign(text: str) -> None:
    assert place_of("X", text) is QUOTE


@pytest.mark.parametrize(("gap", "place"), [(4, QUOTE), (5, None)])
def test_what_is_more_than_four_columns_behind_the_sign_of_an_item_is_code(gap: int, place: Aside | None) -> None:
    assert place_of("X", f"-{' ' * gap}> X") is place


@pytest.mark.parametrize("text", ["> a\nX", "> a\n\nX", "    > X", "    - > X", "a > X", "\\> X"])
def test_a_line_without_the_sign_is_no_quote(text: str) -> None:
    assert place_of("X", text) is None


def test_quoted_lines_that_follow_each_other_are_one_span() -> None:
    text = "> a\n  > b\r\nc\n> d"
    assert [text[span.start : span.end] for span in Places(text).spans] == ["> a\n  > b", "> d"]


def test_a_quote_and_a_fence_in_an_item_end_with_it() -> None:
    text = "- ```A\n* ~~~B\n12) > C\n- ``` `D\n# > E\n-   >F\n- > G\nH"
    assert [(text[span.start : span.end], span.place) for span in Places(text).spans] == [
        ("```A\n", FENCE),
        ("~~~B\n", FENCE),
        ("> C", QUOTE),
        (">F", QUOTE),
        ("> G", QUOTE),
    ]
    places = [place_of(letter, text) for letter in "ABCDEFGH"]
    assert places == [FENCE, FENCE, QUOTE, None, None, QUOTE, QUOTE, None]


def test_list_items_deeper_than_a_hundred_are_text() -> None:
    assert place_of("X", "- " * 100 + "```\n" + " " * 200 + "X") is FENCE
    assert place_of("X", "- " * 101 + "```\n" + " " * 202 + "X") is None


def test_spans_begin_and_end_with_their_signs() -> None:
    text = "a `b` c\n> d\n```\ne\n```\nf"
    assert [(text[span.start : span.end], span.place) for span in Places(text).spans] == [
        ("`b`", CODE),
        ("> d", QUOTE),
        ("```\ne\n```", FENCE),
    ]


@pytest.mark.parametrize(("text", "escaped"), [("[", False), ("\\[", True), ("\\\\[", False), ("a\\\\\\[", True)])
def test_an_odd_number_of_backslashes_escapes(text: str, *, escaped: bool) -> None:
    assert is_escaped(text, len(text) - 1) is escaped


@given(marked_up() | st.text())
def test_spans_are_in_order_and_apart_in_any_text(text: str) -> None:
    spans = Places(text).spans
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(one.end <= two.start for one, two in pairwise(spans))


def _as_commonmark_reads(text: str) -> dict[str, Aside | None]:
    """The place of each word `W1W` that is not in a quote or in indented code, where this module goes its own way."""
    found: dict[str, Aside | None] = {}
    quotes = 0
    for token in MarkdownIt("commonmark").parse(text):
        quotes += token.nesting * (token.type in {"blockquote_open", "blockquote_close"})
        if quotes or token.type == "code_block":
            continue
        if token.type == "fence":
            found |= dict.fromkeys(re.findall(r"W\d+W", token.info + token.content), FENCE)
        for child in token.children or []:
            place = CODE if child.type == "code_inline" else None
            found |= dict.fromkeys(re.findall(r"W\d+W", child.content), place)
    return found


@given(marked_up())
def test_code_is_where_a_commonmark_parser_sees_it(text: str) -> None:
    places = Places(text)
    expected = _as_commonmark_reads(text)
    assert {word: places.at(text.index(word)) for word in expected} == expected


@pytest.mark.parametrize("piece", some(PATHOLOGICAL, "` `` ``` ```` ````` ", "```\n", "`[NEXT: a]` "))
def test_finding_code_takes_time_in_proportion_to_the_text(piece: str) -> None:
    assert grows_linearly(Places, piece)


LINES = (
    *(
        "",
        " ",
        "a",
        "a `x`",
        "`",
        "a `",
        "``` `",
        "```",
        "~~~",
        "- a",
        "- `x`",
        "1. `b",
        "- > q",
        "2) > `q`",
        "- ```",
        "- ~~~ f",
        "- ``` `l",
        "-     ```",
        "# `h`",
        "# > h",
        "#",
    ),
    *("> q", "> `q`", " > q", ">", "---", "* * *", "  a `x", "    c `d", "\t`", "  ```", "\\`", "x > `z`"),
)
TEXTS = st.lists(st.sampled_from(LINES), max_size=12).map("\n".join)


@given(TEXTS, TEXTS)
def test_a_heading_begins_anew_whatever_is_open(before: str, behind: str) -> None:
    end = open_fence(before) or ""
    whole = Places(f"{before}\n{end}\n# Head\n{behind}")
    own = Places(f"# Head\n{behind}")
    shift = len(f"{before}\n{end}\n")
    letters = [at for at, letter in enumerate(f"# Head\n{behind}") if letter != "\n"]
    assert [whole.at(shift + at) for at in letters] == [own.at(at) for at in letters]


@given(TEXTS)
def test_every_letter_is_in_the_place_whose_span_has_it(text: str) -> None:
    places = Places(text)
    of = {at: span.place for span in places.spans for at in range(span.start, span.end)}
    letters = [at for at, letter in enumerate(text) if letter != "\n"]
    assert [places.at(at) for at in letters] == [of.get(at) for at in letters]
    assert all(one.end <= following.start for one, following in pairwise(places.spans))


@given(TEXTS, st.sampled_from(["\r\n", "\r"]))
def test_every_line_end_ends_a_line(text: str, end: str) -> None:
    places, others = Places(text), Places(text.replace("\n", end))
    lines, other_lines = text.split("\n"), text.replace("\n", end).split(end)
    assert lines == other_lines
    at = other = 0
    for line in lines:
        assert [places.at(at + n) for n in range(len(line))] == [others.at(other + n) for n in range(len(line))]
        at, other = at + len(line) + 1, other + len(line) + len(end)


LINE_PIECES = (
    "- `x`\n",
    "# `x`\n",
    "`x`\n\n",
    "> q\n`x`\n",
    "```\nx\n```\ny\n",
    "~~~\n",
    "- ```\n",
    "- > q\n",
    "> q\n\n x\n",
    "a\n\n ",
)


@pytest.mark.parametrize("piece", some(LINE_PIECES, "`x`\n\n", "> q\n`x`\n", "- ```\n"))
def test_the_place_of_each_line_takes_time_in_proportion_to_the_text(piece: str) -> None:
    def read(text: str) -> None:
        places = Places(text)
        for at in range(0, len(text), len(piece)):
            places.at(at)

    assert grows_linearly(read, piece)
