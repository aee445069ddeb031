"""Whether a reply is blank: it has no character that a person could see."""

from __future__ import annotations

from teamchat.patterns import regex

# The matching is linear: each character is read once, and nothing is tried again.
_SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # colours, cursor, screen
    r"|(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*+[0-~]"
)
# Controls, formats and fillers, and the marks and selectors that only change a character before them.
_UNSEEN = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u0300-\u036f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    r"\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u20d0-\u20f0\u2800\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff"
    r"\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_NOTHING = regex(rf"(?:{_SEQUENCE}|[{_UNSEEN}]){{1,65536}}+")  # no other thread runs while one is found


def is_blank(text: str) -> bool:
    """True if nothing of the text is visible at a terminal."""
    if text[:1].isascii() and text[:1].isalnum():  # as most replies begin
        return False
    at = 0
    while found := _NOTHING.match(text, at):
        at = found.end()
    return at == len(text)
