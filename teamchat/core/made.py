"""Makes a value of another one that has some of the same fields."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct

S = TypeVar("S", bound=Struct)


def made_of(kind: type[S], value: Any, **others: Any) -> S:
    """A `kind` with the fields that `value` has, too, except those in `others`.

    `value` is a Struct, or a table or a line that was read, whose lists and dicts become what nobody can change.
    """
    there = value.__struct_fields__ if isinstance(value, Struct) else vars(value)
    same = {name: getattr(value, name) for name in kind.__struct_fields__ if name in there and name not in others}
    if not isinstance(value, Struct):
        same = {name: _fixed(each) for name, each in same.items()}
    return kind(**same, **others)


def _fixed(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return MappingProxyType(value) if isinstance(value, dict) else value
