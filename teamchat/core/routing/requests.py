"""Reads the markers of one message as requests to members of the team. Pure.

A member that a message names more than once speaks once, at the place of its first name. The most urgent of its
priorities counts, for its whole group. A name that nobody has is a problem, and the other members still run. An agent
that names itself is ignored. The last of several FROM or TEAM_TASK markers counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cache, partial
from itertools import chain
from unicodedata import name as letter_name

from msgspec import Struct, field

from teamchat.core.routing.markers import (
    HUMANS_ONLY,
    LONGEST_NAMES,
    MOST_MARKERS,
    SPACE,
    Author,
    Marker,
    MarkerKind,
    WhyNot,
)
from teamchat.core.routing.names import Ambiguous, Directory, Found, Named, Unknown, fold
from teamchat.core.routing.targets import Priority, Target, parse_targets
from teamchat.core.routing.todos import Add, Finish, Wish, todo_number
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
    rf"[\[［【]{_GAP}(?P<kind>{_KINDS}){_GAP}[:：](?P<body>[^\[\]［］【】\r\n]*+)[］】\]]", re.IGNORECASE | re.ASCII
)
_NEXT = regex("NEXT", re.IGNORECASE)  # much faster than the code below, and most texts have none
_NOT_PLAIN = regex(r"[^\t\n\r -~]")
_NO_COLON = regex(rf"(?<!\\)(?P<hit>\[{SPACE}*+NEXT{SPACE}++{_NAMES})", re.IGNORECASE)
_NO_BRACKETS = regex(
    rf"(?P<bracket>[\[［【]{SPACE}*+)?(?<!\w)(?P<hit>NEXT[*_~]{{0,2}}+{SPACE}*+[:：][*_~]{{0,2}}+{SPACE}*+{_NAMES})",
    re.IGNORECASE,
)
# A member that is only talked about is not addressed: `@max said so`, `@max's plan`
_MENTION = regex(
    rf"(?<![^\r\n]){SPACE}*+(?P<hit>(?=@){_NAMES})"
    rf"(?!['’]s\b|{SPACE}++(?:said|says|wrote|writes|thought|thinks|suggested|suggests|is|was|has|had)\b)",
    re.IGNORECASE,
)
_MOST_GUESSED = 20  # Names for which the closest member is searched: comparing costs much.
_LOOKED_AT = 2_000_000  # Characters at the beginning of a text that are searched for near misses.
_UNCLOSED_BODY = regex(rf"{SPACE}*+{_NAMES}")


class Hint(Struct, frozen=True):
    """A near miss at `position`: its `text`, and what to write instead.

    `calls` are the members that a near miss of NEXT was probably meant to call; None for one of another kind.
    """

    position: int
    text: str
    suggestion: str
    calls: str | None = None


def near_miss_lines(found: Iterable[Hint]) -> list[str]:
    """Write a line for a person on each near miss, skipping repetitions; a pasted log has hundreds."""
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
    """Find the near misses in a text, in order, each once, outside code and quotes; `markers` are its scanned markers.

    Near misses without brackets or colon are only noticed if they name a member, and `@max` only at the start of a line
    and with `mentions`: in a message that calls somebody by a marker it is prose. `closest` finds the member whose name
    was misspelt; without it only exact names count. Only the first `_LOOKED_AT` characters of a text are read.
    """
    names, text = _Names(member_names, closest), text[:_LOOKED_AT]
    first: dict[tuple[str, str], Hint] = {}
    for hint in chain(
        _not_closed(markers, names),
        _odd(text, author, names),
        *(_naming(near_miss, text, names) for near_miss in (_NO_COLON, _NO_BRACKETS) if _NEXT.search(text)),
        _naming(_MENTION, text, names) if mentions and "@" in text else (),
    ):
        if (hint.text, hint.suggestion) not in first and not _shown(text, hint.position, author):
            first[hint.text, hint.suggestion] = hint
    return tuple(sorted(first.values(), key=lambda hint: hint.position))


def _shown(text: str, position: int, author: Author) -> bool:
    """Whether the text there is shown rather than said, as in code and quotes."""
    from teamchat.core.routing.markdown import places_of

    return places_of(text, thinks=author == "ai").at(position) is not None


class _Names:
    """The names of members; `known` remembers written names, since the same ones come again and again."""

    def __init__(self, names: Iterable[str], closest: Callable[[str], str | None] | None = None) -> None:
        self._folded = {fold(name) for name in names}
        self._closest = closest
        self._guessed = 0
        self.known = cache(self._known)

    def _known(self, written: str) -> str:
        """Return the members' names in `written` before the first unknown name, without `@`; empty without any.

        The member's name replaces a misspelt one, which in a mention needs an `@` of its own.
        """
        known, end = "", 0
        for match in _ONE_NAME.finditer(written):
            name = match[0].lstrip("@").rstrip(_PUNCTUATION)
            is_call = not end or match[0].startswith("@") or not written.startswith("@")
            meant = name if fold(name) in self._folded else self._guess(name) if is_call else None
            if meant is None:
                break
            known += written[end : match.start()] + meant
            end = match.end()
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
    """Find markers in full-width brackets, and markers with invisible characters in front of their body."""
    if _NOT_PLAIN.search(text) is None:  # the next pattern takes 0.3 ms to compile
        return
    from teamchat.core.routing.markdown import is_escaped

    meant = cache(partial(_meant, names))  # the same is written again and again
    for match in _ODD.finditer(text):
        if match[0][0] == "[" and (is_escaped(text, match.start()) or not _hides(match)):
            continue
        kind, suggestion, calls = meant(match["kind"], match["body"])
        if author == "human" or kind not in HUMANS_ONLY:
            yield Hint(match.start(), match[0], suggestion, calls)


def _meant(names: _Names, kind: str, body: str) -> tuple[MarkerKind, str, str | None]:
    """Return the kind of marker, what to write instead, and the members that a NEXT calls."""
    kind = MarkerKind(_ANY_UNSEEN.sub("", kind).upper())
    body = _ANY_UNSEEN.sub("", body).strip()
    calls = names.known(body) if kind == MarkerKind.NEXT else None
    if calls:
        body = body.replace("@", "")  # no name has one
    return kind, f"[{kind}: {calls if calls and not body.startswith(calls) else body}]", calls


def _hides(marker: re.Match[str]) -> bool:
    return bool(_ANY_UNSEEN.search(marker.string, marker.start(), marker.start("body")))


def _naming(near_miss: re.Pattern[str], text: str, names: _Names) -> Iterator[Hint]:
    may_be_marker = near_miss is _NO_BRACKETS
    for match in near_miss.finditer(text):
        if not (may_be_marker and match["bracket"]) and (known := names.known(match["names"])):
            yield Hint(match.start("hit"), match["hit"], f"[NEXT: {known}]", known)


_LONGEST_SHOWN = 60  # characters
_MOST_SHOWN = 5  # Lines on the mistakes of one message.
_BETWEEN = regex(r"\s*[;/&|]\s*|\s+and\s+|\s+", re.IGNORECASE)


class ProblemKind(StrEnum):
    UNKNOWN = "unknown"
    AMBIGUOUS = "ambiguous"
    SELF = "self"
    EMPTY = "empty"
    NO_NUMBER = "no number"
    TOO_LONG = "too long"
    HIDDEN = "hidden"
    TOO_MANY = "too many"


class Problem(Struct, frozen=True):
    """Something in a marker that was not done, in words for the user; `closest` is the member perhaps meant."""

    kind: ProblemKind
    message: str
    name: str | None = None
    closest: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether it should stop a command; the others are warnings."""
        return self.kind in (ProblemKind.AMBIGUOUS, ProblemKind.HIDDEN)


