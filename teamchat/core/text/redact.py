"""Removes secrets from text that leaves the machine: values of secret-looking variables and well-known key shapes.

Every character of a secret becomes `*` and line ends stay, so lengths and lines are what they were.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

from teamchat.core.text.key_shapes import ADDRESSES, INSIDE, OPEN_PRIVATE_KEYS, PRIVATE_KEYS, RUN, SHAPES, SHORTEST_RUN
from teamchat.patterns import regex
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
_RUN = regex(rf"{RUN}{{{SHORTEST_RUN},}}+")
_NOT_LINE_ENDS = regex(r"(\\++[nr])|[^\r\n\\]++|\\++")
_PIECE = 64 * 1024  # characters that one call searches: Ctrl-C waits for it
_LONGEST = 16 * 1024  # characters of a key
_BREAK = regex(r"\s(?:(?<! )|(?<=\w )(?=\w))")  # no key but a private one goes on behind it
_HELD = regex("|".join(held for held, _ in INSIDE))
_BY_SIGN: defaultdict[str, list[tuple[int, tuple[str, str]]]] = defaultdict(list)
"""The numbered shapes by the first sign in their beginnings, or none: a word without the sign begins none of them."""
for numbered in enumerate(SHAPES):
    _BY_SIGN[next(filter("_-.:/=".__contains__, numbered[1][0]), "")].append(numbered)
_STARS = regex(r"\**+")


def redact_shapes(text: str) -> tuple[str, int]:
    """`text` with every well-known key replaced by as many `*`, and how many there were."""
    if len(text) <= _PIECE and not _may_hold_a_key(text):
        return text, 0
    # private keys alone have many lines, in which there may be what looks like another key
    text, whole = _without(PRIVATE_KEYS, text, text)
    pieces = [_redacted(piece) for piece in _pieces(text)]
    text = "".join([piece for piece, _ in pieces])
    text, begun = _without(OPEN_PRIVATE_KEYS, text, text)
    return text, whole + sum(found for _, found in pieces) + begun


def _may_hold_a_key(text: str) -> bool:
    """False for most messages, whose words are short. A prompt may quote thousands of them."""
    return "@" in text or "-----" in text or max(map(len, text.split()), default=0) >= SHORTEST_RUN


def _pieces(text: str) -> Iterator[str]:
    begin = 0
    while len(text) - begin > 2 * _PIECE:
        found = _BREAK.search(text, begin + _PIECE, begin + 2 * _PIECE)
        end = found.end() if found else _behind_key(text, begin + 2 * _PIECE)
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _behind_key(text: str, at: int) -> int:
    """`at`, or where the key ends that lies across it."""
    begin = max(at - _LONGEST, 0)
    found = _STARS.match(_redacted(text[begin : at + _LONGEST])[0], at - begin)
    return begin + found.end() if found else at


def _redacted(piece: str) -> tuple[str, int]:
    count = 0
    # prose has few: a hundred beginnings are looked for in little text, and splitting costs less than searching
    words = "\n".join([word for word in piece.split() if len(word) >= SHORTEST_RUN])
    runs = "\n".join(_RUN.findall(words))
    begun = _begun(runs)
    for shape in (*begun, ADDRESSES) if "@" in piece else begun:
        piece, found = _without(shape, piece, piece)
        count += found
    for held, whole in INSIDE if _HELD.search(runs) else ():
        if _compiled(held).search(runs):
            piece, found = _compiled(whole).subn(_stars, piece)
            count += found
    return piece, count


def _begun(runs: str) -> list[tuple[str, str]]:
    """The shapes whose beginnings are in there, in their order."""
    signed = [shape for sign, shapes in _BY_SIGN.items() if sign in runs for shape in shapes if shape[1][0] in runs]
    return [shape for _, shape in sorted(signed)]


def _without(shape: tuple[str, str], text: str, within: str) -> tuple[str, int]:
    """`text` without the keys of that shape, where `within` has the beginning of one."""
    return _word(*shape).subn(_stars, text) if shape[0] in within else (text, 0)


class Redactor:
    """Removes the secrets of one environment."""

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
        return _NOT_LINE_ENDS.sub(lambda part: part[1] or "*" * len(part[0]), whole)
    return "*" * len(whole) if whole.isprintable() else re.sub(r"[^\r\n]", "*", whole)
