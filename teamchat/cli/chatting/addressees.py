"""The addressees at the beginning of a typed line: `@max Fix it` and `@max+sarah Look at it` are sent to them."""

from __future__ import annotations

from collections.abc import Sequence

from teamchat.core.routing.markers import parse_targets
from teamchat.core.routing.names import Directory, Found
from teamchat.core.team.team import Member
from teamchat.patterns import regex

_ADDRESS = regex(r"\s*@(\S+)\s*")
_ENDING = ":,;，、"


def split_addressees(text: str, members: Sequence[Member]) -> tuple[str | None, str]:
    """The names for `--to`, and the text without them. None if the line begins with no member's name.

    An `@` before anything else, such as a path, is part of the text.
    """
    found = _ADDRESS.match(text)
    if found is None:
        return None, text
    names = found[1].rstrip(_ENDING)
    directory = Directory(members)
    called = [name for target in parse_targets(names) for name in target.names]
    if not called or not all(isinstance(directory.match(name, guess=False), Found) for name in called):
        return None, text
    return names, text[found.end() :]


def with_addressees(to: str | None, text: str) -> str:
    """The line as it was typed."""
    return f"@{to} {text}" if to else text
