"""The last word of a text, for verdicts, votes and picks of a judge. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from teamchat.patterns import regex

_END = 4000  # how many characters at the end of a text are searched
LONGEST = 1000  # characters of a word; sorting the accents of one letter costs their square
# Characters that join two parts of a word, such as NEEDS-WORK, PASS/FAIL or v1.2; any other punctuation or symbol ends
# it.
_JOINS = frozenset("-_/'.&@#%+$^\\\u2010\u2011\u2019\u00b7\u30fb\u0f0b")
_MEANS = frozenset("#%&@/\\?？؟")  # punctuation that says something at the ends of a text
_STRUCK = regex(r"<(?P<tag>del|s|strike)>.*?</(?P=tag)>", re.DOTALL)
_STRUCK_BY_SIGNS = regex(r"~~(?=\S)[^\n]*?~~")
_MARKUP = " \t*_`\"'“”‘’«»「」『』"
_NEGATION = regex(r"(?:\b(?:not|no|never|cannot)|n['’]t|[不未])\Z", re.IGNORECASE)
_QUESTION = regex(r"[?？؟՞;⸮]")


def one_at_end(text: str, words: Sequence[str]) -> str | None:
    """Find which of the words ends the text, as a judge picks one; None if it is none of them.

    Case does not count, nor do Markdown and punctuation around the word. It is not picked where it stands directly
    behind a negation (`not A`), is followed by a question mark, or is struck through.
    """
    text = ending(text)
    end = behind_last_letter(text)
    start = first_of_last_word(text)
    if end - start > LONGEST or _QUESTION.search(text[end:].partition("\n")[0]):
        return None
    if _NEGATION.search(text[max(start - 40, 0) : start].rstrip(_MARKUP)):
        return None
    last = folded(text[start:end])
    return next((word for word in words if folded(word) == last), None)


def ending(text: str) -> str:
    """Return the end of the text, without the text that is struck through there."""
    end = behind_last_letter(text) + 1  # a tag ends one behind its last letter
    return _STRUCK_BY_SIGNS.sub("", _STRUCK.sub("", text[max(end - 1 - _END, 0) : end]) + text[end:])


def last_word(text: str) -> str:
    """Return the end of the text, from the space or punctuation before its last word up to the last letter or digit."""
    return text[first_of_last_word(text) : behind_last_letter(text)]


def without_marks(text: str) -> str:
    """Remove Markdown, quotes, punctuation and pictures around the text.

    Signs that may be a part of it stay, such as those of `C++`, `C#`, `-1`, `50%` and `!a`. So does a question mark.
    """
    start, end = 0, len(text)
    while end > start and _is_mark(text[end - 1]):
        end -= 1
    while start < end and text[start] != "!" and _is_mark(text[start]):
        start += 1
    return text[start:end]


def folded(word: str) -> str:
    """Fold a word for comparison."""
    return unicodedata.normalize("NFKC", word).casefold()


def _is_mark(character: str) -> bool:
    category = unicodedata.category(character)
    if category == "Pd" or character in _MEANS:
        return False
    return category[0] in "PZ" or category == "So" or character == "`"


def first_of_last_word(text: str) -> int:
    """Find where the last word begins."""
    end = behind_last_letter(text)
    start = end
    while start and not _ends_word(text[start - 1]):
        start -= 1
    while start < end and not text[start].isalnum():
        start += 1
    return start


def behind_last_letter(text: str) -> int:
    """Find where the last word ends, behind the last letter or digit."""
    end = len(text)
    while end and not text[end - 1].isalnum():
        end -= 1
    return end


def _ends_word(character: str) -> bool:
    if character.isalnum() or character in _JOINS:
        return False
    return character.isspace() or unicodedata.category(character)[0] in "PS"
