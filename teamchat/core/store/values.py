"""Receipts and events as JSON in the store."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeVar, get_type_hints

from msgspec import Struct, convert, to_builtins
from msgspec.json import encode

from teamchat.core.receipt import Outcome
from teamchat.runners.file_changes import FileChanges, NoCheckpoint

S = TypeVar("S", bound=Struct)


def dump(value: Struct) -> str:
    """A value as JSON that the store can hold."""
    try:
        return encode(value).decode()
    except UnicodeEncodeError:  # surrogates cannot be stored; JSON's escapes, up to six times as long, keep them
        return json.dumps(to_builtins(value))


def load(kind: type[S], fields: object) -> S:
    """The value that `dump` wrote. Raises `ValueError`."""
    return convert(fields, kind)


def load_outcome(fields: object) -> Outcome:
    """The outcome that `dump` wrote. Raises `ValueError`.

    msgspec tells the two kinds of `changes` apart only by a tag, which the store does not have.
    """
    found = convert(fields, dict[str, Any])
    changes = found.pop("changes", None)
    kind: type[FileChanges | NoCheckpoint] = FileChanges if "top" in (changes or ()) else NoCheckpoint
    hints = _outcome_hints()
    values = {name: convert(value, hints[name]) for name, value in found.items() if name in hints}
    try:
        return Outcome(**values, changes=None if changes is None else convert(changes, kind))
    except TypeError as error:
        raise ValueError(f"outcome: {error}") from None


@cache
def _outcome_hints() -> dict[str, Any]:
    return get_type_hints(Outcome)