class RouteRequest(Struct, frozen=True):
    """A member (its exact name) is to speak. `group` is the index of its group in the message, None when alone."""

    target: str
    priority: Priority = 2
    group: int | None = None


class Resolution(Struct, frozen=True):
    """The requests of a message.

    `drops` None is DROP: ALL. `from_name` is a member's exact name, human or not. `signed` is the content of a FROM
    marker if none names a member. `todos` are the changes to note on the list, in order; whether their numbers exist is
    not known here.
    """

    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()
    from_name: str | None = None
    signed: str | None = None
    task: str | None = None
    todos: tuple[Wish, ...] = ()
    problems: tuple[Problem, ...] = ()


def parse_to(value: str) -> tuple[Target, ...]:
    """Parse the targets of `--to a,b` or `--to a+b`, in the grammar of NEXT; none if the value names nobody."""
    return parse_targets(value)


def resolve(
    markers: Iterable[Marker],
    members: Iterable[Named],
    speaker_name: str | None,
    author: Author = "human",
    to: Iterable[Target] = (),
) -> Resolution:
    """Resolve what the markers of one message ask of this team, after the targets of `to` (`--to`).

    `speaker_name` is the exact name of the member that wrote it, None if that is not known yet.
    """
    reader = _Reader(Directory(members), speaker_name if author == "ai" else None)
    reader.speak(to)
    markers = tuple(markers)
    if len(markers) >= MOST_MARKERS:
        reader.note(Problem(ProblemKind.TOO_MANY, f"only the first {MOST_MARKERS:,} markers were read"))
    for marker in markers:
        if marker.counts:
            reader.read(marker)
        elif marker.why_not is WhyNot.TOO_LONG:
            message = f"{quoted(marker.raw)} has more than {LONGEST_NAMES:,} characters: ignored"
            reader.note(Problem(ProblemKind.TOO_LONG, message))
        elif marker.why_not is WhyNot.HIDDEN:
            reader.note(
                Problem(ProblemKind.HIDDEN, f"{quoted(marker.raw)} is not wholly visible, so it is not a marker")
            )
    return Resolution(
        requests=tuple(reader.requests()),
        drops=None if reader.drop_all else tuple(reader.drops),
        from_name=reader.from_name,
        signed=None if reader.from_name else reader.signed,
        task=reader.task,
        todos=tuple(reader.todos),
        problems=tuple(reader.problems.values()),
    )


