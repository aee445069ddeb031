"""Calls by `@`: `@max Fix it` and `@max+sarah Look` at the beginning of a line that a person types. Pure.

The names are in the grammar of NEXT. A word that names anybody else, such as a path, is text, and so is one in code or
in a quote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct

from teamchat.core.routing.markers import parse_targets
from teamchat.core.routing.names import Directory, Named, Unknown, fold, valid_name
from teamchat.core.routing.requests import quoted
from teamchat.patterns import regex

ALL = "all"
_CALL = regex(r"^ {0,3}@(?P<word>\S{1,400})(?!\S)[ \t]*+(?:\r?\n)?", re.MULTILINE)
_INSIDE = regex(r"(?:(?<=\S)[ \t]{1,100}|(?<=[^\s\w@/\\.-]))@(?P<word>[^\s@,，、+＋!！#＃:：()\[\]{}<>*`'\"]{1,400})")
_HEAD = regex("(?P<word>[^:：]+)[:：]")
_ENDING = ":,;，、.!?…。"


def split_calls(text: str, members: Sequence[Named]) -> tuple[str | None, str]:
    """The names that lines of the text begin with, as `--to` takes them (None without any), and the other text.

    Without other text it is that of a marker: a message of names only is one of markers only.
    """
    called, kept, done = list[str](), list[str](), 0
    for call in _calls(text, members):
        if not call.strangers:
            called.append(call.word)
            kept.append(text[done : call.start])
            done = call.end
    if not called:
        return None, text
    to, rest = ",".join(called), "".join((*kept, text[done:]))
    return (to, rest) if rest.strip() or "]" in to else (None, f"[NEXT: {to}]")


def with_calls(to: str | None, text: str) -> str:
    """A text that `split_calls` splits into these."""
    between = "\n" if text[:1].isspace() else " "  # a line break keeps an indentation
    return f"@{to}{between}{text}" if to else text


def first_strangers(text: str, members: Sequence[Named]) -> str:
    """The names behind `@` at the beginning of the text, if somebody of them is no member and all could be names."""
    begin = len(text) - len(text.lstrip())
    call = next(_calls(text, members), None)
    return call.word if call and call.strangers and call.start <= begin < call.end and call.named else ""


def at_notes(text: str, members: Sequence[Named], called: Collection[str]) -> Iterator[str]:
    """A note on each `@name` of a typed text that calls nobody: inside a line, or at its beginning and nobody's.

    There is none on those who are `called` anyway.
    """
    if "@" not in text:
        return
    others = (member for member in members if member.name not in called)
    names = {fold(name) for member in others for name in (member.name, member.title) if name}
    for found in _INSIDE.finditer(text):
        word = found["word"].rstrip(_ENDING)
        if fold(word) in names and not _shown(text, found.start("word")):
            yield f"{quoted('@' + word)} calls nobody here: it stands inside a line; @ calls at the beginning of one"
    for call in _calls(text, members):
        if call.strangers and call.named:
            yield f"{quoted('@' + call.word)} is text: nobody is called {', '.join(map(quoted, call.strangers))}"


class _Call(Struct, frozen=True):
    """The `word` behind `@` at the beginning of a line, the names in it that are nobody's, and where it stands."""

    word: str
    strangers: tuple[str, ...]
    start: int
    end: int

    @property
    def named(self) -> bool:
        """Whether all that is nobody's could be names: `@README.md` and `@app.route` are none."""
        return all(fold(name) == ALL or (valid_name(name) and "." not in name) for name in self.strangers)


def _calls(text: str, members: Iterable[Named]) -> Iterator[_Call]:
    if "@" not in text:
        return
    strangers = _finding_strangers(Directory(members))
    for found in _CALL.finditer(text):
        word = found["word"].rstrip(_ENDING)
        if not parse_targets(word) or _shown(text, at := found.start("word")):
            continue
        head = _HEAD.match(word)  # of `@max:look`
        if head and strangers(word) and not strangers(head["word"]):
            yield _Call(head["word"], (), found.start(), at + head.end())
        else:
            yield _Call(word, strangers(word), *found.span())


def _finding_strangers(directory: Directory[Named]) -> Callable[[str], tuple[str, ...]]:
    @cache  # a pasted text begins many lines alike
    def strangers(word: str) -> tuple[str, ...]:
        names = (name for target in parse_targets(word) for name in target.names)
        return tuple(name for name in names if isinstance(directory.match(name, guess=False), Unknown))

    return strangers


def _shown(text: str, position: int) -> bool:
    """Whether what is there is shown rather than said, as in code and quotes."""
    from teamchat.core.routing.markdown import places_of  # most messages have no @, and it takes half a millisecond

    return places_of(text).at(position) is not None
