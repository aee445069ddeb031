"""Reads TOML of others with `tomllib`, except for text that would take it minutes.

`tomllib` takes quadratic time for a key of n parts, such as `a.b.c`: a line of 200 KB never seems to end. So deep keys
are found first, in one pass. `in_toml` writes values for Codex and Gemini.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from teamchat.patterns import regex

# Text in a string or a comment is not a key. An open one reaches to the end of its line, or of the text.
_QUOTED = regex(
    r'"""(?:[^\\"]|\\.|"(?!""))*+(?:"""|\Z)|'
    r"'''(?:[^']|'(?!''))*+(?:'''|\Z)|"
    r'"(?:[^"\\\n]|\\[^\n])*+"?|'
    r"'[^'\n]*+'?|#[^\n]*+",
    re.DOTALL,
)
_PART = r"(?:[\w-]++|'')[ \t]*+"


class TooDeep(ValueError):
    """Keys with more parts, or lists and tables nested deeper, than anybody writes."""


def loads(text: str, deepest: int) -> dict[str, object]:
    """Read the tables of a TOML text whose keys have up to `deepest` parts. Raises `ValueError`."""
    import tomllib  # most commands read none

    if text.count(".") >= deepest and _has_key_of_more(deepest, text):  # a pattern takes a while to be compiled
        raise TooDeep(f"a key of more than {deepest} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TooDeep("lists or tables too deep in one another") from None


def _has_key_of_more(parts: int, text: str) -> bool:
    return re.search(rf"(?<![\w-])(?:{_PART}\.[ \t]*+){{{parts}}}", _QUOTED.sub("''", text)) is not None


def in_toml(value: str | Sequence[str]) -> str:
    """Write a string or a list of strings. JSON writes them as TOML does, except DEL, which TOML requires escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