class _Group(Struct):
    members: list[str]
    priority: Priority


class _Reader(Struct):
    """Gathers what the markers ask for, in order; the dicts keep each name once.

    `known` has the members by names as they were written; None for a name that is nobody's.
    """

    directory: Directory[Named]
    agent: str | None
    known: dict[str, str | None] = field(default_factory=dict)
    called: set[Target] = field(default_factory=set)
    groups: list[_Group] = field(default_factory=list)
    group_of: dict[str, _Group] = field(default_factory=dict)
    drops: dict[str, None] = field(default_factory=dict)
    drop_all: bool = False
    from_name: str | None = None
    signed: str | None = None
    task: str | None = None
    todos: list[Wish] = field(default_factory=list)
    problems: dict[tuple[ProblemKind, str], Problem] = field(default_factory=dict)

    def read(self, marker: Marker) -> None:
        if not (marker.targets or marker.names or marker.task or marker.todo):
            self.note(Problem(ProblemKind.EMPTY, f"{marker.raw.strip()} is empty: ignored"))
            return
        match marker.kind:
            case MarkerKind.NEXT:
                self.speak(marker.targets)
            case MarkerKind.DROP:
                for name in marker.names:
                    if fold(name) == "all":
                        self.drop_all = True
                    elif member := self._member(name):
                        self.drops[member] = None
            case MarkerKind.FROM:
                self.signed = marker.names[0]
                self.from_name = self._member(self.signed) or self.from_name
            case MarkerKind.TEAM_TASK:
                self.task = marker.task
            case MarkerKind.TODO:
                self.todos.append(Add(marker.todo or ""))
            case MarkerKind.DONE:
                for written in marker.names:
                    if (number := todo_number(written)) is not None:
                        self.todos.append(Finish(number))
                    else:
                        self.note(Problem(ProblemKind.NO_NUMBER, f"{quoted(written)} is not a todo number", written))

    def speak(self, targets: Iterable[Target]) -> None:
        for target in targets:
            if target in self.called:
                continue
            self.called.add(target)
            if members := [member for name in target.names if (member := self._member(name))]:
                group = _Group([], target.priority)
                for member in members:
                    if member == self.agent:
                        self.note(Problem(ProblemKind.SELF, f"{member} named itself: ignored", member))
                        continue
                    first = self.group_of.setdefault(member, group)
                    first.priority = min(first.priority, group.priority)
                    if first is group and member not in group.members:
                        group.members.append(member)
                self.groups += [group] if group.members else []

    def _member(self, name: str) -> str | None:
        """Return the member's exact name; for a name that is nobody's, note it and return None."""
        if name in self.known:
            return self.known[name]
        self.known[name] = None
        guesses = len(self.problems) < _MOST_GUESSED
        match self.directory.match(name, guess=guesses):
            case Found(member):
                self.known[name] = member.name
            case Ambiguous(_, candidates):
                which = " or ".join(member.name for member in candidates)
                self.note(
                    Problem(ProblemKind.AMBIGUOUS, f"{quoted(name)} is the title of several members: {which}?", name)
                )
            case Unknown(_, closest, strange):
                meant = (self._several(name) if guesses else None) or closest
                guess = f": did you mean {meant}?" if meant else ""
                letter = f", whose {strange!r} is {letter_name(strange).lower()}" if strange else ""
                message = f"nobody is called {quoted(name)}{letter}{guess}"
                self.note(Problem(ProblemKind.UNKNOWN, message, name, closest))
        return self.known[name]

    def _several(self, written: str) -> str | None:
        """Name the members written as one name, such as `max and sarah`, as a marker names them."""
        matches = [self.directory.match(part) for part in _BETWEEN.split(shortened(written).strip())]
        names = [match.member.name for match in matches if isinstance(match, Found)]
        return ", ".join(names) if len(names) == len(matches) > 1 else None

    def note(self, problem: Problem) -> None:
        self.problems.setdefault((problem.kind, fold(problem.name or problem.message)), problem)

    def requests(self) -> list[RouteRequest]:
        """List one request per member, in the order of speaking within each priority; a group of one is not a group."""
        together = (group for group in self.groups if len(group.members) > 1)
        number = {id(group): index for index, group in enumerate(together)}
        return [
            RouteRequest(member, group.priority, number.get(id(group)))
            for group in self.groups
            for member in group.members
        ]


def quoted(name: str) -> str:
    """Show the name in a message: invisible characters are spelt out, and a whole paragraph is cut.

    A backslash is shown as it was typed.
    """
    return repr(shortened(name)).replace("\\\\", "\\")


def few(lines: Iterable[str]) -> list[str]:
    """Return the first lines, each once, and how many more there are."""
    lines = list(dict.fromkeys(lines))
    more = len(lines) - _MOST_SHOWN
    return [*lines[:_MOST_SHOWN], f"{more} more like these"] if more > 0 else lines


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
