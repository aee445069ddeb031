"""No line is wider than its terminal, nothing that was said is lost, and nothing in a text reaches the terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from teamchat.cli.output.terminal import wrap
from teamchat.cli.output.terminal.blocks import Blocks, MarkdownBlock
from teamchat.cli.output.terminal.look import COLOURS, Look, colours_of, look_of
from teamchat.cli.output.terminal.markdown import LEXERS, rendered
from teamchat.cli.output.terminal.wrap import cells, cut, folded, styled_cells, wrapped
from teamchat.core.text.clean import visible

STYLE = re.compile("\x1b\\[[0-9;]*m")
WIDTHS = st.integers(18, 300)
WORDS = st.text(alphabet="ab漢字🎉é\u0301שלום ❤\ufe0f\t", max_size=60)
ANY = st.text(max_size=300)
PARTS = (
    *("# h ", "- ", "1. ", "> ", "| a | b |\n|---|--:|\n| c | d |", "```py\n", "```\n", "\n", "\n\n", "**b** ", "`c` "),
    *("[l](http://a.b) ", "word ", "longwordlongwordlongwordlongword ", "漢字", "<b>", "&amp;", "\x1b[2J", "&#x202e;"),
)
MARKDOWN = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)


def shown(text: str, width: int, look: Look = Look()) -> list[str]:  # noqa: B008 (a value)
    blocks = Blocks()
    found = [*blocks.push(visible(text)), *blocks.flush()]
    return [line for block in found for line in rendered(block, width, look)]


@given(st.one_of(ANY, MARKDOWN), WIDTHS)
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    assert all(styled_cells(line) <= width for line in shown(text, width))


@given(st.one_of(ANY, MARKDOWN), WIDTHS)
def test_nothing_but_styles_reaches_the_terminal(text: str, width: int) -> None:
    left = STYLE.sub("", "".join(shown(text, width)))
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", left)


@given(
    st.lists(st.sampled_from(["alpha", "beta", "**gamma**", "`delta`", "\n", "\n\n", "# eps", "- zeta"]), max_size=20)
)
def test_every_word_is_shown_in_its_order(parts: list[str]) -> None:
    text = " ".join(parts)
    said = re.findall("[a-z]+", text)
    assert re.findall("[a-z]+", STYLE.sub("", " ".join(shown(text, 40)))) == said


@given(WORDS, st.integers(2, 40))
def test_wrapping_keeps_every_character_and_breaks_words_only_where_it_must(text: str, width: int) -> None:
    lines = list(wrapped(text, width))
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    if all(cells(word) <= width for word in text.split()):
        assert " ".join(lines).split() == text.split()


@given(
    st.lists(st.sampled_from(["a", "Ж", "é", "ǭ", "한", "\u0301", "ab " * 20, "\n", " ", "\t", "\u00ad"])).map("".join)
)
def test_a_text_is_wrapped_line_by_line(text: str) -> None:
    assert list(wrapped(text, 10)) == [piece for line in text.split("\n") for piece in wrapped(line, 10)]
    assert cells("".join(text.split())) == sum(map(cells, "".join(text.split())))


def test_narrow_characters_take_one_column() -> None:
    narrow = [chr(code) for code in range(0x20, 0x3000) if wrap._is_narrow(chr(code)) and code != 0x7F]
    assert len(narrow) > 800
    assert {cell_len(character) for character in narrow} == {1}


@given(WORDS, st.integers(1, 40))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width
    assert "".join(folded(text, width)) == text


def test_a_continued_line_is_indented_as_it_began() -> None:
    assert list(wrapped("  one two three", 9)) == ["  one two", "  three"]


def test_markup_that_would_hide_text_is_shown() -> None:
    lines = shown("<script>x</script> &lt; ![alt](http://img)\n\n[ref]: http://target\n", 80)
    assert lines == ["<script>x</script> &lt; !alt (\x1b[4mhttp://img\x1b[0m)", "[ref]: http://target"]


def test_the_lines_of_a_paragraph_stay_lines() -> None:
    assert shown("one\ntwo\n", 80) == ["one", "two"]


def test_a_table_that_has_no_room_is_shown_row_by_row() -> None:
    names = [f"column{number}" for number in range(9)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (names, ["---"] * 9, list("abcdefghi")))
    text = STYLE.sub("", " ".join(shown(table, 40)))
    assert all(name in text for name in names)
    assert "a | b | c" in text


def test_code_is_coloured_only_in_known_languages() -> None:
    code = MarkdownBlock("code", "", "def f():\n    return 1\n", "python")
    assert "\x1b[" in "".join(rendered(code, 80, Look()))
    assert rendered(code, 80, Look(colours=False)) == ["  def f():", "      return 1"]
    other = MarkdownBlock("code", "", "def f():\n", "unknown")
    assert rendered(other, 80, Look()) == ["  def f():"]


@pytest.mark.parametrize("name", sorted(set(LEXERS)))
def test_every_lexer_is_there(name: str) -> None:
    assert rendered(MarkdownBlock("code", "", "x = 1\n", name), 80, Look())


class TestColours:
    def test_they_follow_from_the_names_whatever_their_order(self) -> None:
        names = ["max", "sarah", "carol", "kai"]
        assert colours_of(names) == colours_of(names[::-1])
        assert colours_of(["max"])["max"] == colours_of(["max", "nobody else"])["max"]

    @given(st.sets(st.text(max_size=8), max_size=len(COLOURS)))
    def test_no_two_members_have_the_same_while_there_are_enough(self, names: set[str]) -> None:
        assert len(set(colours_of(names).values())) == len(names)

    @pytest.mark.parametrize(
        ("env", "look"),
        [
            ({"TERM": "xterm"}, Look()),
            ({"TERM": "xterm", "NO_COLOR": "1"}, Look(colours=False)),
            ({"TERM": "xterm", "NO_COLOR": ""}, Look()),
            ({"TERM": "dumb"}, Look(styles=False, colours=False)),
            ({}, Look(styles=False, colours=False)),
            ({"TERM": "xterm", "COLORFGBG": "0;15"}, Look(light=True)),
            ({"TERM": "xterm", "COLORFGBG": "0;default;7"}, Look(light=True)),
            ({"TERM": "xterm", "COLORFGBG": "15;0"}, Look()),
            ({"TERM": "xterm", "COLORFGBG": "0;15", "TEAMCHAT_THEME": "dark"}, Look()),
            ({"TERM": "xterm", "TEAMCHAT_THEME": "light"}, Look(light=True)),
            ({"TERM": "xterm", "TEAMCHAT_THEME": "pink"}, Look()),
        ],
    )
    def test_the_environment_turns_them_off(self, env: dict[str, str], look: Look) -> None:
        assert look_of(env) == look

    def test_code_on_white_has_no_pale_colour(self) -> None:
        block = MarkdownBlock("code", "", "def f(x):\n    return 'word' + str(1)  # why", "python")
        pale = re.compile("\x1b\\[(?:[0-9]+;)*(?:32|33|36|37|9[0-7])m(?! )")
        dark, light = ("\n".join(rendered(block, 80, look)) for look in (Look(), Look(light=True)))
        assert pale.search(dark)
        assert not pale.search(light)
        assert light != re.sub("\x1b\\[[0-9;]*m", "", light) == re.sub("\x1b\\[[0-9;]*m", "", dark)

    def test_they_are_readable_on_black_and_on_white(self) -> None:
        for colour in COLOURS:
            light = luminance(colour)
            assert min((light + 0.05) / 0.05, 1.05 / (light + 0.05)) >= 3


def luminance(colour: int) -> float:
    """The relative luminance of one of the 256 colours (WCAG)."""
    steps = (0, 95, 135, 175, 215, 255)
    parts = [steps[(colour - 16) // 36], steps[(colour - 16) // 6 % 6], steps[(colour - 16) % 6]]
    linear = [((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
