"""Secrets in the words of a command: any value behind a name like `--api-key`, whatever the value looks like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from teamchat.core.text.redact import SHORTEST, redact_shapes
from teamchat.patterns import regex
from teamchat.runners.environment import HIDDEN

_NAME = r"(?:key|token|secret|passw(?:or)?d|passphrase|pass|pwd|credentials?|auth|authorization|bearer|cookie)"
_OPTION = regex(rf"--?[\w.-]*{_NAME}", re.IGNORECASE)
_PAIR = regex(
    rf"{_NAME}[\\\"']*\s*[=:]\s*[\\\"']*(?:(?:Bearer|Basic|Token)\s+)?([^\s\"',;}}\\]{{{SHORTEST},}})", re.IGNORECASE
)
_QUOTED = regex(rf"{_NAME}\\*[\"']\s*:\s*\\*[\"']([^\"'\\]{{{SHORTEST},}})", re.IGNORECASE)
_HEADER = regex(r"[\w-]+:\s")
_VARIABLE = regex(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


def secrets_in(words: Iterable[str]) -> Iterator[str]:
    """List the values in a command that its own words call secret: `--token X`, `KEY=X`, `Authorization: Bearer X`."""
    for before, word in pairwise(("", *words)):
        in_script = " " in word.strip() and not _HEADER.match(word)
        named = ":" in word or "=" in word
        values = (
            [value for value in _PAIR.findall(word) if not in_script or re.search(r"[0-9]", value)] if named else []
        )
        values += _QUOTED.findall(word) if ":" in word else []
        if before.startswith("-") and _OPTION.fullmatch(before) and not word.startswith("-"):
            values.append(word)
        yield from (value for value in values if len(value) >= SHORTEST and not _is_no_secret(value))


def _is_no_secret(value: str) -> bool:
    """Whether it names the place of the secret (a variable), or is a number or a switch."""
    return value.startswith("$") or bool(_VARIABLE.fullmatch(value)) or not re.search(r"[^0-9.,]", value)


def masked(argv: Iterable[str], secrets: Iterable[str]) -> tuple[str, ...]:
    """Hide these secrets in the words, and well-known keys."""
    longest_first = sorted(set(secrets), key=len, reverse=True)
    hidden = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
    return tuple(redact_shapes(hidden.sub(HIDDEN, word) if hidden else word)[0] for word in argv)
