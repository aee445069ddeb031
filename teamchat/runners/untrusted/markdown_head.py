"""The head of a Markdown file of Claude's (a command, a skill, a subagent), reduced to keys that run nothing.

Claude reads the head as YAML, which may contain hooks, servers and permissions. It is rewritten from lines of one
simple form, so that no other reading of YAML can find anything else in it. Any other form is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from teamchat.patterns import regex

HARMLESS = frozenset(
    {"name", "description", "argument-hint", "arguments", "when_to_use", "when-to-use", "version", "license", "author"}
    | {"model", "effort", "color", "tools", "disallowedTools", "disallowed-tools", "maxTurns", "skills"}
    | {"user-invocable", "disable-model-invocation"}
)
FENCE = "---"
_KEY = regex(r"([A-Za-z][\w-]*):(?:[ \t].*)?", re.ASCII)
_OTHER_LINE_ENDS = regex("[\r\0\x0b\x0c\x85\u2028\u2029]")


def harmless(text: str) -> str | None:
    """Rewrite the file with a head of harmless keys; None if its head does not have the simple form."""
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
    """Keep the lines of harmless keys. Raises `ValueError` for a line that neither begins a key nor belongs to one."""
    keep = None
    for line in lines:
        if line[:1] in {" ", "\t"} or not line or line.startswith("- "):
            if keep is None:
                raise ValueError("no key above it")
        elif match := _KEY.fullmatch(line):
            keep = match[1] in HARMLESS
        elif not line.startswith("#"):
            raise ValueError("no key")
        if keep:
            yield line
