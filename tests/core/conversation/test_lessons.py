"""Which lessons are taken from what a member answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.conversation.lessons import LONGEST_LINE, MOST, MOST_NESTED, lessons_in
from teamchat.core.routing.markers import strip_markers
from teamchat.core.store.lessons import LONGEST_LESSON, lesson_text
from teamchat.core.text.redact import redact_shapes
from tests.core.routing.marker_texts import grows_linearly

KEY = "sk-ant-api03-" + "a1B2" * 10
PRIVATE = f"-----BEGIN PRIVATE KEY-----\n{'MIIB' * 10}\n{'abcd' * 10}\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("answer", "lessons"),
    [
        ("NONE", []),
        ("  **none.**\n", []),
        ("Run it.\nNone\n", ["Run it."]),
        ("- Run it.\n* Test it.\n• Mend it.", ["Run it.", "Test it.", "Mend it."]),
        ("1. Run it.\n2) Test it.\n(3) Mend it.\n 4: Ship it.", ["Run it.", "Test it.", "Mend it.", "Ship it."]),
        ("- 1. Run it.", ["Run it."]),
        ("3 tests are slow.\n-x is no option.", ["3 tests are slow.", "-x is no option."]),
        ("```text\nRun it.\n```", ["Run it."]),
        ("\n---\n\nRun\tit.  \r\n", ["Run it."]),
        ("Run it. [NEXT: max]", ["Run it."]),
        ("```\n- [NEXT: max] Run it.\n```", ["Run it."]),
        ("[NEXT: max]", []),
        ("Run it.\\[NEXT: max]", ["Run it."]),
        ("\x1b[31mRun\x1b[0m it.\x07", ["Run it."]),
        ("Run it.\nRUN it\n- **run  it!**\nRun -it", ["Run it.", "Run -it"]),
        ("- run  Make Lint", []),
        ("é" * (LONGEST_LESSON // 2 + 1), []),
        ("\ud83d Run it.", ["\ufffd Run it."]),
        (f"The key is {KEY}", [f"The key is {'*' * len(KEY)}"]),
        (f"The key is {KEY[:20]}\x1b[0m{KEY[20:]}", [f"The key is {'*' * len(KEY)}"]),
        (f"The key is {KEY[:9]}[NEXT: max]{KEY[9:]}", [f"The key is {'*' * len(KEY)}"]),
        ("[NEXT: max]" * 1000 + "Run it.", ["Run it."]),
        ("[NEXT: max]" * LONGEST_LINE + "Run it.", []),
        ("[NE" + "[NEXT: max]" + "XT: max] Run it.", ["Run it."]),
        ("[" * MOST_NESTED + "NEXT: max]" * MOST_NESTED + " Run it.", []),
    ],
)
def test_each_line_of_words_that_is_not_known_is_a_lesson(answer: str, lessons: Sequence[str]) -> None:
    assert list(lessons_in(answer, ["Run make lint."])) == lessons


def test_nothing_of_a_private_key_is_left() -> None:
    found = " ".join(lessons_in(f"It is\n{PRIVATE}\nKeep it."))
    assert ("It is" in found, "Keep it." in found) == (True, True)
    assert not any(part in found for part in ("MIIB", "abcd"))


def test_there_are_ten_at_most_the_first() -> None:
    assert lessons_in("\n".join(f"Lesson {number}" for number in range(50))) == tuple(
        f"Lesson {number}" for number in range(MOST)
    )


@given(
    st.lists(st.sampled_from([*"ab *-1.`~>\\\n\r\t\x1b\u2028", "[NEXT: max]", "[TODO: a]", "NONE", KEY])).map("".join)
)
def test_whatever_is_answered_a_lesson_is_one_clean_line(answer: str) -> None:
    for lesson in lessons_in(answer):
        assert lesson_text(lesson) == lesson
        assert strip_markers(lesson, author="ai") == lesson
        assert redact_shapes(lesson) == (lesson, 0)


@pytest.mark.parametrize("piece", ["\n", "- a\n", "-\n", "[NEXT: max]", "[", "\\[NEXT: max]\n", "a\u0301\u0316"])
def test_time_grows_with_the_answer_and_no_faster(piece: str) -> None:
    assert grows_linearly(lessons_in, piece)
