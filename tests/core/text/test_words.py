"""What is searched: any of the words, in any script; and no text is syntax."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from teamchat.core.text.words import MOST, TOKENIZER, match_of, match_query, search_parts, spaced
from tests.core.routing.marker_texts import grows_linearly

DOCUMENTS = (
    "Tokens expire after an hour.",
    "用户认证系统使用令牌。",
    "トークンの期限",
    "인증 시스템",
    "Die Anmeldung für Gäste",
    "def session_lock(path): return 404",
    "ต้องการค้นหาข้อความ",
    "မြန်မာစာ",
)


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE VIRTUAL TABLE words USING fts5 (body, tokenize = '{TOKENIZER}')")
    db.executemany("INSERT INTO words VALUES (?)", [(spaced(text),) for text in DOCUMENTS])
    yield db
    db.close()


def found(db: sqlite3.Connection, message: str, task: str | None = None) -> list[str]:
    query = match_query(message, task)
    if query is None:
        return []
    rows = db.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid", (query,))
    return [DOCUMENTS[row - 1] for (row,) in rows]


@pytest.mark.parametrize(
    ("message", "document"),
    [
        ("When does a token expire?", 0),
        ("认证怎么做", 1),
        ("登录令牌", 1),
        ("期限は", 2),
        ("인증", 3),
        ("gaste", 4),
        ("ANMELDUNG", 4),
        ("the session-lock", 5),
        ("error 404!", 5),
        ("ค้นหา", 6),
        ("ခန မြန်မာ", 7),
    ],
)
def test_words_are_found_whatever_their_script_case_and_form(
    db: sqlite3.Connection, message: str, document: int
) -> None:
    assert found(db, message) == [DOCUMENTS[document]]


@pytest.mark.parametrize("message", ["", " \n", "and the of", "?!*", "a b c", "户证"])
def test_what_tells_nothing_finds_nothing(db: sqlite3.Connection, message: str) -> None:
    assert found(db, message) == []


def test_the_task_is_searched_too(db: sqlite3.Connection) -> None:
    assert found(db, "go on", "Let guests register: Anmeldung") == [DOCUMENTS[4]]


@pytest.mark.parametrize("operator", ["AND", "NOT", "NEAR(a b)", "body:", '"', "*", "(", "^", "-", "{a b}:c"])
def test_operators_of_the_search_are_words(db: sqlite3.Connection, operator: str) -> None:
    assert found(db, f"{operator} expire {operator}") == [DOCUMENTS[0]]


@given(st.text(), st.none() | st.text())
@example('"" OR *', None)
@example("\0\ud800 NEAR", "水\u0300")
def test_no_message_is_a_mistake_of_syntax(db: sqlite3.Connection, message: str, task: str | None) -> None:
    assert set(found(db, message, task)) <= set(DOCUMENTS)


def test_a_long_message_is_searched_by_the_words_that_come_most_often() -> None:
    many = " ".join(f"word{number}" for number in range(500))
    query = match_query(f"{many} often often", f"goal {many}", many)
    assert query is not None
    words = query.split(" OR ")
    assert words[0] == '"often"'
    assert len(words) == MOST[0] + 1  # the other texts' other words are the message's
    assert '"goal"' in words
    assert len((match_query("", None, many) or "").split(" OR ")) == MOST[2]


def test_a_word_comes_as_often_as_it_is_written_in_any_case() -> None:
    assert match_query("Red blue RED green Blue green red") == '"red" OR "blue" OR "green"'


@pytest.mark.parametrize(
    "piece", ["[NEXT:", "word ", "a", "字", "字.", "\n", "Việt ", "a\u0301\u0316" * 20, "\u0301\u0316"]
)
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    assert grows_linearly(match_query, piece)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Triển khai lên máy chủ Đà Nẵng", "trien khai"),
        ("Triển khai lên máy chủ Đà Nẵng", "DA NANG"),
        ("Η αναζήτηση στην Αθήνας", "ΑΘΗΝΑΣ"),
        ("Моё дерево", "мое"),
        ("Łódź", "lodz"),
        ("e\u0301te\u0301", "été"),
        ("été", "ete\u0301"),
        ("naïve", "NAIVE"),
        ("Straße", "STRASSE"),
        ("STRASSE", "straße"),
        ("strasse", "Straße"),
        ("Diyarbakır", "DIYARBAKIR"),
        ("DİYARBAKIR", "diyarbakır"),
        ("the \ufb01le", "file"),
        ("the file", "\ufb01le"),
        ("ＡＢＣ１２", "abc12"),
        ("abc12", "ＡＢＣ１２"),
        ("مُحَمَّد", "محمد"),
        ("محمد", "مُحَمَّد"),
        ("שָׁלוֹם", "שלום"),
        ("\ufb2a\u05b8לוֹם", "שלום"),
        ("Donau\u00addampf", "donaudampf"),
        ("Donaudampf", "donau\u200bdampf"),
        ("\ufeffwo\u2060rd", "word"),
        ("Œuvre", "oeuvre"),
        ("coeur", "cœur"),
        ("Ærø", "aero"),
        ("aether", "æther"),
        ("ᾳ", "α"),
        ("Foo™ and 20℃", "foo 20 c"),
        ("می\u200cخواهم", "خواهم"),
        ("㌀", "アパート"),
    ],
)
def test_upper_case_and_accents_make_no_difference(text: str, query: str) -> None:
    assert finds(text, query)


@pytest.mark.parametrize(
    ("text", "message"), [("Überschuß", "uberschuss?"), ("Uberschuss", "U\u0308berschu\u00df"), ("cœur", "coeur")]
)
def test_they_make_none_for_what_a_message_is_searched_by(text: str, message: str) -> None:
    query = match_query(message)
    assert query is not None
    assert count(text, query) == 1


def test_what_has_been_folded_stays_as_it_is() -> None:
    assigned = (one for one in map(chr, range(0x110000)) if unicodedata.category(one) not in ("Cn", "Co", "Cs"))
    for one in assigned:
        once = spaced(one)
        assert spaced(once).split() == once.split()
        assert any(map(str.isalnum, once)) or not one.isalnum()


def test_letters_that_only_look_like_accented_ones_differ() -> None:
    assert not finds("мой", "мои")
    assert finds("мои\u0306", "мой")


def finds(text: str, query: str) -> bool:
    """Whether an index as that of the store finds the text."""
    return count(text, match_of(search_parts(query))) == 1


def count(text: str, query: str) -> int:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (content)")
    db.execute("INSERT INTO words VALUES (?)", (spaced(text),))
    (number,) = db.execute("SELECT COUNT(*) FROM words WHERE words MATCH ?", (query,)).fetchone()
    return int(number)
