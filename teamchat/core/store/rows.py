"""Rows of the store, read column by column: a value that a healthy store cannot have is an error, never passed on."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, DecodeError, Struct, convert, defstruct, structs, to_builtins
from msgspec import field as structs_field
from msgspec.json import decode, encode

from teamchat.core.made import made_of
from teamchat.core.receipt import Outcome
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint

LATEST = 253_402_300_799.0
"""The last second of the year 9999, which is as far as dates go."""
Count = Annotated[int, "count"]
"""An integer that is not negative."""
Moment = Annotated[float, "moment"]
"""Seconds since 1970 that are a date."""
S = TypeVar("S", bound=Struct)
T = TypeVar("T")


class Row(sqlite3.Row):
    """A row. Every reader raises `ValueError` if the column holds any other kind of value."""

    def has(self, name: str) -> bool:
        """Whether the row has that column: a damaged store of an older version may lack it."""
        return name in self.keys()

    def text(self, name: str) -> str:
        return self._of(str, name)

    def text_or_none(self, name: str) -> str | None:
        return None if self[name] is None else self.text(name)

    def integer(self, name: str) -> int:
        return self._of(int, name)

    def integer_or_none(self, name: str) -> int | None:
        return None if self[name] is None else self.integer(name)

    def count(self, name: str) -> int:
        """Read an integer that is not negative."""
        value = self.integer(name)
        return value if value >= 0 else self._refuse(name)

    def blob(self, name: str) -> bytes:
        return self._of(bytes, name)

    def real(self, name: str) -> float:
        value = self[name]
        number = float(value) if isinstance(value, int | float) else math.nan
        return number if math.isfinite(number) else self._refuse(name)

    def moment(self, name: str) -> float:
        """Read seconds since 1970, up to the year 9999."""
        value = self.real(name)
        return value if 0 <= value <= LATEST else self._refuse(name)

    def one_of(self, literal: Any, name: str) -> Any:
        """Read one of the strings of a `Literal`."""
        value = self[name]
        return value if value in literal.__args__ else self._refuse(name)

    def flag(self, name: str) -> bool:
        return bool(self.integer(name))

    def path(self, name: str) -> Path:
        return Path(self.json(name))

    def json(self, name: str) -> Any:
        text = self.text(name)
        try:
            return decode(text)
        except (DecodeError, UnicodeError):  # such as half of a surrogate pair, which `dump` may have written
            return json.loads(text)

    def json_or_none(self, name: str) -> Any:
        return None if self[name] is None else self.json(name)

    def read(self, kind: type[S], **given: Any) -> S:
        """Fill the fields of `kind` from the columns of the same names, read by their types, except those `given`."""
        return kind(**{name: read(self, name) for name, read in _readers(kind) if name not in given}, **given)

    def only(self, kind: type[T]) -> T:
        """Return the value of a row with one column."""
        return self._of(kind, self.keys()[0])

    def _of(self, kind: type[T], name: str) -> T:
        value = self[name]
        return value if type(value) is kind else self._refuse(name)

    def _refuse(self, name: str) -> Any:
        raise ValueError(f"{name} is {repr(self[name])[:40]}")


Reader = Callable[[Row, str], Any]
_BY_TYPE: dict[Any, Reader] = {
    str: Row.text,
    int: Row.integer,
    float: Row.real,
    bool: Row.flag,
    Path: Row.path,
    Count: Row.count,
    Moment: Row.moment,
}


@cache
def _readers(kind: type[Struct]) -> tuple[tuple[str, Reader], ...]:
    return tuple((name, _reader(hint)) for name, hint in get_type_hints(kind, include_extras=True).items())


def _reader(hint: Any) -> Reader:
    """Choose the reader for a column of that type; a type that SQLite lacks is stored as JSON."""
    if hint in _BY_TYPE:
        return _BY_TYPE[hint]
    if get_origin(hint) is Literal:
        return lambda row, name: row.one_of(hint, name)
    options = get_args(hint)
    if options[1:] == (NoneType,):
        read = _reader(options[0])
        return lambda row, name: None if row[name] is None else read(row, name)
    return lambda row, name: convert(row.json(name), hint)


def dump(value: object) -> str:
    """Write a value as JSON that the store can hold."""
    return encoded(value).decode()


def encoded(value: object) -> bytes:
    """Write a value as JSON. What is no Unicode in it (of a file's name, say) is escaped."""
    try:
        return encode(value)
    except (UnicodeEncodeError, OverflowError):  # JSON's escapes, up to six times as long, keep surrogates
        return json.dumps(to_builtins(value)).encode()


def load_changes(written: dict[str, Any] | None) -> FileChanges | NoCheckpoint | None:
    """Load the changes that `dump` wrote. msgspec tells the two kinds apart by a tag, which the store lacks."""
    kind: type[FileChanges | NoCheckpoint] = FileChanges if "top" in (written or ()) else NoCheckpoint
    return None if written is None else convert(written, kind)


def load_outcome(fields: object) -> Outcome:
    """Load the outcome that `dump` wrote. Raises `ValueError`."""
    written = convert(fields, dict[str, Any])
    changes = load_changes(written.pop("changes", None))
    return made_of(Outcome, convert(written, _written_outcome()), changes=changes)


@cache
def _written_outcome() -> type[Struct]:
    """Build the type of an outcome without its changes, whose two kinds msgspec cannot tell apart."""
    hints = get_type_hints(Outcome, include_extras=True)
    known = (field for field in structs.fields(Outcome) if field.name != "changes")
    return defstruct("WrittenOutcome", [_as_given(field, hints[field.name]) for field in known])


def _as_given(field: structs.FieldInfo, hint: Any) -> Any:
    """Describe the field, with its default, as `defstruct` takes it."""
    if field.default is not NODEFAULT:
        return field.name, hint, field.default
    if field.default_factory is not NODEFAULT:
        return field.name, hint, structs_field(default_factory=field.default_factory)
    return field.name, hint
