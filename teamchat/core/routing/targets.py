"""The names in a marker: who is called, one after the other or together, and how urgently."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from teamchat.patterns import regex

Priority = Literal[1, 2, 3]

_SEPARATOR = regex("[,，、]")
_PLUS = regex("[+＋]")
_SIGN = regex("[,，、+＋!！#＃]")
_BEFORE_PRIORITY = frozenset("!！#＃")
_PRIORITY = regex("[!！#＃][PpＰｐ]([1-3１-３])")
_PRIORITIES: dict[int, Priority] = {1: 1, 2: 2, 3: 3}


class Target(Struct, frozen=True):
    """The name that is asked to speak, or the names of a group that speaks at the same time. 1 is the most urgent."""

    names: tuple[str, ...]
    priority: Priority = 2


def parse_targets(body: str) -> tuple[Target, ...]:
    """Parse the targets in order. Empty names are left out, and the most urgent priority counts for a whole group.

    `!P4` is not a priority but part of a name. Nobody has that name, so it is reported.
    """
    if _SIGN.search(body) is None:  # most bodies have none, and a text may have a hundred thousand bodies
        return (Target((name,)),) if (name := body.strip()) else ()
    targets = {item: _target(item) for item in {*_SEPARATOR.split(body)}}  # long lists repeat many of them
    return tuple(target for item in _SEPARATOR.split(body) if (target := targets[item]))


def _target(item: str) -> Target | None:
    if _SIGN.search(item) is None:
        return Target((name,)) if (name := item.strip()) else None
    names: list[str] = []
    priorities: list[int] = []
    for part in _PLUS.split(item):
        name = part.strip()
        if name[-3:-2] in _BEFORE_PRIORITY and (priority := _PRIORITY.fullmatch(name[-3:])):
            priorities.append(int(priority[1]))
            name = name[:-3].rstrip()
        if name:
            names.append(name)
    return Target(tuple(names), _PRIORITIES[min(priorities, default=2)]) if names else None
