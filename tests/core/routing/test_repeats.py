"""A program that prints its prompt calls nobody by the markers in there, and every other reply calls as it says."""

from __future__ import annotations

import random
import time

import pytest

from teamchat.core.routing.markers import read_markers, scan
from teamchat.core.routing.repeats import repeats
from teamchat.core.team.wording import BEFORE_EXAMPLE
from tests.core.routing.marker_texts import grows_linearly

EXAMPLE = "end your reply with a line like"
WRAPPED = "end your reply with\n  a line like"
PROMPT = f"""You are a, a member of the team 'chat'.
The others: b, c.
To hand over, {EXAMPLE} [NEXT: b] (several names: they speak in that order). Name a person to ask them.

# Rules
Say what you did.
Then write:

[NEXT: c]

kai: 2+2?
"""


def called(reply: str, prompt: str = PROMPT) -> list[str]:
    markers = read_markers(reply, "ai").markers
    repeated = repeats(reply, markers, lambda: ["another one", prompt], EXAMPLE)
    return [marker.body.strip() for marker in read_markers(reply, "ai", repeated).markers if marker.counts]


@pytest.mark.parametrize(
    "reply",
    [
        PROMPT,
        f"{PROMPT}\nThe answer is 4.",
        PROMPT.replace("\n", "\r\n"),
        PROMPT.replace("\n", "\n    "),
        "Then write:\n[NEXT: c]\nThe answer is 4.",
        "[NEXT: c]\n\nkai: 2+2?\n4",
        f"As I was told: {EXAMPLE} [NEXT: b]",
        f"user: To hand over, {WRAPPED}\n  [NEXT: b] (several names",
    ],
)
def test_what_repeats_the_prompt_calls_nobody(reply: str) -> None:
    assert called(reply) == []


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ("[NEXT: c]", ["c"]),
        ("[NEXT: b]", ["b"]),
        ("The answer is 4.\n[NEXT: c]", ["c"]),
        ("The answer is 4.\n[NEXT: c]\nBye.", ["c"]),
        ("Say what you did.\n\nNothing.\n[NEXT: c]", ["c"]),
        ("a line like [NEXT: b]", ["b"]),
        (f"{PROMPT}\nThe answer is 4.\n[NEXT: b]", ["b"]),
        (f"{PROMPT}\nThe answer is 4. [NEXT: c]", ["c"]),
        ("# Rules\n[NEXT: c]", ["c"]),
    ],
)
def test_a_marker_that_repeats_nothing_else_calls(reply: str, names: list[str]) -> None:
    assert called(reply) == names


def test_the_example_is_that_of_the_protocol() -> None:
    assert BEFORE_EXAMPLE == EXAMPLE


def test_a_thousand_ordinary_replies_lose_no_call() -> None:
    words = "done", "the test", "is green", "now", "I changed", "app.py", "and", "see that", "all of it", "fails"
    ends = "\n[NEXT: b]", " [NEXT: b]", "\n\n[NEXT: b]\n", "\n**[NEXT: b]**", "\n- [NEXT: b]"
    chance = random.Random(1)  # noqa: S311 (the same replies each time)
    for _ in range(1000):
        lines = [" ".join(chance.choices(words, k=chance.randint(1, 12))) for _ in range(chance.randint(1, 6))]
        assert called("\n".join(lines) + chance.choice(ends)) == ["b"]


@pytest.mark.parametrize("line", ["line [NEXT: b]", "[NEXT: b] line\r", "  - line [NEXT: b] line"])
def test_ten_thousand_repeated_lines_are_told_apart_at_once(line: str) -> None:
    text = f"{line}\n" * 10_000
    repeated = repeats(text, read_markers(text, "ai").markers, lambda: [text], EXAMPLE)
    began = time.process_time()
    assert not any(marker.counts for marker in scan(text, "ai", repeated))
    assert time.process_time() - began < 0.5


def test_it_is_linear_in_the_reply_and_the_prompt() -> None:
    assert grows_linearly(lambda text: called(text, text), "line [NEXT: b]\n")


@pytest.mark.parametrize("piece", [" ", "\t\u00a0", "a\r", "\n "])
def test_blank_lines_of_any_length_cost_no_more(piece: str) -> None:
    assert grows_linearly(lambda text: called(f"[NEXT: b]{text}", text), piece)
