"""What a person searches for, and the snippet that shows it."""

from __future__ import annotations

import sqlite3
import unicodedata
from contextlib import closing
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.text.words import Phrase, match_of, search_parts, snippet

QUERIES = st.one_of(
    st.text(), st.text('ab"*-^:(){}+ \0'), st.lists(st.sampled_from(("AND", "OR", "NEAR(", '"', "a*"))).map(" ".join)
)


def marked(text: str, query: str) -> str:
    """The snippet with brackets around what was found."""
    return "".join(f"[{piece.text}]" if piece.found else piece.text for piece in snippet(text, search_parts(query)))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("add version", [("add", False), ("version", False)]),
        ('"add version" x', [("add version", False), ("x", False)]),
        ("deploy* x", [("deploy*", True), ("x", False)]),
        ('"add ver"*', [("add ver", True)]),
        ('"never closed', [("never closed", False)]),
        ('* "" -- "!?"', []),
        ("a\0b \udcff", [("a", False), ("b", False)]),
    ],
)
def test_words_phrases_and_beginnings_are_told_apart(text: str, parts: list[tuple[str, bool]]) -> None:
    assert search_parts(text) == tuple(Phrase(*part) for part in parts)


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("Add a Version\noption", "version", "Add a [Version] option"),
        ("Crème brûlée", "creme BRULEE", "[Crème] [brûlée]"),
        ("options and an opt", "opt", "options and an [opt]"),
        ("options", "opt*", "[options]"),
        ("a-b a b", '"a b"', "[a-b] [a b]"),
        ("我们需要全文搜索功能", "全文搜索", "我们需要[全文搜索]功能"),
        ("全文searchします", "search", "全文[search]します"),
        ("全文searchします", "文search", "全[文search]します"),
        ("全文searchします", "sear", "全文searchします"),
        ("全文searchします", "文sear*", "全[文search]します"),
        ("全文 検索, 全文。検索", "文検", "全[文 検]索, 全[文。検]索"),
        ("ต้องการค้นหาข้อความ", "ค้นหา", "ต้องการ[ค้นหา]ข้อความ"),
        ("각 값 가 が", "가", "각 값 [가] が"),
        ("かが", "か", "[か]が"),
        ("Die Straße hier", "STRASSE", "Die [Straße] hier"),
        ("Die STRASSE hier", "straße", "Die [STRASSE] hier"),
        ("the \ufb01le", "file", "the [\ufb01le]"),
        ("Donau\u00addampf da", "donaudampf", "[Donau\u00addampf] da"),
        ("אמר שָׁלוֹם לך", "שלום", "אמר [שָׁלוֹם] לך"),
        ("5㎏ here", "kg", "5[㎏] here"),
        ("U\u0308ber", "uber", "[Über]"),
        ("ß" * 90 + " needle", "needle", "…[needle]"),
        ("\u00ad" * 300 + "word here", "word", "…" + "\u00ad" * 60 + "[word] here"),
        ("x" * 300, "y", "x" * 180 + "…"),
        ("word " * 100 + "needle" + " word" * 100, "needle", "…" + "word " * 11 + "[needle]" + " word" * 34 + " wor…"),
    ],
)
def test_a_snippet_shows_what_was_found(text: str, query: str, shown: str) -> None:
    assert marked(text, query) == shown


def test_the_snippet_of_a_long_decomposed_text_shows_what_was_found() -> None:
    text = unicodedata.normalize("NFD", "Größe, Öl und Süßes " * 100 + "Überraschungsgefüge" + " schön" * 100)
    for query in ("Überraschungsgefüge", "uberraschungsgefuge", unicodedata.normalize("NFD", "Überraschungsgefüge")):
        assert "[Überraschungsgefüge]" in marked(text, query)


@given(QUERIES, st.text())
def test_fts_takes_every_query_and_every_snippet_is_one_line(query: str, text: str) -> None:
    parts = search_parts(query)
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5 (content)")
        if parts:
            db.execute("SELECT * FROM words WHERE words MATCH ?", (match_of(parts),)).fetchall()
    shown = "".join(piece.text for piece in snippet(text, parts))
    assert not any(unicodedata.category(character).startswith("Z") and character != " " for character in shown)


def test_a_long_text_in_which_every_word_is_found_takes_a_moment() -> None:
    text = "word " * 200_000
    begun = process_time()
    assert marked(text, "word*").startswith("[word] ")
    assert marked(text, '"word word x"').startswith("word ")
    assert process_time() - begun < 5
