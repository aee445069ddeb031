"""Secrets taken out of text that leaves the machine: values of secret-looking variables, and well-known key shapes.

Every character of a secret becomes `*` and line ends stay, so lengths and lines are what they were.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache

from teamchat.core.text.key_shapes import INSIDE, SHAPES
from teamchat.runners.environment import SECRET_NAME

SHORTEST = 6  # characters; a shorter value ("1", "true") is no secret and stands everywhere

# A word begins too behind a line end as JSON writes it, and behind a colour. Each has a sign that no key has, or a run
# of letters would be looked at again from each of its `0m`.
_BEFORE_A_WORD = (r"\\[nrt]", r"\[m", *(rf"[\[;]{digits}m" for digits in (r"\d", r"\d\d", r"\d\d\d")))


@cache  # compiled when it is first met
def _word(start: str, rest: str) -> re.Pattern[str]:
    """`start` at the beginning of a word. A pattern that begins with plain text is looked for fast."""
    plain = re.escape(start)
    behind = "|".join(rf"(?<={before}{plain})" for before in _BEFORE_A_WORD)
    alone = rf"(?:(?<!\w{plain})|{behind})" if start[0].isalnum() else ""
    return re.compile(plain + alone + rest)


_compiled = cache(re.compile)
_NOT_LINE_ENDS = re.compile(r"(\\+[nr])|[^\r\n]")


def redact_shapes(text: str) -> tuple[str, int]:
    """`text` with every well-known key replaced by as many `*`, and how many there were."""
    count = 0
    for start, rest in SHAPES:
        if start in text:
            text, found = _word(start, rest).subn(_stars, text)
            count += found
    for held, whole in INSIDE:
        if _compiled(held).search(text):
            text, found = _compiled(whole).subn(_stars, text)
            count += found
    return text, count


class Redactor:
    """Knows the secrets of one environment."""

    def __init__(self, env: Mapping[str, str]) -> None:
        secret = (value for name, value in env.items() if SECRET_NAME.search(name))
        values = {value for value in secret if len(value) >= SHORTEST and not value.isspace()}
        # in the JSON that agents print a value may be escaped
        forms = {form for value in values for form in (value, *_escaped(value))}
        longest_first = sorted(forms, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        """`text` with every secret replaced by as many `*`."""
        if self._values:
            text = self._values.sub(_stars, text)
        return redact_shapes(text)[0]


def _escaped(value: str) -> tuple[str, str]:
    return json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]


def _stars(found: re.Match[str]) -> str:
    whole = found[0]
    if "value" in found.re.groupindex:
        before, _, after = whole.rpartition(found["value"])
        return before + "*" * len(found["value"]) + after
    if whole.startswith("-----BEGIN "):  # in JSON its line ends are escaped, and stay too
        return _NOT_LINE_ENDS.sub(lambda part: part[1] or "*", whole)
    return "*" * len(whole) if whole.isprintable() else re.sub(r"[^\r\n]", "*", whole)
