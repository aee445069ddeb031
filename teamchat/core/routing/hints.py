"""Near misses: what was probably meant as a marker and is not one (design section 5). Shown, never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from teamchat.core.names import fold
from teamchat.core.routing.markdown import Places
from teamchat.core.routing.markers import HUMANS_ONLY, SPACE, Author, Marker, MarkerKind, WhyNot
from teamchat.core.routing.requests import few, quoted, shortened

_NAME = r"@?+[^\s,，、+＋!！#＃@:：()\[\]{}［］【】<>*`'\"]++"
# How many names a suggestion repeats is bounded, so that a line of them costs no more than its length.
_NAMES = rf"(?P<names>{_NAME}(?:{SPACE}*+[,，、+＋]{SPACE}*+{_NAME}){{0,9}}+)"
_ONE_NAME = re.compile(_NAME)
_PUNCTUATION = ".;?…。"
_FULL_WIDTH = re.compile(
    rf"[［【]{SPACE}*+(?P<kind>NEXT|FROM|TEAM_TASK|DROP|TODO|DONE){SPACE}*+[:：](?P<body>[^\[\]［］【】\r\n]*+)[］】\]]",
    re.IGNORECASE | re.ASCII,
)
_NO_COLON = re.compile(rf"(?<!\\)(?P<hit>\[{SPACE}*+NEXT{SPACE}++{_NAMES})", re.IGNORECASE)
_NO_BRACKETS = re.compile(
    rf"(?P<bracket>[\[［【]{SPACE}*+)?(?<!\w)(?P<hit>NEXT{SPACE}*+[:：]\*{{0,2}}+{SPACE}*+{_NAMES})", re.IGNORECASE
)
# Who is told about is not spoken to: `@max said so`, `@max's plan`
_MENTION = re.compile(
    rf"(?<![^\r\n]){SPACE}*+(?P<hit>(?=@){_NAMES})"
    rf"(?!['’]s\b|{SPACE}++(?:said|says|wrote|writes|thought|thinks|suggested|suggests|is|was|has|had)\b)",
    re.IGNORECASE,
)
_UNCLOSED_BODY = re.compile(rf"{SPACE}*+{_NAMES}")


@dataclass(frozen=True, slots=True)
class Hint:
    """A near miss at `position`: its `text`, and what to write instead."""

    position: int
    text: str
    suggestion: str


def in_words(found: Iterable[Hint]) -> list[str]:
    """A line for a person on each near miss, and none on what comes again; a pasted log has hundreds."""
    return few(
        f"{quoted(hint.text)} is no marker and does nothing: did you mean {shortened(hint.suggestion)}?"
        for hint in found
    )


def hints(
    text: str,
    markers: Iterable[Marker],
    member_names: Iterable[str],
    author: Author = "human",
    *,
    mentions: bool = True,
) -> tuple[Hint, ...]:
    """The near misses in a text, in order; `markers` are its markers as scanned. None is in code or quotes.

    Those without brackets or colon are only noticed when they name a member, and `@max` only at the start of a line and
    with `mentions`: in a message that calls somebody by a marker it is prose.
    """
    known = {fold(name) for name in member_names}
    places = Places(text)
    found = (
        *_not_closed(markers, known),
        *_full_width(text, author),
        *_naming(_NO_COLON, text, known),
        *_naming(_NO_BRACKETS, text, known),
        *(_naming(_MENTION, text, known) if mentions else ()),
    )
    return tuple(sorted((hint for hint in found if not places.at(hint.position)), key=lambda hint: hint.position))


def _not_closed(markers: Iterable[Marker], known: set[str]) -> Iterator[Hint]:
    for marker in markers:
        if marker.why_not is WhyNot.NOT_CLOSED:
            body = _UNCLOSED_BODY.match(marker.body) if marker.kind is MarkerKind.NEXT else None
            names = _known_names(body["names"], known) if body else ""
            yield Hint(marker.start, marker.raw, f"[{marker.kind}: {names or '...'}]")


def _full_width(text: str, author: Author) -> Iterator[Hint]:
    for found in _FULL_WIDTH.finditer(text):
        kind = found["kind"].upper()
        if author == "human" or kind not in HUMANS_ONLY:
            yield Hint(found.start(), found[0], f"[{kind}: {found['body'].strip()}]")


def _naming(near_miss: re.Pattern[str], text: str, known: set[str]) -> Iterator[Hint]:
    for found in near_miss.finditer(text):
        names = _known_names(found["names"], known)
        if names and not found.groupdict().get("bracket"):
            yield Hint(found.start("hit"), found["hit"], f"[NEXT: {names}]")


def _known_names(written: str, known: set[str]) -> str:
    """What `written` has before the first name that is no member's, without `@`; empty when there is none."""
    end = 0
    for found in _ONE_NAME.finditer(written):
        name = found[0].lstrip("@").rstrip(_PUNCTUATION)
        if fold(name) not in known:
            break
        end = found.end()
    return written[:end].replace("@", "").rstrip(_PUNCTUATION)
