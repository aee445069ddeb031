"""Secrets taken out of text that leaves the machine: values of secret-looking variables, and well-known key shapes.

Every character of a secret becomes `*` and line ends stay, so lengths and lines are what they were.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
SHORTEST = 6  # characters; a shorter value ("1", "true") is no secret and stands everywhere
SHAPES = re.compile(
    r"""
    \b sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{16,}                 # Anthropic, OpenAI, OpenRouter
    | \b AIza[A-Za-z0-9_-]{30,}                                 # Google
    | \b (?:gh[pousr]_[A-Za-z0-9]{30,} | github_pat_[A-Za-z0-9_]{30,} | glpat-[A-Za-z0-9_-]{18,})
    | \b xox[abeoprs]-[A-Za-z0-9-]{10,}                         # Slack
    | \b (?:AKIA|ASIA)[A-Z0-9]{16} \b                           # AWS
    | \b hf_[A-Za-z0-9]{30,}                                    # Hugging Face
    | \b npm_[A-Za-z0-9]{36} | \b pypi-[A-Za-z0-9_-]{50,}
    | \b [rs]k_live_[A-Za-z0-9]{16,}                            # Stripe
    | \b ey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}   # JSON web tokens
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    | (?<=://)[^/\s:@"'\\]+:[^/\s@"'\\]+(?=@)                   # user:password in an address
    """,
    re.VERBOSE | re.DOTALL,
)


class Redactor:
    """Knows the secrets of one environment."""

    def __init__(self, env: Mapping[str, str]) -> None:
        values = {value for name, value in env.items() if SECRET_NAME.search(name) and len(value) >= SHORTEST}
        # in the JSON that agents print a value may be escaped
        forms = {form for value in values for form in (value, *_escaped(value))}
        longest_first = sorted(forms, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        """`text` with every secret replaced by as many `*`."""
        if self._values:
            text = self._values.sub(_stars, text)
        return SHAPES.sub(_stars, text)


def _escaped(value: str) -> tuple[str, str]:
    return json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]


def _stars(found: re.Match[str]) -> str:
    return re.sub(r"[^\r\n]", "*", found[0])
