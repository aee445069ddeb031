"""Reading JSON that somebody else wrote, without trusting its shape.

Nothing here but `not_too_deep` raises: a value of the wrong type is a missing value. Parsers take shapes apart with
`match`; this module has the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from teamchat.patterns import regex
from teamchat.runners.untrusted.regular_files import LARGEST, read_regular

_SURROGATE = regex(r"\\u[dD][89a-fA-F]")
_CONTROL = regex(  # also direction marks and the byte order mark
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|[\x00-\x08\x0e-\x1b\x7f-\x9f]"
    r"|[\u202a-\u202e\u2066-\u2069\ufeff]"
)
_FOR_A_TERMINAL = regex(  # titles, the cursor, bracketed paste; a byte order mark; controls and spaces
    rb"(?:\x1b\[[0-?]*+[ -/]*+[@-~]|\x1b[\]P^_X][^\x07\x1b\n]*+(?:\x07|\x1b\\)?|\x1b[ -/]*+[0-~]"
    rb"|\xef\xbb\xbf|[\x00-\x20\x7f])*+"
)
_TOO_MUCH = 10**15  # tokens or dollars
_LONG, _MANY, _LEVELS = 8 << 20, 1 << 20, 4
"""The bytes of a line in which values are counted, how many are too many, and how far its objects are looked into."""
_UP_TO_VALUE = regex(rb'(?:[^",\[{]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_DEEPEST = 200  # lists and objects in one another; the deepest that a parser takes is another one with each Python
_Value = TypeVar("_Value")
_SUMMARY_KEYS = (
    "command", "file_path", "notebook_path", "path", "pattern", "url", "query", "dir_path", "description",
    "prompt",
)  # fmt: skip


def scalar(text: str) -> str:
    """Replace lone surrogates, which no file or pipe can carry, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def bare(line: bytes) -> bytes:
    """Remove a program's output for a terminal in front of the line's JSON, such as a title or a progress bar."""
    if line.startswith(b"{"):
        return line
    body = line[_end_of_noise(line, 0) :]
    if body.startswith(b"{") or b"\r" not in body:
        return body
    again = body.rfind(b"\r", 0, len(body.rstrip()))  # inside a string of JSON there is none
    return body[_end_of_noise(body, max(again, 0)) :]


def _end_of_noise(line: bytes, begin: int) -> int:
    match = _FOR_A_TERMINAL.match(line, begin)
    return match.end() if match else begin


def decode(line: bytes) -> dict[str, object] | None:
    """Read the JSON object on this line; None if there is none. A line that does not begin with a brace costs little.

    Output for a terminal in front of the object or behind it is left out.
    """
    line = bare(line)
    if not line.startswith(b"{"):
        return None
    if len(line) > _LONG and _has_many_values(line):
        return _part_of_line(line)
    try:
        value = msgspec.json.decode(line)  # five times as fast; what it accepts, it reads as `json` does
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = _decode_odd(line)
    return value if isinstance(value, dict) else None


class PartOfObject(dict[str, object]):
    """An object of a long line without its lists and objects of very many values, which would take gigabytes."""


def _part_of_line(line: bytes) -> PartOfObject | None:
    """Decode the part of a long line that can be kept; None if it is not strict JSON.

    Only a slow reader takes such a line whole.
    """
    try:
        return PartOfObject(_part_of(line))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _part_of(raw: bytes, level: int = 0) -> dict[str, object]:
    """Read the fields of an object; None in the place of one with too many values, unless that is an object itself."""
    keys = raw.count(b'":') - raw.count(b'\\":')  # in a text of the object, the quotation mark is escaped
    if keys > _MANY or level == _LEVELS:
        return {}
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    return {name: _field(bytes(value), level + 1) for name, value in fields.items()}


def _field(raw: bytes, level: int) -> object:
    if not _has_many_values(raw):
        return msgspec.json.decode(raw)
    return _part_of(raw, level) if raw.startswith(b"{") else None


def _has_many_values(raw: bytes) -> bool:
    """Whether there are more than `_MANY` values. It takes a second at most."""
    at = 0
    for _ in range(_MANY):
        at = (match.end() if (match := _UP_TO_VALUE.match(raw, at)) else at) + 1
        if at >= len(raw):
            return False
    return True


def object_in(file: Path, most: int = LARGEST) -> dict[str, object] | None:
    """Read the JSON object in a regular file of at most `most` bytes; None if there is none that can be read."""
    try:
        return decode(read_regular(file, most))
    except (OSError, ValueError):
        return None


def _decode_odd(line: bytes) -> object:
    """Read a line that may have invalid UTF-8, lone surrogates, `NaN` or numbers of any size; None if it is no JSON."""
    text = line.decode("utf-8", "replace")
    try:
        value, end = _DECODER.raw_decode(text)
        rest = text[end:].encode("utf-8", "replace")
        if _end_of_noise(rest, 0) < len(rest):
            return None
        if _SURROGATE.search(text):
            value = json.loads(scalar(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None
    return value


_DECODER = json.JSONDecoder()


def document(text: str) -> object:
    """Read a text that is one JSON value; None if it is not."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def is_path(path: str) -> bool:
    """Whether the text is a path as `at_path` takes it: names and numbers with a dot between them."""
    return all(name and name == name.strip() for name in path.split("."))


def at_path(value: object, path: str) -> object:
    """Find the value at a path such as `messages.-1.text`: keys, and places of lists; None if nothing is there."""
    for name in path.split("."):
        if isinstance(value, list) and name.lstrip("-").isdecimal() and -len(value) <= int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value


def not_too_deep(value: _Value) -> _Value:
    """Return the value. Raises `RecursionError` for one deeper than `_DEEPEST`, as parsers do somewhere beyond it."""
    layer: list[object] = [value]
    for _ in range(_DEEPEST):
        layer = [item for outer in layer for item in _items(outer) if isinstance(item, dict | list)]
        if not layer:
            return value
    raise RecursionError


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def one_line(text: str, limit: int = 200) -> str:
    """Keep at most `limit` characters, on one line, and remove all that could repaint it. A cut text ends in `…`."""
    begin = text[: limit * 8]
    if not begin.isprintable():  # ten times as fast
        begin = _CONTROL.sub("", begin)
    short = " ".join(begin.split())
    return short if len(short) <= limit else short[: limit - 1] + "…"


def listed(*things: str) -> str:
    """Join items in a sentence: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(things[:-1]), things[-1])))


def first_of(names: Sequence[str], most: int, more: int = 0) -> list[str]:
    """Return the first `most` names, and how many others there are with `more`: `a`, `b`, `3 more`."""
    others = max(len(names) - most, 0) + more
    return [*names[:most], *([f"{others:,} more"] if others else [])]


def summary(arguments: object) -> str:
    """Sum up a tool's task in one line: its command, its path, or all its arguments."""
    if isinstance(arguments, dict):
        for key in _SUMMARY_KEYS:
            if isinstance(value := arguments.get(key), str) and value.strip():
                return one_line(value)
    try:
        return one_line(json.dumps(arguments, ensure_ascii=False)) if arguments else ""
    except RecursionError:
        return "…"


def flat(content: object) -> str:
    """Join the text of a tool's output: a string or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (block.get("text") for block in content if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def count(value: object) -> int | None:
    """Read a number of tokens; None for one that no turn can reach, so that stored numbers can be summed."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_MUCH else None


def amount(value: object) -> float | None:
    """Read an amount of money, with the rules of `count`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _TOO_MUCH else None


def total(*parts: int | None) -> int | None:
    """Add up the known values; None if there are none."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
