from __future__ import annotations

import re
from itertools import pairwise
from unicodedata import category, combining, name

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich._emoji_codes import EMOJI

from teamchat.core.text.clean import _PIECE, Cleaner, VisibleCleaner, clean, printable, sequences, told, visible
from teamchat.core.text.invisible import INVISIBLE, is_invisible, with_codes
from tests.core.routing.marker_texts import grows_linearly

SEQUENCES = [
    "\x1b[31m",
    "\x1b[0m",
    "\x1b[2J",
    "\x1b[?1049h",
    "\x1b[1;2 q",
    "\x9b31m",
    "\x1b]0;a title\x07",
    "\x1b]8;;https://example.org/\x1b\\",
    "\x1b]52;c;" + "QUJD" * 50 + "\x07",
    "\x9d0;a title\x9c",
    "\x1bPq#0;2;0\x1b\\",
    "\x1b^private\x1b\\",
    "\x1b_application\x1b\\",
    "\x1bXstart\x1b\\",
    "\x1bc",
    "\x1b(B",
    "\x1b7",
    "\x1b#8",
]
PIECES = [
    *SEQUENCES,
    "\x1b",
    "[",
    "]",
    "P",
    "\\",
    "\x07",
    "\x9c",
    "\x9b",
    "\x9d",
    "\x90",
    "1",
    ";",
    " ",
    "m",
    "\n",
    "\r",
    "a",
    "水",
]
torn = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join)


def in_pieces(text: str, cuts: list[int]) -> str:
    cleaner = Cleaner()
    bounds = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    shown = [cleaner.push(text[start:end]) for start, end in pairwise(bounds)]
    return "".join([*shown, cleaner.flush()])


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_sequence_goes_and_the_text_around_it_stays(sequence: str) -> None:
    assert clean(f"before{sequence}after") == "beforeafter"


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_sequence_goes_wherever_it_is_torn(sequence: str) -> None:
    text = f"before{sequence}after"
    assert {in_pieces(text, [cut]) for cut in range(len(text))} == {"beforeafter"}
    assert in_pieces(text, list(range(len(text)))) == "beforeafter"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\tb\nc\n", "a\tb\nc\n"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "ab"),
        ("a\x00\x08\x7f\x85b", "ab"),
        ("🙂 水 \u202e", "🙂 水 \u202e"),
        ("a\x1b]never ended\nb", "a\nb"),
        ("a\x1b[12\nb", "a12\nb"),
        ("a\x1b\x1b[31mb", "ab"),
        ("a\x1b]x\x1b[31mb", "ab"),
        ("[31m", "[31m"),
        ("a\x1b", "a"),
        ("\x1b[" + "1" * 300 + "m", "1" * 300 + "m"),
    ],
)
def test_what_stays_of_a_text(text: str, left: str) -> None:
    assert clean(text) == left
    assert in_pieces(text, list(range(len(text)))) == left


@given(torn)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    left = clean(text)
    assert not [c for c in left if c not in "\t\n" and (c < " " or "\x7f" <= c <= "\x9f")]
    assert clean(left) == left


@given(st.text(st.characters(max_codepoint=0x7F, exclude_characters="\x1b")))
def test_ascii_loses_the_same_controls_as_other_text(text: str) -> None:
    assert clean(text) + "水" == clean(f"{text}水")


@given(st.text(st.characters(exclude_categories=["Cc"])))
def test_a_text_without_controls_is_not_touched(text: str) -> None:
    assert clean(text) == text


@given(torn, st.lists(st.integers(0, 1000), max_size=6))
@example("\x1b[31m", [2])
@example("\x1b]0;title\x07", [2])
@example("\x9dab\x1b\\c", [3])
@example("\x1b\x1b", [1])
def test_cleaning_in_pieces_is_cleaning_the_whole(text: str, cuts: list[int]) -> None:
    assert in_pieces(text, cuts) == clean(text)


