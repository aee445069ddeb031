"""Calls by `@`: `@max Fix it` and `@max+sarah Look` at the beginning of a line that a person types. Pure.

The names are in the grammar of NEXT. A word that names anybody else, such as a path, is text, and so is one in code
or in a quote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct

from teamchat.core.messages import Span
from teamchat.core.routing.markers import touches
from teamchat.core.routing.names import Directory, Named, Unknown, fold, valid_name
from teamchat.core.routing.requests import quoted
from teamchat.core.routing.targets import parse_targets
from teamchat.patterns import regex

ALL = "all"
_CALL = regex(r"^ {0,3}@(?P<word>\S{1,400})(?!\S)[ \t]*+(?:\r?\n)?", re.MULTILINE)
_INSIDE = regex(r"(?:(?<=\S)[ \t]{1,100}|(?<=[^\s\w@/\\.-]))@(?P<word>[^\s@,，、+＋!！#＃:：()\[\]{}<>*`'\"]{1,400})")
_HEAD = regex("(?P<word>[^:：]+)[:：]")
_ENDING = ":,;，、.!?…。"


def split_calls(
    text: str, members: Sequence[Named], pasted: Iterable[Span] = ()
) -> tuple[str | None, str, tuple[Span, ...]]:
    """Split off the names at the beginnings of lines, as `--to` takes them (None without any), from the other text.

    A line of a `pasted` part calls nobody; the last value has the places of these parts in the other text. If there is
    no other text, it is a marker with the names: a message of names only is one of markers only.
    """
    parts = tuple(pasted)
    calls = [call for call in _calls(text, members, parts) if not call.strangers]
    if not calls:
        return None, text, parts
    ends = [0, *(call.end for call in calls)]
    starts = [*(call.start for call in calls), len(text)]
    to, rest = ",".join(call.word for call in calls), "".join(map(text.__getitem__, map(slice, ends, starts)))
    if not (rest.strip() or "]" in to):
        return None, f"[NEXT: {to}]", ()

    def moved(place: int) -> int:
        return place - sum(min(call.end, place) - call.start for call in calls if call.start < place)

    return to, rest, tuple((moved(begin), moved(end)) for begin, end in parts)


def with_calls(to: str | None, text: str) -> str:
    """Join names and text so that `split_calls` splits them again."""
    between = "\n" if text[:1].isspace() else " "  # a line break keeps an indentation
    return f"@{to}{between}{text}" if to else text


def first_strangers(text: str, members: Sequence[Named], pasted: Collection[Span] = ()) -> str:
    """Return the names behind `@` at the beginning of the text, if one is no member's and all could be names."""
    begin = len(text) - len(text.lstrip())
    call = next(_calls(text, members, pasted), None)
    return call.word if call and call.strangers and call.start <= begin < call.end and call.named else ""


def at_notes(
    text: str, members: Sequence[Named], called: Collection[str], pasted: Collection[Span] = ()
) -> Iterator[str]:
    """Write a note on each `@name` of a typed text that calls nobody: inside a line, or at its beginning and nobody's.

    There is no note on a member that is `called` anyway. A member at the beginning of a `pasted` line gets one, too.
    """
    if "@" not in text:
        return
    yield from map(inside_note, names_inside(text, members, called, pasted))
    for call in _calls(text, members):
        if touches(call.start, call.end, pasted):
            if not call.strangers:
                yield f"{quoted('@' + call.word)} is text: it stands in what was pasted"
        elif call.strangers and call.named:
            yield f"{quoted('@' + call.word)} is text: nobody is called {', '.join(map(quoted, call.strangers))}"


def names_inside(
    text: str, members: Sequence[Named], called: Collection[str], pasted: Collection[Span] = ()
) -> Iterator[str]:
    """Find members' names behind an `@` inside a line, which calls nobody; skip members that are `called` anyway."""
    if "@" not in text:
        return
    others = (member for member in members if member.name not in called)
    names = {fold(name) for member in others for name in (member.name, member.title) if name}
    for match in _INSIDE.finditer(text):
        word = match["word"].rstrip(_ENDING)
        inert = touches(*match.span("word"), pasted)
        if fold(word) in names and not inert and not _shown_names(text, match.start("word")):
            yield word


def inside_note(word: str) -> str:
    """Say that the name behind an `@` inside a line calls nobody."""
    return f"{quoted('@' + word)} calls nobody here: it stands inside a line; @ calls at the beginning of one"


class _Call(Struct, frozen=True):
    """The `word` behind `@` at the beginning of a line, the names in it that are nobody's, and where it stands."""

    word: str
    strangers: tuple[str, ...]
    start: int
    end: int

    @property
    def named(self) -> bool:
        """Whether all strangers could be names: `@README.md` and `@app.route` could not."""
        return all(fold(name) == ALL or (valid_name(name) and "." not in name) for name in self.strangers)


def _calls(text: str, members: Iterable[Named], pasted: Collection[Span] = ()) -> Iterator[_Call]:
    if "@" not in text:
        return
    directory = Directory(members)

    @cache  # a pasted text begins many lines alike
    def strangers(word: str) -> tuple[str, ...]:
        names = (name for target in parse_targets(word) for name in target.names)
        return tuple(name for name in names if isinstance(directory.match(name, guess=False), Unknown))

    for match in _CALL.finditer(text):
        word = match["word"].rstrip(_ENDING)
        inert = touches(*match.span("word"), pasted)
        if inert or not parse_targets(word) or _shown_names(text, at := match.start("word")):
            continue
        head = _HEAD.match(word)  # `@max` in `@max:look`
        if head and strangers(word) and not strangers(head["word"]):
            yield _Call(head["word"], (), match.start(), at + head.end())
        else:
            yield _Call(word, strangers(word), *match.span())


def _shown_names(text: str, position: int) -> bool:
    """Whether the text there is shown rather than said, as in code and quotes."""
    from teamchat.core.routing.markdown import places_of  # most messages have no @, and it takes half a millisecond

    return places_of(text).at(position) is not None
