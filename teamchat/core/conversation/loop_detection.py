"""Whether a reply says anything new: two agents that agree with each other for ever cost money and bring nothing."""

from __future__ import annotations

import re

WORDS = re.compile(r"[^\W\d_]+")
DONE = re.compile(
    r"\b(?:(?:all|we(?:'re| are)|i(?:'m| am)|it(?:'s| is)) done|nothing (?:more|else|further|left) to (?:add|do|say)|"
    r"no further (?:comments|questions|changes)|task (?:is )?complete|goodbye)\b",
    re.IGNORECASE,
)
SHORT = 400  # characters; who writes more has something to say
PIECE = 3  # words
LONGEST = 200_000  # characters; taking two larger ones apart costs seconds and hundreds of megabytes


def alike(one: str, other: str) -> float:
    """How much of what is said is the same, 0 to 1: the share of common three-word pieces; digits do not count.

    Of two long texts it is all or nothing.
    """
    if max(len(one), len(other)) > LONGEST:
        return float(one == other)
    pieces, others = _pieces(one), _pieces(other)
    return len(pieces & others) / len(pieces | others) if pieces or others else 1.0


def _pieces(text: str) -> set[tuple[str, ...]]:
    words = WORDS.findall(text.casefold())
    return {tuple(words[index : index + PIECE]) for index in range(max(len(words) - PIECE + 1, 1))} if words else set()


def says_done(text: str) -> bool:
    """Whether a short reply says that there is nothing left to do."""
    return len(text) <= SHORT and DONE.search(text) is not None


def says_nothing_new(text: str, before: list[tuple[str, str]], speaker: str, similarity: float) -> bool:
    """Judge a reply by what agents said before it, newest first, as (speaker, text) since the last human message.

    It says nothing new if it is like this speaker's own last reply, or if it and the reply before it, by somebody
    else, both say that they are done. `similarity` 0 is off.
    """
    if similarity <= 0 or not before:
        return False
    own = next((said for name, said in before if name == speaker), None)
    if own is not None and alike(text, own) >= similarity:
        return True
    name, last = before[0]
    return name != speaker and says_done(text) and says_done(last)
