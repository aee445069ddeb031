from __future__ import annotations

import pytest

from teamchat.core.errors import UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.lessons import LONGEST_LESSON, add_lesson, delete_lesson, fitting_lessons, newest_lessons
from teamchat.core.text.words import match_query


def found(db: Database, text: str) -> list[int]:
    return [lesson.number for lesson in fitting_lessons(db, match_query(text) or "")]


def test_a_lesson_is_kept_on_one_line(db: Database) -> None:
    lesson, new = add_lesson(db, "  Run\nmake \x1b[31mlint\t\ud800 ", "s1")
    assert (lesson.number, lesson.text, lesson.session, new) == (1, "Run make lint \ufffd", "s1", True)
    assert newest_lessons(db) == [lesson]


def test_the_same_lesson_is_kept_once(db: Database) -> None:
    first, _ = add_lesson(db, "Run make lint", "s1")
    assert add_lesson(db, "Run  make lint", "s2") == (first, False)


@pytest.mark.parametrize("same", ["run make lint.", "**Run make Lint**", '"Run make lint!"'])
def test_what_says_the_same_in_another_dress_is_no_second_lesson(db: Database, same: str) -> None:
    first, _ = add_lesson(db, "Run make lint", "s1")
    assert add_lesson(db, same, "s2") == (first, False)
    assert newest_lessons(db) == [first]


def test_an_accent_written_in_two_ways_is_the_same_and_lines_without_a_word_are_not(db: Database) -> None:
    assert [add_lesson(db, text, None)[1] for text in ("Caf\u00e9", "Cafe\u0301", "!", "?")] == [
        True,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("text", ["", " \n", "x" * (LONGEST_LESSON + 1)])
def test_what_is_no_lesson_is_refused(db: Database, text: str) -> None:
    with pytest.raises(UsageError, match="lesson"):
        add_lesson(db, text, None)


def test_the_newest_come_first(db: Database) -> None:
    for text in ("one", "two", "three"):
        add_lesson(db, text, None)
    assert [lesson.text for lesson in newest_lessons(db)] == ["three", "two", "one"]
    assert [lesson.text for lesson in newest_lessons(db, 2)] == ["three", "two"]


def test_those_that_fit_are_found_in_any_script(db: Database) -> None:
    add_lesson(db, "Tokens expire", None)
    add_lesson(db, "用户认证系统", None)
    assert found(db, "a token") == [1]
    assert found(db, "认证") == [2]
    assert found(db, "nothing") == []


def test_a_lesson_that_was_deleted_is_gone_and_its_number_is_not_given_again(db: Database) -> None:
    add_lesson(db, "Tokens expire", None)
    lesson, _ = add_lesson(db, "Tokens stay", None)
    assert delete_lesson(db, 2) == lesson
    assert delete_lesson(db, 2) is None
    assert delete_lesson(db, 10**30) is None
    assert found(db, "token") == [1]
    assert add_lesson(db, "Tokens go", None)[0].number == 3
