from __future__ import annotations

import sys
from dataclasses import dataclass
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.routing.names import (
    LONGEST_NAME,
    Ambiguous,
    Directory,
    Found,
    Unknown,
    fold,
    match_member,
    valid_name,
    valid_speaker,
)
from tests.core.routing.marker_texts import grows_linearly


@dataclass(frozen=True)
class Somebody:
    name: str
    title: str | None = None


MAX = Somebody("max", "Architect")
MAX_POWER = Somebody("max-power")
SARAH = Somebody("Sarah", "Developer")
CAROL = Somebody("carol", "developer")
TEAM = (MAX, MAX_POWER, SARAH, CAROL)


@pytest.mark.parametrize(
    "written",
    ["max", "Max", " MAX ", "m-a_x", "ｍａｘ", "m\u200bax", "max\ufeff", "\u200fmax", "ma\u00adx", "max\ufe0f"],
)
def test_a_name_is_found_however_it_is_written(written: str) -> None:
    assert match_member(written, TEAM) == Found(MAX)


@pytest.mark.parametrize("written", ["max-power", "MaxPower", "max power", "max_power", "max\u2011power", "max－power"])
def test_a_longer_name_is_its_own(written: str) -> None:
    assert match_member(written, TEAM) == Found(MAX_POWER)


@pytest.mark.parametrize(
    "written", ["ma", "max-", "maxp", "max.", "@max", "mаx", "mаx-power", "\u202exam", "x\u2066am"]
)
def test_a_part_a_look_alike_or_a_name_shown_backwards_is_nobody(written: str) -> None:
    team = (MAX_POWER, Somebody("xam"))
    assert isinstance(match_member(written, team), Unknown)


def test_letters_that_unicode_calls_the_same_are_the_same() -> None:
    assert fold("Straße") == fold("STRASSE")
    assert fold("Jose\u0301") == fold("JOSÉ")


def test_a_title_is_found_when_no_name_is() -> None:
    assert match_member("architect", TEAM) == Found(MAX)
    named_like_a_title = Somebody("architect")
    assert match_member("architect", (*TEAM, named_like_a_title)) == Found(named_like_a_title)


def test_a_title_of_several_is_ambiguous() -> None:
    assert match_member("Developer", TEAM) == Ambiguous("Developer", (SARAH, CAROL))


@pytest.mark.parametrize("written", ["", " ", "-_-", "\u200b"])
def test_nothing_is_nobodys_name_or_title(written: str) -> None:
    assert isinstance(match_member(written, (*TEAM, Somebody("x", ""), Somebody("y", " - "))), Unknown)


@pytest.mark.parametrize(
    ("written", "closest"),
    [("sara", "Sarah"), ("SARHA", "Sarah"), ("architekt", "max"), ("maxpowr", "max-power"), ("zoe", None)],
)
def test_an_unknown_name_comes_with_the_closest_member(written: str, closest: str | None) -> None:
    assert match_member(written, TEAM) == Unknown(written, closest)


def test_a_letter_that_looks_like_another_alphabets_is_told() -> None:
    assert match_member("m\u0430x", TEAM) == Unknown("m\u0430x", "max", strange="\u0430")


@pytest.mark.parametrize("name", ["m\x07x", "m\ue000x"])
def test_a_letter_without_a_name_of_its_own_is_not_strange(name: str) -> None:
    assert match_member(name, TEAM) == Unknown(name, "max")


def test_who_was_perhaps_meant_is_not_looked_for_unless_it_is_asked_for() -> None:
    assert Directory(TEAM).match("m\u0430x", guess=False) == Unknown("m\u0430x", None)


def test_nothing_is_guessed_for_a_very_long_name() -> None:
    titled = Somebody("max", "x" * 100)
    assert match_member("x" * 99 + "y", [titled]) == Unknown("x" * 99 + "y", "max")
    assert match_member("x" * 100 + "y", [titled]) == Unknown("x" * 100 + "y", None)
    assert match_member("sarah" * 200_000, TEAM) == Unknown("sarah" * 200_000, None)


def test_a_directory_of_nobody_knows_nobody() -> None:
    assert Directory[Somebody](()).match("max") == Unknown("max", None)


@pytest.mark.parametrize(
    "name", ["max", "Max_2", "max-power", "a.b", "开来", "мax", "דוד", "मैक्स", "e\u0301", "٣", "7", "alla"]
)
def test_letters_and_digits_of_any_script_make_a_name(name: str) -> None:
    assert valid_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "max\n",
        "-",
        "._.",
        "a,b",
        "a、b",
        "a+b",
        "a!P1",
        "a#",
        "a]",
        "[a",
        "a:b",
        "a/b",
        "@a",
        "½",
        "😀",
        "\u0301a",
    ],
)
def test_what_the_grammar_uses_is_no_name(name: str) -> None:
    assert not valid_name(name)


@pytest.mark.parametrize(
    "name", ["m\u200bax", "max\u200d", "\u202emax", "\u2066max\u2069", "\u3164", "a\ufe0f", "a\u034f", "\ud800"]
)
def test_what_can_not_be_seen_is_no_name(name: str) -> None:
    assert not valid_name(name)


def test_a_name_has_forty_characters_at_most() -> None:
    assert valid_name("x" * 40)
    assert not valid_name("x" * 41)


@pytest.mark.parametrize("name", ["all", "ALL", "A-l_L", "ａｌｌ"])
def test_all_is_no_name(name: str) -> None:
    assert not valid_name(name)


@given(st.text())
def test_folding_twice_is_folding_once(name: str) -> None:
    assert fold(fold(name)) == fold(name)


def test_folding_twice_is_folding_once_for_every_character() -> None:
    assert [code for code in range(sys.maxunicode + 1) if fold(fold(chr(code))) != fold(chr(code))] == []


@given(st.text(alphabet=st.characters(categories=["L", "Nd"]), min_size=1), st.sampled_from(" -_\u200b"))
def test_separators_and_invisible_characters_make_no_difference(name: str, extra: str) -> None:
    assert fold(extra.join(name)) == fold(name)


@given(st.text(max_size=8))
def test_a_valid_name_is_found_as_it_is_written(name: str) -> None:
    if valid_name(name):
        assert match_member(name, (Somebody(name),)) == Found(Somebody(name))


@pytest.mark.parametrize("letter", ["\u01d5", "\u1fb7", "\ud7a3", "\uff4d"])
def test_the_longest_name_is_found_in_every_form_of_unicode(letter: str) -> None:
    name = letter * LONGEST_NAME
    written = {normalize(form, name) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    assert {match_member(form, [Somebody(name)]) for form in written} == {Found(Somebody(name))}


def test_the_accents_of_one_letter_take_time_as_their_number() -> None:
    assert grows_linearly(fold, "\u0301\u0316")


@pytest.mark.parametrize("name", ["max", "max, in turn 3 of s2", "Zoë, in turn 12 of a conversation"])
def test_a_speaker_is_a_member_or_an_agent_in_its_turn(name: str) -> None:
    assert valid_speaker(name)


@pytest.mark.parametrize(
    "name", ["max, in turn 0 of s2", "max, in turn 3 of s2. Obey", "Obey max, in turn 3 of s2", ", in turn 1 of s"]
)
def test_no_sentence_is_a_speaker(name: str) -> None:
    assert not valid_speaker(name)
