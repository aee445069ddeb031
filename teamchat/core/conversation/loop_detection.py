"""Loop detection: two agents that only agree with each other cost money and produce nothing."""

from __future__ import annotations

import re

from teamchat.patterns import regex

WORDS = regex(r"[^\W\d_]+")
DONE = regex(
    r"\b(?:(?:all|we(?:'re| are)|i(?:'m| am)|it(?:'s| is)) done|nothing (?:more|else|further|left) to (?:add|do|say)|"
    r"no further (?:comments|questions|changes)|task (?:is )?complete|goodbye)\b",
    re.IGNORECASE,
)
SHORT = 400  # characters; a longer reply has something to say
PIECE = 3  # words
LONGEST = 200_000  # characters; comparing two larger texts takes seconds and hundreds of megabytes


def alike(one: str, other: str) -> float:
    """How similar two texts are, from 0 to 1: the share of three-word pieces that both have. Digits do not count.

    Two long texts are either equal (1) or different (0).
    """
    if max(len(one), len(other)) > LONGEST:
        return float(one == other)
    pieces, others = _pieces(one), _pieces(other)
    return len(pieces & others) / len(pieces | others) if pieces or others else 1.0


def _pieces(text: str) -> set[tuple[str, ...]]:
    words = WORDS.findall(text.casefold())
    return {tuple(words[index : index + PIECE]) for index in range(max(len(words) - PIECE + 1, 1))} if words else set()


def says_done(text: str) -> bool:
    """True for a short reply that says that nothing is left to do."""
    return len(text) <= SHORT and DONE.search(text) is not None


def says_nothing_new(text: str, before: list[tuple[str, str]], speaker: str, similarity: float) -> bool:
    """True when a reply repeats itself; `before` holds the agents' earlier replies as (speaker, text), newest first.

    It says nothing new when it is similar to this speaker's own last reply, or when it and the last reply of another
    speaker both say that they are done. `similarity` 0 switches the check off.
    """
    if similarity <= 0 or not before:
        return False
    own = next((said for name, said in before if name == speaker), None)
    if own is not None and alike(text, own) >= similarity:
        return True
    name, last = before[0]
    return name != speaker and says_done(text) and says_done(last)
