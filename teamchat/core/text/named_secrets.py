"""Secrets by the text before them: a header, `password=`, a variable's name, a netrc entry; whatever they look like.

Each pattern is matched against a text in lower case. Its `value` is a candidate, which `_is_one` judges: in a program a
name such as `token` also stands before many values that are not secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from teamchat.patterns import regex

SHORTEST = 6  # characters
_MOST = 4000  # characters of a value
_KEYS = (
    *("access", "account", "admin", "api", "app", "application", "auth", "client", "consumer", "crypt", "encryption"),
    *("license", "master", "private", "secret", "security", "service", "shared", "signing", "storage", "subscription"),
    *("session", "deploy", "webhook", "hmac", "jwt", "aes", "ssh"),
)
_NAMES = {  # the beginning, which is found fast, and the rest
    "pass": r"(?P<password>w(?:or)?d|phrase|code|(?<![a-z]pass))",
    "pwd": r"(?P<password>)(?<![a-z]pwd)",
    "secret": r"(?:[_-]?(?:access[_-]?)?key)?",
    "token": "",
    "credential": "s?",
    "key": rf"(?:(?<=[a-z0-9][_-]key)|{'|'.join(rf'(?<={word}key)' for word in _KEYS)})",
    "auth": r"(?<![a-z0-9]auth)",
    "hook": r"(?:[_-]?url)?",
    "dsn": "",
}
_CLOSED = r"[\\\"'`\]]{0,6}[ \t]{0,20}"
_QUOTED = rf"(?P<quote>\\{{0,4}}[\"'`])(?P<quoted>[^\"'`\r\n\\]{{{SHORTEST},{_MOST}}}+)(?P<closed>(?P=quote))?"
_BARE = rf"(?P<bare>[^\s\"'`,;(){{}}\[\]<>|\\&]{{{SHORTEST},{_MOST}}}+)"
_WORD = rf"(?P<bare>[^\s\"'`,;<>\\]{{{SHORTEST},{_MOST}}}+)"
_BESIDE = r"(?:,[ \t]{0,20}|,?\r?\n[ \t]{0,40})[\"']?value[\"']?[ \t]{0,20}:"  # between name and value in Kubernetes
_BLOCK = r"(?:[|>][-+\d]{0,2}[ \t]{0,20}\r?\n[ \t]{1,40})?"  # a block in YAML
_VALUE = (
    rf"(?:[_-]?(?:value|v?\d{{1,2}}))?(?:{_CLOSED}(?P<sign>{_BESIDE}|:=|=>|[:=]|(?=[ \t]))(?!=)[ \t]{{0,20}}{_BLOCK}"
    rf"(?:{_QUOTED}|{_BARE})"
    rf"|[^<>=\n]{{0,40}}>(?P<element>[^<>\s]{{{SHORTEST},{_MOST}}}+)</)"
)
_HEADER = rf"{_CLOSED}[:=][ \t]{{0,20}}[\\\"'`]{{0,6}}"
_SIGNED = r"(?:\\{0,4}[\"'])?(?P<bare>[\w%+/=-]{16,4000}+)"


class _Kind(Struct, frozen=True):
    """A kind of named secret: every text that has one contains `start`. `trusted`: its name leaves no doubt."""

    start: str
    pattern: re.Pattern[str]
    trusted: bool = False


def _kind(start: str, rest: str, *, trusted: bool = False) -> _Kind:
    return _Kind(start, regex(re.escape(start) + rest), trusted)


_KINDS = (
    *(_kind(start, rest + _VALUE) for start, rest in _NAMES.items()),
    _kind("authorization", rf"{_HEADER}(?P<scheme>[a-z][a-z0-9-]{{1,24}}[ \t]{{1,4}})?{_WORD}", trusted=True),
    _kind("bearer", r"(?<![a-z]bearer)[ \t]{1,4}(?P<bare>[\w.~+/=-]{16,4000}+)"),
    _kind("cookie", rf"{_HEADER}(?P<bare>[^\s=;:,(){{}}\"'`\\]{{1,80}}+=[^\r\n\"'`\\]{{4,{_MOST}}}+)"),
    _kind(
        "login",
        rf"(?<!\wlogin)\s{{1,20}}\S{{1,256}}+\s{{1,20}}(?:account\s{{1,20}}\S{{1,256}}+\s{{1,20}})?password\s{{1,20}}{_WORD}",
        trusted=True,
    ),
    *(_kind(start, rf"[ =]?[\"']?[^\s:\"'/]{{1,80}}+:{_WORD}") for start in (" -u ", "-user")),
    *(_kind(start, rf"(?<![a-z]{start}){_SIGNED}") for start in ("sig=", "response=", "cnonce=", "mac=")),
    _kind("signature=", _SIGNED),
    _kind("sshpass", rf"[ \t]{{1,20}}-p[ \t]{{0,20}}[\"']?{_WORD}", trusted=True),
    *(_kind(start, rf"[^\n|;&]{{0,200}}? -p[\"']?{_WORD}", trusted=True) for start in ("mysql", "mariadb")),
    _kind(" login ", rf"[^\n|;&]{{0,200}}?(?<= )-p[ \t]{{1,20}}[\"']?{_WORD}", trusted=True),
)
_STARTS = tuple(kind.start for kind in _KINDS)
_WIDE = regex("[Ａ-Ｚａ-ｚ]")
_NOT_ONE = regex(
    r"[$%{<\[(*]|(?:[a-z0-9_]*[$%]?[{(<])|\.{1,2}/|[/~]|[-.*x_=#]+\Z|https?:|file:|\S*\.\.\.|\S*\*\*\*|--"
    r"|(?:your|my|the|some|any|example|dummy|fake|test|change|place|redacted|hidden|insert|enter|replace)[ _-]?\S*"
    r"(?:key|token|secret|pass|word|here|me|holder|value)\S*\Z"
    r"|(?:none|null|true|false|undefined|required|optional|string|bytes|default|empty|missing|invalid|self|hidden)\b",
    re.IGNORECASE,
)
_PAIR = regex(r"[a-z_]+=|[A-Z][a-z]+=(?!=*\Z)")
_NUMBER = regex(r"[\d.,:_/x-]+\Z")
_WORDS = regex(r"[A-Za-z]+(?:[_. :/-]+[A-Za-z]+)*[.:?!]?\Z")
_IDENTIFIER = regex(
    r"[A-Za-z_][A-Za-z_]*\d{0,2}\Z|(?:[A-Za-z_]+\d{0,2}\.)+[A-Za-z_]+\d{0,2}\Z|\w+[-.]\d+\Z|[a-z_]+\d?(?:_[a-z]+\d?)+\Z"
)
_VARIABLE = regex(r"[A-Z][A-Z0-9_]*\Z")
_ENVIRONMENT = regex(r"(?:[A-Z0-9]+_)*[A-Z0-9]+\Z")
_SIGNS = regex(r"[!@#^&*+=?~$%]")
_MIXED = regex(r"(?=.*[a-z])(?=.*[A-Z]).*[A-Z].*[a-z].*[A-Z]|(?=.*[A-Z]).*[a-z][A-Z]{2}")


def may_name_a_secret(text: str) -> bool:
    """Whether the text may name a secret: False for most texts. Full-width letters count as such a name."""
    lowered = text.lower()
    return any(start in lowered for start in _STARTS) or (not text.isascii() and bool(_WIDE.search(text)))


def named_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Find the values that are secrets by the text before them."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose small form has two characters
        lowered = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    for kind in _KINDS:
        if kind.start in lowered:
            for match in kind.pattern.finditer(lowered):
                if span := _span(text, match, kind):
                    yield span


def _span(text: str, found: re.Match[str], kind: _Kind) -> tuple[int, int] | None:
    groups = found.groupdict()
    if groups.get("element"):
        begin, end = found.span("element")
        is_one = _is_quoted(text[begin:end], password="password" in groups)
    elif groups.get("sign") == "" and text[_name_begin(text, found.start(), "-")] != "-":
        return None  # words of a sentence
    elif groups.get("quoted") is None:
        begin, end = found.span("bare")
        is_one = _is_bare(text, found, begin, end, kind)
    else:
        begin, end = found.span("quoted")
        if groups["closed"] is None:  # cut off, or an apostrophe
            end = begin + len(text[begin:end].split(maxsplit=1)[0]) if text[begin] > " " else begin
        is_one = end - begin >= SHORTEST and _is_quoted(text[begin:end], password="password" in groups)
    return (begin, end) if is_one else None


def _is_quoted(value: str, *, password: bool) -> bool:
    if _NOT_ONE.match(value) or value.count(" ") > (3 if password else 0) or value.startswith(" "):
        return False
    if _NUMBER.match(value):
        return password and value.isdigit()
    digit = re.search(r"\d", value)
    if " " in value:
        return bool(digit and not re.search(r"[%{]", value))
    if _WORDS.match(value):
        return bool(len(value) >= 12 and value.isalpha() and _MIXED.match(value))
    if password:
        return bool(digit or _SIGNS.search(value))
    return bool(
        (digit or (_SIGNS.search(value) and len(value) > 12)) and not _IDENTIFIER.match(value) and len(value) >= 8
    )


def _is_bare(text: str, found: re.Match[str], begin: int, end: int, kind: _Kind) -> bool:
    value, behind = text[begin:end].rstrip(".:"), text[end : end + 1]
    groups = found.groupdict()
    if len(value) < SHORTEST or _NOT_ONE.match(value):
        return False
    if kind.trusted:
        return not _PAIR.match(value) and bool(
            groups.get("scheme") or re.search(r"[\d+/=]", value) or _MIXED.match(value) or kind.start == "login"
        )
    digit = re.search(r"\d", value)
    if kind.start == "cookie":
        return bool(digit or _MIXED.match(value))
    if behind in {"(", "[", "{"} or (_VARIABLE.match(value) and not digit):
        return False
    name, sign = text[_name_begin(text, found.start()) : found.start()], groups.get("sign")
    stem = text[found.start() : found.start("sign")] if sign else ""
    if sign == "=" and stem and _ENVIRONMENT.match(name + stem) and text[begin - 1] == "=":
        return not _NUMBER.match(value) and not _IDENTIFIER_PATH.match(value)
    if _NUMBER.match(value):
        return False
    if "password" in groups:
        return _is_bare_password(text, value, begin, behind, sign)
    return bool(digit and re.search(r"[A-Za-z]", value) and len(value) >= 8 and not _IDENTIFIER.match(value))


_IDENTIFIER_PATH = regex(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")
_LONGEST_NAME = 60


def _name_begin(text: str, end: int, signs: str = "") -> int:
    begin = end
    while begin and end - begin < _LONGEST_NAME and (text[begin - 1].isalnum() or text[begin - 1] in f"_{signs}"):
        begin -= 1
    return begin


def _is_bare_password(text: str, value: str, begin: int, behind: str, sign: str | None) -> bool:
    if _IDENTIFIER_PATH.match(value) or re.match(r"\w+=", value):
        return False
    if re.search(r"\d", value) or (_SIGNS.search(value) and re.search(r"[A-Za-z]", value)):
        return True
    # letters alone are a variable in a program
    return (
        sign == "="
        and text[begin - 1] == "="
        and len(value) >= 8
        and behind in {"", "&", ";", "\n", "\r", " "}
        and not re.search(r"pass|pwd|secret|word", value, re.IGNORECASE)
    )
