"""Makes a value from another one that shares some of its fields."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct

S = TypeVar("S", bound=Struct)


def made_of(kind: type[S], value: Any, **others: Any) -> S:
    """Build a `kind` with the fields that `value` also has, except those in `others`.

    `value` is a Struct, or a table or a line that was read; its lists and dicts become immutable.
    """
    if isinstance(value, Struct):
        same = {name: getattr(value, name) for name in _shared(kind, type(value), frozenset(others))}
    else:
        there = vars(value)
        names = (name for name in kind.__struct_fields__ if name in there and name not in others)
        same = {name: _fixed(there[name]) for name in names}
    return kind(**same, **others)


@cache
def _shared(kind: type[Struct], of: type[Struct], without: frozenset[str]) -> tuple[str, ...]:
    """List the fields that both have."""
    return tuple(name for name in kind.__struct_fields__ if name in of.__struct_fields__ and name not in without)


def _fixed(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return MappingProxyType(value) if isinstance(value, dict) else value
