"""The table of docs/json.md and docs/json.schema.json, from the structs that a run's lines are made of."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

from msgspec.inspect import StructType, type_info
from msgspec.json import schema_components

from teamchat.core.turn.lines import LINES
from teamchat.core.turn.run_events import JsonLine

HEAD = "| type | when, and what it has | fields |\n|---|---|---|\n"
ERROR = "error"  # which is a note there
NOT_TOLD = {"v", "hidden"}  # `hidden` is of `log` alone


def table() -> str:
    """A row for each type of line: its docstring, and the names of its fields."""
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in _rows())


def _rows() -> Iterator[tuple[str, str, str]]:
    for line in LINES:
        if not (line.of_file or _tag(line) == ERROR):
            words = ("With `--stream`. " if line.streamed else "") + _words(line.__doc__ or "")
            yield f"`{_tag(line)}`", words, " ".join(f"`{name}`" for name in _names(line))


def _words(doc: str) -> str:
    return " ".join(inspect.cleandoc(doc).split())


def _tag(line: type[JsonLine]) -> str:
    return str(line.__struct_config__.tag)


def _names(line: type[JsonLine]) -> list[str]:
    """The names of the fields as a script reads them."""
    info = type_info(line)
    assert isinstance(info, StructType)
    return [field.encode_name for field in info.fields if field.encode_name not in NOT_TOLD | {*line.live}]


def schema_text() -> str:
    """The text of docs/json.schema.json: what a line of a run is, by its type."""
    lines = [line for line in LINES if not (line.of_file or _tag(line) == ERROR)]
    refs, parts = schema_components(lines, ref_template="#/$defs/{name}")
    for line in lines:
        for name in line.live:
            parts[line.__name__]["properties"].pop(name)
    for part in parts.values():
        part["description"] = _words(part["description"])
    whole: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of teamchat send --json",
        "oneOf": list(refs),
        "$defs": parts,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
