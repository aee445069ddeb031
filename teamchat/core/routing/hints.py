"""Near misses: what was probably meant as a marker and is not one (design section 5). Shown, never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from teamchat.core.names import fold
from teamchat.core.routing.markdown import places_of
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
_NEXT = re.compile("NEXT", re.IGNORECASE)  # many times as fast as what follows, and most texts have none
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
    """A near miss at `position`: its `text`, and what to write instead.

    `calls` are the members that a near miss of NEXT was probably meant to call; None for one of another kind.
    """

    position: int
    text: str
    suggestion: str
    calls: str | None = field(default=None, compare=False)


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
    """The near misses in a text, in order, each once; `markers` are its markers as scanned. None is in code or quotes.

    Those without brackets or colon are only noticed when they name a member, and `@max` only at the start of a line and
    with `mentions`: in a message that calls somebody by a marker it is prose.
    """
    names = _Names(member_names)
    first: dict[tuple[str, str], Hint] = {}
    for hint in chain(
        _not_closed(markers, names),
        _full_width(text, author, names),
        *(_naming(near_miss, text, names) for near_miss in (_NO_COLON, _NO_BRACKETS) if _NEXT.search(text)),
        _naming(_MENTION, text, names) if mentions and "@" in text else (),
    ):
        if (hint.text, hint.suggestion) not in first and not places_of(text).at(hint.position):
            first[hint.text, hint.suggestion] = hint
    return tuple(sorted(first.values(), key=lambda hint: hint.position))


class _Names:
    """The names of members; `known` remembers what was written, since the same is written again and again."""

    def __init__(self, names: Iterable[str]) -> None:
        self._folded = {fold(name) for name in names}
        self.known = cache(self._known)

    def _known(self, written: str) -> str:
        """What `written` has before the first name that is no member's, without `@`; empty when there is none."""
        end = 0
        for found in _ONE_NAME.finditer(written):
            name = found[0].lstrip("@").rstrip(_PUNCTUATION)
            if fold(name) not in self._folded:
                break
            end = found.end()
        return written[:end].replace("@", "").rstrip(_PUNCTUATION)


def _not_closed(markers: Iterable[Marker], names: _Names) -> Iterator[Hint]:
    for marker in markers:
        if marker.why_not is WhyNot.NOT_CLOSED:
            body = _UNCLOSED_BODY.match(marker.body) if marker.kind is MarkerKind.NEXT else None
            known = names.known(body["names"]) if body else ""
            calls = known if marker.kind is MarkerKind.NEXT else None
            yield Hint(marker.start, marker.raw, f"[{marker.kind}: {known or '...'}]", calls)


def _full_width(text: str, author: Author, names: _Names) -> Iterator[Hint]:
    for found in _FULL_WIDTH.finditer(text) if "［" in text or "【" in text else ():
        kind = found["kind"].upper()
        if author == "human" or kind not in HUMANS_ONLY:
            calls = names.known(found["body"].strip()) if kind == MarkerKind.NEXT else None
            yield Hint(found.start(), found[0], f"[{kind}: {found['body'].strip()}]", calls)


def _naming(near_miss: re.Pattern[str], text: str, names: _Names) -> Iterator[Hint]:
    may_be_marker = "bracket" in near_miss.groupindex
    for found in near_miss.finditer(text):
        if not (may_be_marker and found["bracket"]) and (known := names.known(found["names"])):
            yield Hint(found.start("hit"), found["hit"], f"[NEXT: {known}]", known)
