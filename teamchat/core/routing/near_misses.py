"""Near misses: text that only looks like a marker. It does nothing, and is shown to whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import chain

from msgspec import Struct

from teamchat.core.routing.markers import HUMANS_ONLY, SPACE, Author, Marker, MarkerKind, WhyNot
from teamchat.core.routing.names import fold
from teamchat.core.routing.requests import few, quoted, shortened
from teamchat.core.text.invisible import INVISIBLE, TURNS
from teamchat.patterns import regex

_NAME = r"@?+[^\s,，、+＋!！#＃@:：()\[\]{}［］【】<>*`'\"]++"
# How many names a suggestion repeats is bounded, so that a line of them costs no more than its length.
_NAMES = rf"(?P<names>{_NAME}(?:{SPACE}*+[,，、+＋]{SPACE}*+{_NAME}){{0,9}}+)"
_ONE_NAME = regex(_NAME)
_PUNCTUATION = ".;?…。"
_UNSEEN = rf"{INVISIBLE}{TURNS}\u061c\u200e\u200f\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_ANY_UNSEEN = regex(f"[{_UNSEEN}]")
_GAP = rf"(?:{SPACE}|[{_UNSEEN}])*+"
_KINDS = "|".join(f"[{_UNSEEN}]*+".join(kind) for kind in MarkerKind)
_ODD = regex(  # the brackets, or something unseen in front of the body
    rf"[\[［【]{_GAP}(?P<kind>{_KINDS}){_GAP}[:：](?P<body>[^\[\]［］【】\r\n]*+)[］】\]]",
    re.IGNORECASE | re.ASCII,
)
_NEXT = regex("NEXT", re.IGNORECASE)  # many times as fast as what follows, and most pieces have none
_AT = regex("@")
_NOT_PLAIN = regex(r"[^\t\n\r -~]")
_ODD_CHARACTER = regex(f"[［【{_UNSEEN}]")
_ODD_ASCII = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # most texts are ASCII, and all of them take 0.3 ms to compile
_NO_COLON = regex(rf"(?<!\\)(?P<hit>\[{SPACE}*+NEXT{SPACE}++{_NAMES})", re.IGNORECASE)
_NO_BRACKETS = regex(
    rf"(?P<bracket>[\[［【]{SPACE}*+)?(?<!\w)(?P<hit>NEXT[*_~]{{0,2}}+{SPACE}*+[:：][*_~]{{0,2}}+{SPACE}*+{_NAMES})",
    re.IGNORECASE,
)
# Who is told about is not spoken to: `@max said so`, `@max's plan`
_MENTION = regex(
    rf"(?<![^\r\n]){SPACE}*+(?P<hit>(?=@){_NAMES})"
    rf"(?!['’]s\b|{SPACE}++(?:said|says|wrote|writes|thought|thinks|suggested|suggests|is|was|has|had)\b)",
    re.IGNORECASE,
)
_MOST_GUESSED = 20  # names for which somebody is looked for who was perhaps meant: comparing costs much
PIECE = 64 * 1024  # characters searched at once: other threads wait for it, and most pieces have no near miss
_UNCLOSED_BODY = regex(rf"{SPACE}*+{_NAMES}")


_Piece = tuple[int, int]  # where it begins and ends


class Hint(Struct, frozen=True):
    """A near miss at `position`: its `text`, and what to write instead.

    `calls` are the members that a near miss of NEXT was probably meant to call; None for one of another kind.
    """

    position: int
    text: str
    suggestion: str
    calls: str | None = None


def near_miss_lines(found: Iterable[Hint]) -> list[str]:
    """A line for a person on each near miss, and none on what comes again; a pasted log has hundreds."""
    return few(
        f"{quoted(hint.text)} is not a marker and does nothing: did you mean {shortened(hint.suggestion)}?"
        for hint in found
    )


def hints(
    text: str,
    markers: Iterable[Marker],
    member_names: Iterable[str],
    author: Author = "human",
    *,
    mentions: bool = True,
    closest: Callable[[str], str | None] | None = None,
) -> tuple[Hint, ...]:
    """The near misses in a text, in order, each once; `markers` are its markers as scanned. None is in code or quotes.

    Those without brackets or colon are only noticed when they name a member, and `@max` only at the start of a line and
    with `mentions`: in a message that calls somebody by a marker it is prose. `closest` finds the member whose name was
    misspelt; without it only exact names count. In a line longer than `PIECE` one that
    lies across two pieces is not noticed.
    """
    names = _Names(member_names, closest)
    with_next = tuple(_pieces_with(_NEXT, text))
    first: dict[tuple[str, str], Hint] = {}
    for hint in chain(
        _not_closed(markers, names),
        _odd(text, author, names),
        *(_naming(near_miss, text, with_next, names) for near_miss in (_NO_COLON, _NO_BRACKETS)),
        _naming(_MENTION, text, _pieces_with(_AT, text), names) if mentions else (),
    ):
        if (hint.text, hint.suggestion) not in first and not _shown(text, hint.position, author):
            first[hint.text, hint.suggestion] = hint
    return tuple(sorted(first.values(), key=lambda hint: hint.position))


def _shown(text: str, position: int, author: Author) -> bool:
    """Whether what is there is shown rather than said, as in code and quotes."""
    from teamchat.core.routing.markdown import places_of

    return places_of(text, thinks=author == "ai").at(position) is not None


def _pieces_with(what: re.Pattern[str], text: str) -> Iterator[_Piece]:
    """The pieces of a text that have that. They end where a line does, unless it is longer than a piece."""
    begin = 0
    while begin < len(text):
        end = min(begin + PIECE, len(text))
        if end < len(text):
            end = text.rfind("\n", begin, end) + 1 or end
        if what.search(text, begin, end):
            yield begin, end
        begin = end


def _found(what: re.Pattern[str], text: str, pieces: Iterable[_Piece]) -> Iterator[re.Match[str]]:
    return (found for piece in pieces for found in what.finditer(text, *piece))


class _Names:
    """The names of members; `known` remembers what was written, since the same is written again and again."""

    def __init__(self, names: Iterable[str], closest: Callable[[str], str | None] | None = None) -> None:
        self._folded = {fold(name) for name in names}
        self._closest = closest
        self._guessed = 0
        self.known = cache(self._known)

    def _known(self, written: str) -> str:
        """The members' names in `written` before the first unknown name, without `@`; empty if there are none.

        The member's name replaces a misspelt one, which in a mention needs an `@` of its own.
        """
        known, end = "", 0
        for found in _ONE_NAME.finditer(written):
            name = found[0].lstrip("@").rstrip(_PUNCTUATION)
            is_call = not end or found[0].startswith("@") or not written.startswith("@")
            meant = name if fold(name) in self._folded else self._guess(name) if is_call else None
            if meant is None:
                break
            known += written[end : found.start()] + meant
            end = found.end()
        return known

    def _guess(self, name: str) -> str | None:
        self._guessed += 1
        return self._closest(name) if self._closest and self._guessed <= _MOST_GUESSED else None


def _not_closed(markers: Iterable[Marker], names: _Names) -> Iterator[Hint]:
    for marker in markers:
        if marker.why_not is WhyNot.NOT_CLOSED:
            body = _UNCLOSED_BODY.match(marker.body) if marker.kind is MarkerKind.NEXT else None
            known = names.known(body["names"]) if body else ""
            calls = known if marker.kind is MarkerKind.NEXT else None
            yield Hint(marker.start, marker.raw, f"[{marker.kind}: {known or '...'}]", calls)


def _odd(text: str, author: Author, names: _Names) -> Iterator[Hint]:
    """Markers in full-width brackets, and those with something in front of their body that people do not see."""
    if _NOT_PLAIN.search(text) is None:  # the next pattern takes 0.3 ms to compile
        return
    from teamchat.core.routing.markdown import is_escaped

    meant = cache(partial(_meant, names))  # the same is written again and again
    for found in _found(_ODD, text, _pieces_with(_ODD_ASCII if text.isascii() else _ODD_CHARACTER, text)):
        if found[0][0] == "[" and (is_escaped(text, found.start()) or not _hides(found)):
            continue
        kind, suggestion, calls = meant(found["kind"], found["body"])
        if author == "human" or kind not in HUMANS_ONLY:
            yield Hint(found.start(), found[0], suggestion, calls)


def _meant(names: _Names, kind: str, body: str) -> tuple[MarkerKind, str, str | None]:
    """The kind of marker, what to write instead, and the members that one of NEXT calls."""
    kind = MarkerKind(_ANY_UNSEEN.sub("", kind).upper())
    body = _ANY_UNSEEN.sub("", body).strip()
    calls = names.known(body) if kind == MarkerKind.NEXT else None
    if calls:
        body = body.replace("@", "")  # no name has one
    return kind, f"[{kind}: {calls if calls and not body.startswith(calls) else body}]", calls


def _hides(marker: re.Match[str]) -> bool:
    return bool(_ANY_UNSEEN.search(marker.string, marker.start(), marker.start("body")))


def _naming(near_miss: re.Pattern[str], text: str, pieces: Iterable[_Piece], names: _Names) -> Iterator[Hint]:
    may_be_marker = near_miss is _NO_BRACKETS
    for found in _found(near_miss, text, pieces):
        if not (may_be_marker and found["bracket"]) and (known := names.known(found["names"])):
            yield Hint(found.start("hit"), found["hit"], f"[NEXT: {known}]", known)