@pytest.mark.parametrize("at", range(-4, 1))
def test_a_long_text_is_cleaned_as_a_short_one(at: int) -> None:
    before = "a" * (_PIECE + at)
    assert clean(f"{before}\x1b[1mb\x1b]0;c{'d' * _PIECE}\x07e") == f"{before}be"


def in_sequences(text: str) -> list[int]:
    return [at for begin, end in sequences(text) for at in range(begin, end)]


@pytest.mark.parametrize("code", [*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
def test_what_turns_the_direction_of_writing_stays_in_a_prompt_and_is_shown_by_its_code(code: int) -> None:
    text = f"a\x1b[1m{chr(code)}b"
    assert clean(text) == f"a{chr(code)}b"
    assert visible(text) == f"a\\u{code:04x}b"


@pytest.mark.parametrize(
    ("text", "shown", "left"),
    [
        ("a\u200bb", "a\\u200bb", "ab"),
        ("a\u00adb\ufeff", "a\\u00adb\\ufeff", "ab"),
        ("a\u200d\u200cb", "a\\u200d\\u200cb", "ab"),
        ("水\u200b\u200bb", "水\\u200b\\u200bb", "水b"),
        ("é\u200bx", "é\\u200bx", "éx"),
        ("─\U000e0172─", "─\\U000e0172─", "──"),
        ("д\ufe0fа\u2060", "д\\ufe0fа\\u2060", "да"),
        ("\u200d\ufe0fx", "\\u200d\\ufe0fx", "x"),
        ("Hi\U000e0048\U000e0069", "Hi\\U000e0048\\U000e0069", "Hi"),
        ("🏴\U000e0048\U000e0069", "🏴\\U000e0048\\U000e0069", "🏴"),
        ("🏴\U000e0068\U000e0069\U000e007f", "🏴\\U000e0068\\U000e0069\\U000e007f", "🏴"),
        ("😀\ufe0f\ufe0f\ufe0e", "😀\ufe0f\\ufe0f\\ufe0e", "😀\ufe0f"),
        ("😀\ufe01", "😀\\ufe01", "😀"),
        ("😀\u200dx😀\u200d", "😀\\u200dx😀\\u200d", "😀x😀"),
        ("😀\u200d\u200d😀", "😀\\u200d\\u200d😀", "😀😀"),
        ("1\ufe0f2", "1\\ufe0f2", "12"),
        ("م\u200c\u200cخ", "م\\u200c\\u200cخ", "مخ"),
        ("م\u200c خ\u200cx", "م\\u200c خ\\u200cx", "م خx"),
        ("م\u200bخ", "م\\u200bخ", "مخ"),
        ("葛\U000e0100\U000e0101か\U000e0100", "葛\U000e0100\\U000e0101か\\U000e0100", "葛\U000e0100か"),
        ("x\u180bᠠ\u180b\u180b", "x\\u180bᠠ\u180b\\u180b", "xᠠ\u180b"),
        ("a\ufe0fb", "a\\ufe0fb", "ab"),
        ("a\x1b[1m\u2060b", "a\\u2060b", "ab"),
        ("\u3164\u3164", "\\u3164\\u3164", ""),
    ],
)
def test_what_nobody_sees_is_shown_by_its_code_and_told_to_no_member(text: str, shown: str, left: str) -> None:
    assert (visible(text), told(text)) == (shown, left)
    assert told(left) == left


@pytest.mark.parametrize("letter", ["a", "é", "ß", "д", "λ", "ש", "か", "한", "─", "—", "“", "€", "→", "∑", "½", "|"])
def test_no_invisible_character_goes_with_a_letter_or_sign_that_needs_none(letter: str) -> None:
    assert told("".join(letter + c for c in ALL_INVISIBLE)) == letter * len(ALL_INVISIBLE)
    assert len(ALL_INVISIBLE) > 4000


ALL_INVISIBLE = re.findall(f"[{INVISIBLE}]", "".join(map(chr, range(0x110000))))
TURNS = {f"\\u{code:04x}": chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
FLAG = "🏴" + "".join(chr(0xE0000 + ord(c)) for c in "gbeng\x7f")
VIRAMA = 9  # combining class
UNJOINED = ("", "LATIN", "GREEK", "CYRILLIC", "HEBREW", "CJK", "HIRAGANA", "THAI", "LAO")
WRITTEN = "ab水😀❤🏴1#\u20e3مخक्ക്ไท한─é ᠠ"
UNSEEN = "\u200b\u200c\u200d\ufe0e\ufe0f\u180b\U000e0067\U000e0062\U000e0172\u00ad"
mixed = st.lists(
    st.sampled_from([*WRITTEN, *UNSEEN, FLAG, "\u202e", "\x1b[m"]) | st.characters(exclude_categories=["Cs"]),
    max_size=30,
).map("".join)


@given(mixed)
def test_of_invisible_characters_few_are_told_and_all_are_shown(text: str) -> None:
    left = told(text)
    assert told(left) == left
    assert re.sub(r"\\u(?:202[a-e]|206[6-9])", lambda code: TURNS[code[0]], visible(left)) == left
    assert re.sub(f"[{INVISIBLE}]", "", left) == re.sub(f"[{INVISIBLE}]", "", clean(text))


@given(mixed)
def test_what_is_told_has_invisible_characters_in_the_allowed_places_alone(text: str) -> None:
    left = told(text).replace(FLAG, "🏴")
    places = list(re.finditer(f"(.?)([{INVISIBLE}]+)(.?)", left, re.DOTALL))
    assert all(is_allowed(before, run, after) for before, run, after in (place.groups() for place in places))


def is_allowed(before: str, run: str, after: str) -> bool:
    """By the names and categories of the characters, where the code has their numbers."""
    script = name(before, "").split(" ", maxsplit=1)[0]
    between = category(before or " ")[0] + category(after or " ")[0]
    match run:
        case "\ufe0e" | "\ufe0f":
            return is_symbol(before) or (before in [*"0123456789#*"] and after == "\u20e3")
        case "\ufe0f\u200d":
            return is_symbol(before) and is_symbol(after)
        case "\u200d" if is_symbol(before):
            return is_symbol(after)
        case "\u200c" | "\u200d":
            ends = run == "\u200d" and (before == "ه" or combining(before) == VIRAMA)
            return script not in UNJOINED and (ends or set(between) <= {*"LM"})
        case "\u200b":
            return script in ("THAI", "LAO", "KHMER", "MYANMAR") and set(between) <= {*"LM"}
        case _ if "\u180b" <= run <= "\u180f":
            return script == "MONGOLIAN"
        case _:
            return script == "CJK" and len(run) == 1 and "\U000e0100" <= run <= "\U000e01ef"


def is_symbol(character: str) -> bool:
    return character > "\x7f" and (
        category(character) in ("So", "Sk", "Sm", "Cn") or character in "‼⁉ℹ〰〽🄀🄁🄂🄃🄄🄅🄆🄇🄈🄉🄊🄋🄌"
    )


@given(mixed, st.lists(st.integers(0, 1000), max_size=8))
def test_what_is_shown_in_pieces_is_what_is_shown_whole(text: str, cuts: list[int]) -> None:
    shower = VisibleCleaner()
    bounds = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    shown = [shower.push(text[start:end]) for start, end in pairwise(bounds)]
    assert "".join([*shown, shower.flush()]) == visible(text)
    assert shower.push("\u200d❤") + shower.flush() == "\\u200d❤"  # another text


def test_every_emoji_stays() -> None:
    assert [emoji for emoji in EMOJI.values() if not emoji == told(emoji) == visible(emoji)] == []


@pytest.mark.parametrize(
    "text",
    [
        "❤\ufe0f\u200d🔥",
        "1\ufe0f\u20e3",
        "🏳\ufe0f\u200d🌈",
        "👩🏽\u200d🚀",
        "می\u200cخواهم",
        "۱۴۰۳ ه\u200d.ش",
        "葛\U000e0100",
        "©\ufe0f",
        "क्\u200dष",
        "അവന്\u200d.",
        "ᠬᠠᠳ\u180eᠠ",
        "ภาษา\u200bไทย",
        "ភាសា\u200bខ្មែរ",
    ],
)
def test_what_emoji_and_scripts_are_written_with_stays(text: str) -> None:
    assert (visible(text), told(text)) == (text, text)


@pytest.mark.parametrize(
    "piece",
    [
        "é\U000e0172",
        "\u200b",
        "🏴\U000e0067\U000e0062\U000e0065",
        FLAG,
        "❤\ufe0f\u200d",
        "م\u200c",
        "😀\ufe0f",
        "1\ufe0f",
    ],
)
def test_invisible_characters_take_time_as_their_number(piece: str) -> None:
    assert grows_linearly(told, piece)
    assert grows_linearly(visible, piece)
    assert grows_linearly(VisibleCleaner().push, piece)


@pytest.mark.parametrize("nation", ["eng", "sct", "wls"])
def test_a_flag_is_written_with_tags(nation: str) -> None:
    flag = "🏴" + "".join(chr(0xE0000 + ord(c)) for c in f"gb{nation}\x7f")
    assert (visible(flag), told(flag)) == (flag, flag)
    assert told(flag[:-1]) == told(flag[1:] + flag[0]) == "🏴"
    assert told(flag * 2 + flag[1:]) == flag * 2


@pytest.mark.parametrize("letter", ["x", "é"])
def test_a_control_is_found_at_any_place_of_a_long_text(letter: str) -> None:
    many = 3 * 1024 * 1024
    for before in (0, 1024 * 1024 - 1, 1024 * 1024, many):
        assert clean(f"{letter * before}\0{letter * (many - before)}\b") == letter * many
    assert clean(letter * many) == letter * many


@pytest.mark.parametrize("text", ["שלום, world", "مرحبا", "\u200e\u200f\u061c", "👩\u200d👩\u200d👧", "水"])
def test_writing_that_needs_no_turning_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(torn)
def test_no_text_waits_but_the_beginning_of_a_sequence(text: str) -> None:
    cleaner = Cleaner()
    cleaner.push(text)
    assert cleaner._held[:1] in ("", *"\x1b\x9b\x9d\x90\x9e\x9f\x98")
    assert len(cleaner._held) < 300


@pytest.mark.parametrize(
    "piece",
    [
        "\x1b",
        "\x1b[",
        "\x1b]",
        "\x9d",
        "\x9d\x1b",
        "\x9b1",
        "\x1b[1",
        "\x1b]x\x07",
        "a\x1b",
        "\x9d\x1bx",
        "x\x9d",
        "\r",
    ],
)
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    assert grows_linearly(clean, piece)
    assert grows_linearly(Cleaner().push, piece)
    assert grows_linearly(Cleaner().push, piece + "\x07")


@pytest.mark.parametrize("opening", ["\x1b]", "\x1b["])
def test_a_sequence_that_never_ends_takes_no_more_memory_and_time_piece_by_piece(opening: str) -> None:
    def feed(text: str) -> None:
        cleaner = Cleaner()
        cleaner.push(opening)
        for character in text:
            cleaner.push(character)

    assert grows_linearly(feed, "1")


@given(st.text())
def test_on_one_line_everything_can_be_printed_and_read_back(text: str) -> None:
    line = printable(text)
    assert all(one.isprintable() or is_invisible(one) for one in line)
    assert with_codes(line) == line, "what is needed stays, and nothing else that nobody sees"
    escaped = (one if one.isprintable() or is_invisible(one) else one.encode("unicode_escape").decode() for one in text)
    assert line == "".join(escaped) or any(map(is_invisible, text))


@pytest.mark.parametrize("text", ["می\u200cخواهم", "👩\u200d💻", "क्\u200dष"])
def test_joiners_that_writing_needs_are_printed_as_they_are(text: str) -> None:
    assert printable(f"{text}\n") == f"{text}\\n"


@pytest.mark.parametrize(("text", "shown"), [("a\u200cb", "a\\u200cb"), ("abc \u202e def", "abc \\u202e def")])
def test_others_are_printed_by_their_codes(text: str, shown: str) -> None:
    assert printable(text) == shown
