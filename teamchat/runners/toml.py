"""TOML that others wrote: `tomllib`, but for what would take it minutes.

A key of n parts, such as `a.b.c`, takes it the square of n, and a line of 200 KB never seems to end. So deep keys are
looked for first, in one pass.

`in_toml` writes what Codex and Gemini are told.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence

# What is in a string or a comment is no key. One that does not end reaches to the end of its line, or of the text.
_QUOTED = re.compile(
    r'"""(?:[^\\"]|\\.|"(?!""))*+(?:"""|\Z)|'
    r"'''(?:[^']|'(?!''))*+(?:'''|\Z)|"
    r'"(?:[^"\\\n]|\\[^\n])*+"?|'
    r"'[^'\n]*+'?|#[^\n]*+",
    re.DOTALL,
)
_PART = r"(?:[\w-]++|'')[ \t]*+"


class TooDeep(ValueError):
    """Keys of more parts, or lists and tables deeper in one another, than anybody writes."""


def loads(text: str, deepest: int) -> dict[str, object]:
    """The tables of a TOML text whose keys have up to `deepest` parts. Raises `ValueError`."""
    if re.search(rf"(?<![\w-])(?:{_PART}\.[ \t]*+){{{deepest}}}", _QUOTED.sub("''", text)):
        raise TooDeep(f"a key of more than {deepest} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TooDeep("lists or tables too deep in one another") from None


def in_toml(value: str | Sequence[str]) -> str:
    """A string or a list of strings. JSON writes them as TOML does, but for DEL, which TOML has only escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
