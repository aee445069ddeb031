"""The form of everything that the engine stores for us: JSON, and never an object of Python.

A stored value of DBOS names its own format, whatever serializer is configured (3.4.0): a value marked as a Python
object would be rebuilt by running its content. Its reader and writer of such objects are replaced here, in every
process that imports the engine.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from msgspec import DecodeError
from msgspec.json import decode, encode

from teamchat.core.dispatch.order import Unreadable

for _name in [name for name in os.environ if name.startswith("DBOS")]:
    del os.environ[_name]  # the engine would follow them, to its maker's services among others

import dbos._serialization as engines  # noqa: E402 (it must not see the variables)


def _refuse(*_: object) -> NoReturn:
    raise Unreadable("a value of the database that is no JSON: it is not read")


class RemoteError(Exception):
    """An error that a workflow stored, as its text."""


class JsonSerializer(engines.Serializer):
    """Stores values as JSON. It keeps only the text of an error."""

    def name(self) -> str:
        return "teamchat_json_1"

    def serialize(self, data: Any) -> str:
        if isinstance(data, BaseException):
            return encode({"error": f"{type(data).__name__}: {data}"}).decode()
        return encode({"value": data}).decode()

    def deserialize(self, serialized_data: str) -> Any:
        """Read a stored value. Raises `Unreadable`."""
        try:
            wrapped = decode(serialized_data)
        except (DecodeError, UnicodeError, TypeError, RecursionError) as error:
            raise Unreadable(f"a value of the database that is no JSON: {error}") from None
        if not isinstance(wrapped, dict) or len(wrapped) != 1:
            raise Unreadable("a value of the database that is none of ours")
        return RemoteError(str(wrapped["error"])) if "error" in wrapped else wrapped.get("value")


def _serialize(_: object, data: Any) -> str:
    """Let the engine store why it has not read such a value, so that the workflow ends."""
    return JsonSerializer().serialize(data)


for _method, _ours in (("serialize", _serialize), ("deserialize", _refuse)):
    setattr(engines.DefaultSerializer, _method, _ours)
