"""Secrets taken out of text that leaves the machine: values of secret-looking variables, and well-known key shapes.

Every character of a secret becomes `*` and line ends stay, so lengths and lines are what they were.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
SHORTEST = 6  # characters; a shorter value ("1", "true") is no secret and stands everywhere
BASE64 = r"[A-Za-z0-9+/=]"
URL_SAFE = r"[A-Za-z0-9_-]"
SPACE = r"(?:\s|\\+[nrt])"  # also as JSON has it
PRIVATE_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
TO_ITS_END = rf"(?:(?!-----)[\w\s+/=\\:,.()@<>-])*+-----END {PRIVATE_KEY}"
SHAPES: tuple[tuple[str, str], ...] = (
    ("sk-", rf"(?=[a-z_-]{{0,40}}[A-Z0-9]){URL_SAFE}{{16,}}"),  # Anthropic, OpenAI, OpenRouter, DeepSeek; no CSS class
    ("AIza", rf"{URL_SAFE}{{30,}}"),  # Google, with the next two
    ("GOCSPX-", rf"{URL_SAFE}{{20,}}"),
    ("ya29.", rf"{URL_SAFE}{{30,}}"),
    *((f"gh{kind}_", r"[A-Za-z0-9]{30,}") for kind in "pousr"),  # GitHub
    ("github_pat_", r"[A-Za-z0-9_]{30,}"),
    *((start, rf"{URL_SAFE}{{18,}}") for start in ("glpat-", "glrt-", "gldt-", "glptt-")),  # GitLab
    *((f"xox{kind}-", r"[A-Za-z0-9-]{10,}") for kind in "abeoprs"),  # Slack, with the next two
    ("xapp-", r"[0-9]-[A-Za-z0-9-]{16,}"),
    ("hooks.slack.com/services/", r"[A-Za-z0-9/]{20,}"),
    ("AKIA", r"[A-Z0-9]{16}\b"),  # AWS
    ("ASIA", r"[A-Z0-9]{16}\b"),
    *(
        (name, rf"[\\\"' ]{{0,4}}[=:][\\\"' ]{{0,4}}(?P<value>{BASE64}{{40}})(?!{BASE64})")
        for name in ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey")
    ),
    ("AccountKey=", rf"(?P<value>{BASE64}{{60,}})"),  # Azure
    ("hf_", r"[A-Za-z0-9]{30,}"),  # Hugging Face
    ("npm_", r"[A-Za-z0-9]{36}"),
    ("pypi-", rf"{URL_SAFE}{{50,}}"),
    ("dckr_pat_", rf"{URL_SAFE}{{20,}}"),  # Docker
    ("sk_live_", r"[A-Za-z0-9]{16,}"),  # Stripe, with the next two
    ("rk_live_", r"[A-Za-z0-9]{16,}"),
    ("whsec_", r"[A-Za-z0-9+/]{24,}"),
    ("SG.", rf"{URL_SAFE}{{22}}\.{URL_SAFE}{{43}}"),  # SendGrid
    ("gsk_", r"[A-Za-z0-9]{40,}"),  # Groq
    ("xai-", r"[A-Za-z0-9]{40,}"),
    ("dop_v1_", r"[a-f0-9]{64}"),  # DigitalOcean
    ("AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}"),
    # JSON web tokens: a run of letters is looked at from its beginning only
    ("ey", rf"(?<!-ey){URL_SAFE}{{10,}}+\.ey{URL_SAFE}{{10,}}+\.{URL_SAFE}{{10,}}"),
    # with its end, else what looks like more of it
    (
        "-----BEGIN ",
        rf"{PRIVATE_KEY}(?:{TO_ITS_END}|(?:{SPACE}*+{BASE64}{{20,}}+)*+(?:{SPACE}*+{BASE64}++\Z)?)",
    ),
    # user:password in an address, but for a template's placeholders
    ("://", r"(?P<value>(?!\$?[{(<])[^/\s:@\"'\\]++:(?!\$?[{(<])[^/\s@\"'\\]++)(?=@)"),
)
"""How well-known keys begin and go on. `value` is the secret where that is less than the whole.

Each is found by its beginning, as plain text; what follows is bounded, or read once: the cost is linear.
"""

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


_NOT_LINE_ENDS = re.compile(r"(\\+[nr])|[^\r\n]")


def redact_shapes(text: str) -> tuple[str, int]:
    """`text` with every well-known key replaced by as many `*`, and how many there were."""
    count = 0
    for start, rest in SHAPES:
        if start in text:
            text, found = _word(start, rest).subn(_stars, text)
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
