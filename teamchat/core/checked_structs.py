"""Structs as fields of pydantic models: `Annotated[Limits, Checked()]` is checked like a dataclass of its fields."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import asdict, fields
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class CheckedStruct:
    """Has pydantic check a Struct by a dataclass of the same fields, whose JSON schema it also gets."""

    def __get_pydantic_core_schema__(self, kind: type[Struct], handler: GetCoreSchemaHandler) -> CoreSchema:
        hints = get_type_hints(kind, include_extras=True)
        names = [
            (struct_field.name, _checked(hints[struct_field.name]), _default(struct_field))
            for struct_field in fields(kind)
        ]
        twin = make_dataclass(kind.__name__, names, namespace={"__doc__": kind.__doc__}, kw_only=True)
        schema = handler.generate_schema(twin)
        return core_schema.no_info_after_validator_function(
            lambda made: kind(**vars(made)),
            schema,
            serialization=core_schema.wrap_serializer_function_ser_schema(
                lambda value, serialize: serialize(twin(**asdict(value))), schema=schema
            ),
        )


def _checked(hint: Any) -> Any:
    """Return the type with all Structs in it checked."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return Annotated[hint, CheckedStruct()]
    args = tuple(map(_checked, get_args(hint)))
    if args == get_args(hint):
        return hint
    origin = get_origin(hint)
    return reduce(or_, args) if origin in (Union, UnionType) else origin[args]


def _default(one: Any) -> Any:
    if one.default is not NODEFAULT:
        return field(default=one.default)
    if one.default_factory is not NODEFAULT:
        return field(default_factory=one.default_factory)
    return field()
