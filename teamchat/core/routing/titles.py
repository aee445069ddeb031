"""The first words of a message, and what a title may be."""

from __future__ import annotations

from teamchat.core.routing.markers import strip_markers
from teamchat.core.text.clean import told

LONGEST_TITLE = 100  # characters of a title that a person gives
LONGEST_FIRST_WORDS = 60
READ = 4000  # Characters of a message that are read for its first words.
_FENCES = ("```", "~~~")


def first_words(text: str) -> str:
    """Return the first words of a message without markers and fenced code, on one line; cut at a word with `…`.

    A message of only fenced code gives the first words of that, and an empty one gives nothing.
    """
    said = strip_markers(told(text[:READ]))
    words = _without_fences(said).split() or [word for word in said.split() if not word.startswith(_FENCES)]
    line = " ".join(words)
    if len(line) <= LONGEST_FIRST_WORDS:
        return line
    cut = line[:LONGEST_FIRST_WORDS]
    return (cut[: cut.rfind(" ")] if " " in cut else cut[:-1]).rstrip() + "…"


def _without_fences(text: str) -> str:
    if not any(fence in text for fence in _FENCES):  # most have none
        return text
    from teamchat.core.routing.asides import Aside
    from teamchat.core.routing.markdown import places_of

    parts, end = [], 0
    for span in places_of(text).spans:
        if span.place is Aside.FENCE:
            parts.append(text[end : span.start])
            end = span.end
    return "\n".join([*parts, text[end:]])
