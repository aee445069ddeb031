"""Reads the markers of one message as requests to members of the team. Pure.

A member that a message names more than once speaks once, at the place of its first name. The most urgent of its
priorities counts, for its whole group. A name that nobody has is a problem, and the other members still run. An agent
that names itself is ignored. The last of several FROM or TEAM_TASK markers counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from unicodedata import name as letter_name

from msgspec import Struct, field

from teamchat.core.routing.markers import (
    LONGEST_NAMES,
    MOST_MARKERS,
    Author,
    Marker,
    MarkerKind,
    Priority,
    Target,
    WhyNot,
    parse_targets,
)
from teamchat.core.routing.names import Ambiguous, Directory, Found, Named, Unknown, fold
from teamchat.core.routing.todos import Add, Finish, Wish, todo_number
from teamchat.patterns import regex

_LONGEST_SHOWN = 60  # characters
_MOST_SHOWN = 5  # lines on what one message has wrong
_MOST_GUESSED = 20  # names for which somebody is looked for who was perhaps meant
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
    """What a message asks for. `drops` None is DROP: ALL; `from_name` is a member's exact name, human or not.

    `signed` is what a FROM marker says where none names a member.

    `todos` are what is to be noted on the list, in order; whether its numbers are there is not known here.
    """

    requests: tuple[RouteRequest, ...] = ()
    drops: tuple[str, ...] | None = ()
    from_name: str | None = None
    signed: str | None = None
    task: str | None = None
    todos: tuple[Wish, ...] = ()
    problems: tuple[Problem, ...] = ()


def parse_to(value: str) -> tuple[Target, ...]:
    """The targets of `--to a,b` or `--to a+b`, in the grammar of NEXT; none when the value names nobody."""
    return parse_targets(value)


def resolve(
    markers: Iterable[Marker],
    members: Iterable[Named],
    speaker_name: str | None,
    author: Author = "human",
    to: Iterable[Target] = (),
) -> Resolution:
    """What the markers of one message ask of this team, after the targets of `to` (`--to`).

    `speaker_name` is the exact name of the member that wrote it, None when that is not known yet.
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
                self._drop(marker.names)
            case MarkerKind.FROM:
                self.signed = marker.names[0]
                self.from_name = self._member(self.signed) or self.from_name
            case MarkerKind.TEAM_TASK:
                self.task = marker.task
            case MarkerKind.TODO:
                self.todos.append(Add(marker.todo or ""))
            case MarkerKind.DONE:
                self._finish(marker.names)

    def speak(self, targets: Iterable[Target]) -> None:
        for target in targets:
            if target in self.called:
                continue
            self.called.add(target)
            if members := [member for name in target.names if (member := self._member(name))]:
                group = _Group([], target.priority)
                for member in members:
                    self._join(group, member)
                self.groups += [group] if group.members else []

    def _join(self, group: _Group, member: str) -> None:
        if member == self.agent:
            self.note(Problem(ProblemKind.SELF, f"{member} named itself: ignored", member))
            return
        first = self.group_of.setdefault(member, group)
        first.priority = min(first.priority, group.priority)
        if first is group and member not in group.members:
            group.members.append(member)

    def _drop(self, names: Iterable[str]) -> None:
        for name in names:
            if fold(name) == "all":
                self.drop_all = True
            elif member := self._member(name):
                self.drops[member] = None

    def _finish(self, numbers: Iterable[str]) -> None:
        for written in numbers:
            number = todo_number(written)
            if number is None:
                self.note(Problem(ProblemKind.NO_NUMBER, f"{quoted(written)} is not a todo number", written))
            else:
                self.todos.append(Finish(number))

    def _member(self, name: str) -> str | None:
        """The member's exact name; None for a name that is nobody's, which is noted."""
        if name not in self.known:
            self.known[name] = self._found(name)
        return self.known[name]

    def _found(self, name: str) -> str | None:
        guesses = len(self.problems) < _MOST_GUESSED
        match self.directory.match(name, guess=guesses):
            case Found(member):
                return member.name
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
        return None

    def _several(self, written: str) -> str | None:
        """The members that are written as one name, such as `max and sarah`, as a marker names them."""
        found = [self.directory.match(part) for part in _BETWEEN.split(shortened(written).strip())]
        names = [one.member.name for one in found if isinstance(one, Found)]
        return ", ".join(names) if len(names) == len(found) > 1 else None

    def note(self, problem: Problem) -> None:
        self.problems.setdefault((problem.kind, fold(problem.name or problem.message)), problem)

    def requests(self) -> list[RouteRequest]:
        """One request per member, in the order of speaking within each priority; groups of one are no groups."""
        together = (group for group in self.groups if len(group.members) > 1)
        number = {id(group): index for index, group in enumerate(together)}
        return [
            RouteRequest(member, group.priority, number.get(id(group)))
            for group in self.groups
            for member in group.members
        ]


def quoted(name: str) -> str:
    """The name as a message shows it: what cannot be seen is spelt out, and a whole paragraph is cut.

    A backslash is shown as it was typed.
    """
    return repr(shortened(name)).replace("\\\\", "\\")


def few(lines: Iterable[str]) -> list[str]:
    """The first lines, each once, and how many more there are."""
    lines = list(dict.fromkeys(lines))
    more = len(lines) - _MOST_SHOWN
    return [*lines[:_MOST_SHOWN], f"{more} more like these"] if more > 0 else lines


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
