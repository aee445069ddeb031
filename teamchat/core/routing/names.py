"""Decides which names are the same, and which member a written name means.

Two names are the same when they fold to the same text. Folding removes what a reader cannot see (zero-width and
other default-ignorable characters), so that two names that look the same are the same. It keeps the controls that
turn the direction of writing, so that a name shown backwards is nobody's. A valid name has neither. Look-alike
letters of other scripts stay different: `mаx` with a Cyrillic а is not a member's name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar
from unicodedata import category, normalize
from unicodedata import name as letter_name

from msgspec import Struct

from teamchat.core.text.invisible import INVISIBLE
from teamchat.patterns import regex

_INVISIBLE = regex(f"[{INVISIBLE}\u061c\u200e\u200f]")
# NFKC makes U+2010 of the hyphen that does not break, which models like to write
_ESCAPE = regex(r"\\+(?=[!-/:-@\[\]-`{-~])")
_SEPARATOR = regex("[\\s_\u2010-]")
_IN_NAMES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd"})  # many scripts write vowels as marks
_SOME_SESSION = "a conversation"
_IN_TURN = regex(r"(.+), in turn [1-9][0-9]{0,8} of (.+)")
LONGEST_NAME = 40  # characters: prompts, receipts and lines on a terminal repeat it
_ALIKE = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})  # alphabets with letters that look like Latin ones
_LONGEST_GUESSED = 100  # characters: comparing costs their square
_LONGEST_FOLDED = 5 * LONGEST_NAME  # characters: sorting the accents of one letter costs their square


def fold(name: str) -> str:
    r"""Reduce a name to the form for comparing: NFKC, casefold, without spaces, `-`, `_` and invisible characters.

    A backslash before punctuation is Markdown's: `story\_writer` is `story_writer`.

    Text that is too long to be a name, in whatever form its characters are written, is not brought into NFKC.
    """
    if "\\" in name:
        name = _ESCAPE.sub("", name)
    if name.isascii():  # a plain name has nothing else to fold
        return "".join(name.split()).replace("-", "").replace("_", "").lower()
    visible = _INVISIBLE.sub("", name)
    if len(visible) > _LONGEST_FOLDED and len(bare := _SEPARATOR.sub("", visible)) > _LONGEST_FOLDED:
        return bare.casefold()
    visible = normalize("NFKC", visible)
    # characters that casefold takes apart are put together again, so that folding twice is folding once
    return normalize("NFKC", _SEPARATOR.sub("", visible).casefold())


def valid_name(name: str) -> bool:
    """Whether a member may have this name: up to 40 letters and digits of any script, `_`, `.` and `-`; not "all"."""
    return (
        len(name) <= LONGEST_NAME
        and all(character in "_.-" or category(character) in _IN_NAMES for character in name)
        and any(character.isalnum() for character in name)
        and category(name[0])[0] != "M"
        and (name.isascii() or _INVISIBLE.search(name) is None)
        and fold(name) not in ("", "all")
    )


def name_in_turn(member: str, number: int, session: str) -> str:
    """Name the agent of a turn in a conversation that it runs, outside the fence of prompts."""
    return f"{member}, in turn {number} of {session if valid_name(session) else _SOME_SESSION}"


def valid_speaker(name: str) -> bool:
    """Whether a message may be from a speaker with this name: a member, or an agent in its turn."""
    if match := _IN_TURN.fullmatch(name):
        return valid_name(match[1]) and (match[2] == _SOME_SESSION or valid_name(match[2]))
    return valid_name(name)


class Named(Protocol):
    """A member, as far as its names go."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str | None: ...


M = TypeVar("M", bound=Named)


class Found(Struct, Generic[M], frozen=True):
    member: M


class Ambiguous(Struct, Generic[M], frozen=True):
    """Several members have this title."""

    name: str
    candidates: tuple[M, ...]


class Unknown(Struct, frozen=True):
    """Nobody's name or title; `closest` is the member who was perhaps meant.

    `strange` is a letter in it that looks like another alphabet's, and that nobody here has.
    """

    name: str
    closest: str | None
    strange: str | None = None


class Directory(Generic[M]):
    """Finds members by what people and agents write: the name first, then the title; never by a part of it."""

    def __init__(self, members: Iterable[M]) -> None:
        self._names: defaultdict[str, list[M]] = defaultdict(list)
        self._titles: defaultdict[str, list[M]] = defaultdict(list)
        for member in members:
            self._names[fold(member.name)].append(member)
            self._titles[fold(member.title or "")].append(member)
        for index in (self._names, self._titles):
            index.pop("", None)  # a title of nothing is no title
        self._letters = {letter for name in (*self._names, *self._titles) for letter in name}

    def match(self, name: str, *, guess: bool = True) -> Found[M] | Ambiguous[M] | Unknown:
        """Find the member that `name` means. With `guess`, also find the closest name (expensive)."""
        folded = fold(name)
        matches = self._names.get(folded) or self._titles.get(folded)
        if not matches:
            return Unknown(name, self._closest(folded), self._strange(folded)) if guess else Unknown(name, None)
        return Found(matches[0]) if len(matches) == 1 else Ambiguous(name, tuple(matches))

    def _closest(self, folded: str) -> str | None:
        if len(folded) > _LONGEST_GUESSED:
            return None
        from difflib import get_close_matches

        close = get_close_matches(folded, [*self._names, *self._titles], n=1)
        return (self._names.get(close[0]) or self._titles[close[0]])[0].name if close else None

    def _strange(self, folded: str) -> str | None:
        unknown = (letter for letter in folded[:_LONGEST_GUESSED] if letter not in self._letters)
        return next((letter for letter in unknown if letter_name(letter, "").split(" ")[0] in _ALIKE), None)


def match_member(name: str, members: Iterable[M]) -> Found[M] | Ambiguous[M] | Unknown:
    """Find the member that `name` means. For many names, make one `Directory`."""
    return Directory(members).match(name)
