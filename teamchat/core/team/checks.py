"""Finds the checks that a person or a process names, with the checks that they need."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from teamchat.core.check import Check
from teamchat.core.errors import UsageError
from teamchat.core.routing.names import fold
from teamchat.core.team.problems import near
from teamchat.core.text.commands import quote
from teamchat.patterns import regex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NEAR = 0.8  # The least likeness of a word and a name; `pytest` is no slip of `tests`.
LONGEST_LINE = 4_000  # characters of a typed command
_NO_NAME = regex(r"[\s/]")  # Characters that no name of a check has.


def named_check(team_checks: Mapping[str, Check], word: str) -> Check:
    """Return the team's check with the name `word`, or else a typed check with the word as its command.

    A word with a space or a `/` is always a command. Raises `UsageError` for a word that is nearly a name, for an
    option that was read as a check, and for a command that no shell can run.
    """
    _check_command(word, next(iter(team_checks), "make test"))
    if not _NO_NAME.search(word):
        for name, check in team_checks.items():
            if fold(name) == fold(word):
                return check
        if (meant := near(word, team_checks, NEAR)) is not None:
            typed = quote(f"sh -c {quote(word)}")
            raise UsageError(f"no check {word!r}: did you mean {meant!r}? As a command it is {typed}")
    return Check(name=word, command=word, typed=True)


def _check_command(word: str, example: str) -> None:
    if not word.strip():
        raise UsageError(f"expected the name of a check or a shell command, got {word!r}")
    if word.lstrip().startswith("-"):
        raise UsageError(
            f"expected the name of a check or a shell command, got {word!r}, which begins with a -: "
            f"type the check before it, such as --check {quote(example)} {word}"
        )
    if "\0" in word:
        raise UsageError("expected a shell command without NUL characters")
    if (longest := max(map(len, word.split("\n")))) > LONGEST_LINE:
        raise UsageError(f"expected a shell command with lines of at most {LONGEST_LINE:,} characters, got {longest:,}")


def with_needs(team_checks: Mapping[str, Check], checks: Sequence[Check]) -> tuple[Check, ...]:
    """Keep the order of the checks, each once and behind the checks that it needs."""
    ordered: dict[str, Check] = {}
    waiting = [*reversed(checks)]
    while waiting:
        check = waiting[-1]
        missing = [team_checks[name] for name in check.needs if name not in ordered]
        if missing and check.name not in ordered:
            waiting += reversed(missing)
        else:
            ordered.setdefault(check.name, waiting.pop())
    return tuple(ordered.values())


def circle_of(checks: Mapping[str, Check]) -> list[str]:
    """Return the names of checks that need each other in a circle, from one back to itself; empty without a circle."""
    try:
        TopologicalSorter({name: check.needs for name, check in checks.items()}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]  # it begins with what is needed
        return circle[::-1]
    return []
