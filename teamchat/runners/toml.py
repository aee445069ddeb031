"""Reads TOML of others with `tomllib`, except for text that would take it minutes.

`tomllib` takes quadratic time for a key of n parts, such as `a.b.c`: a line of 200 KB never seems to end. So deep keys
are found first, in one pass. `in_toml` writes values for Codex and Gemini.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from teamchat.patterns import regex

# What is in a string or a comment is no key. One that does not end reaches to the end of its line, or of the text.
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
    """The tables of a TOML text whose keys have up to `deepest` parts. Raises `ValueError`."""
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
    """A string or a list of strings. JSON writes them as TOML does, except DEL, which TOML requires escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# The head of a Markdown file of Claude's (a command, a skill, a subagent), reduced to keys that run nothing.
#
# Claude reads the head as YAML, which may contain hooks, servers and permissions. It is rewritten from lines of one
# simple form, so that no other reading of YAML can find anything else in it. Any other form is refused.

HARMLESS = frozenset(
    {"name", "description", "argument-hint", "arguments", "when_to_use", "when-to-use", "version", "license", "author"}
    | {"model", "effort", "color", "tools", "disallowedTools", "disallowed-tools", "maxTurns", "skills"}
    | {"user-invocable", "disable-model-invocation"}
)
FENCE = "---"
_KEY = regex(r"([A-Za-z][\w-]*):(?:[ \t].*)?", re.ASCII)
_OTHER_LINE_ENDS = regex("[\r\0\x0b\x0c\x85\u2028\u2029]")


def harmless(text: str) -> str | None:
    """The file with a head of harmless keys; None if its head does not have the simple form."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.lstrip().startswith(FENCE):
        return _file([], text)
    head, ends, body = text.removeprefix(f"{FENCE}\n").partition(f"\n{FENCE}\n")
    if not (text.startswith(f"{FENCE}\n") and ends) or _OTHER_LINE_ENDS.search(head):
        return None
    try:
        return _file(list(_kept(head.split("\n"))), body)
    except ValueError:
        return None


def _file(head: list[str], body: str) -> str:
    # with an empty head Claude reads the second fence as text (2.1.330)
    return "\n".join((FENCE, *(head or [""]), FENCE, body))


def _kept(lines: list[str]) -> Iterator[str]:
    """The lines of harmless keys. Raises `ValueError` for a line that neither begins a key nor is indented in one."""
    keep = None
    for line in lines:
        if line[:1] in {" ", "\t"} or not line or line.startswith("- "):
            if keep is None:
                raise ValueError("no key above it")
        elif found := _KEY.fullmatch(line):
            keep = found[1] in HARMLESS
        elif not line.startswith("#"):
            raise ValueError("no key")
        if keep:
            yield line
