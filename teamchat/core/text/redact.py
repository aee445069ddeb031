"""Removes secrets from text that leaves the machine, also where they are disguised.

Secrets are values of secret-looking variables, keys by their shapes, and values whose name calls them a secret. Every
character of a secret becomes `*` and line ends stay, so lengths and lines do not change.
"""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from urllib.parse import quote

from teamchat.core.text.disguises import SEEN, Shape, Span, View, as_seen, encoded, view, wrapped
from teamchat.core.text.key_shapes import (
    ADDRESSES,
    GLUED,
    INSIDE,
    OPEN_PRIVATE_KEYS,
    PRIVATE_KEYS,
    RUN,
    SHAPES,
    SHORTEST_RUN,
)
from teamchat.core.text.named_secrets import may_name_a_secret, named_secrets
from teamchat.patterns import regex
from teamchat.runners.environment import SECRET_NAME, password_in

SHORTEST = 6  # characters; a shorter value ("1", "true") is no secret and stands everywhere

# A word begins too behind a line end as JSON writes it, and behind a colour. Each has a sign that no key has, or a run
# of letters would be looked at again from each of its `0m`.
_BEFORE_A_WORD = (r"\\[nrt]", r"\[m", *(rf"[\[;]{digits}m" for digits in (r"\d", r"\d\d", r"\d\d\d")))


@cache  # compiled when it is first met
def _word(start: str, rest: str) -> re.Pattern[str]:
    """Compile `start` at the beginning of a word, or anywhere if no word has it.

    A pattern that begins with plain text is fast to search.
    """
    plain = re.escape(start)
    behind = "|".join(rf"(?<={before}{plain})" for before in _BEFORE_A_WORD)
    alone = rf"(?:(?<!\w{plain})|{behind})" if start[0].isalnum() and not _unlike_words(start, rest) else ""
    return re.compile(plain + alone + rest)


def _unlike_words(start: str, rest: str) -> bool:
    """Whether no word has `start` in it with such a `rest`: letters may be glued to it."""
    return start in GLUED or (len(start) > 3 and not start.isalpha() and not rest.endswith(r"\b"))


@cache
def _in_another_case(start: str, rest: str) -> re.Pattern[str]:
    """Compile a shape for letters of any case. A match has at least one digit."""
    return re.compile(rf"{re.escape(start)}(?=[\w.-]{{0,60}}?[0-9]){rest}", re.IGNORECASE)


_compiled = cache(re.compile)
_RUN = regex(rf"{RUN}{{{SHORTEST_RUN},}}+")
_SPACED_HEX = regex(r"(?:(?:0x)?[2-7][0-9a-fA-F]{1,3},? ){5}")  # hexadecimal digits in short words
_NOT_LINE_ENDS = regex(r"(\\++[nr]|[\r\n]++)|[^\r\n\\]++|\\++")
_HELD = regex("|".join(held for held, _ in INSIDE))
_BY_SIGN: defaultdict[str, list[tuple[int, tuple[str, str], str]]] = defaultdict(list)
"""The numbered shapes by the first sign in their beginnings, or none: a word without the sign begins none of them.

Each with its beginning in small letters, if that can be told from words.
"""
for order, given in enumerate(SHAPES):
    in_small = given[0].lower() if _unlike_words(*given) and len(given[0]) > 3 else ""
    _BY_SIGN[next(filter("_-.:/=".__contains__, given[0]), "")].append((order, given, in_small))
_SOME_STARS = regex(r"\*++")


def redact_shapes(text: str) -> tuple[str, int]:
    """Replace every secret in `text` by as many `*`, and count them.

    The text as a reader sees it is searched first, then the text as written: a key may begin right behind a colour.
    """
    text, seen = _without_seen(text, lambda shown: _redact_written(shown)[0])
    text, written = _redact_written(text)
    return text, seen + written


def _without_seen(text: str, redact: Callable[[str], str]) -> tuple[str, int]:
    """Remove the secrets that `redact`, which keeps lengths, finds in `text` as readers see it; count them."""
    count, known = 0, list[str]()
    for unseen in SEEN:
        shown = as_seen(text, unseen)
        if shown is None or shown.text in known:
            continue
        clean = redact(shown.text)
        known.append(clean)
        if clean != shown.text:
            text, removed = _with_stars(text, shown, clean)
            count += removed
    return text, count


def _with_stars(text: str, shown: View, clean: str) -> tuple[str, int]:
    """Put stars into `text` where `clean` has them and `shown` has none, and count these places."""
    parts, place, count = list[str](), 0, 0
    for stars in _SOME_STARS.finditer(clean):
        begin, end = shown.original(stars.span())
        if shown.text[stars.start() : stars.end()] != stars[0]:
            parts += [text[place:begin], _stars_for(text[begin:end])]
            place, count = end, count + 1
    return "".join([*parts, text[place:]]), count


def _redact_written(text: str) -> tuple[str, int]:
    if not _may_hold_a_secret(text):
        return text, 0
    # private keys alone have many lines, and parts of them may look like another key
    whole = 0
    for shape in PRIVATE_KEYS:
        text, count = _without(shape, text)
        whole += count
    spans = _merged(_secrets(text))
    parts, place = list[str](), 0
    for begin, end in spans:
        parts += [text[place:begin], _stars_for(text[begin:end])]
        place = end
    text, keys = "".join([*parts, text[place:]]), len(spans)
    text, begun = _without(OPEN_PRIVATE_KEYS, text)
    return text, whole + keys + begun


def _may_hold_a_secret(text: str) -> bool:
    """Whether the text may hold a secret: False for most messages, whose words are short.

    A prompt may quote thousands of messages.
    """
    if "@" in text or "-----" in text or may_name_a_secret(text) or _SPACED_HEX.search(text):
        return True
    return max(map(len, text.split()), default=0) >= SHORTEST_RUN


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Sort the spans, and join spans that overlap or touch."""
    merged = list[Span]()
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged


def _secrets(piece: str) -> Iterator[Span]:
    seen = view(piece)
    begun = _begun_in(seen.text)
    yield from map(seen.original, _plain(seen.text, begun))
    yield from map(seen.original, wrapped(seen.text, begun))
    yield from map(seen.original, encoded(seen.text, lambda text: _plain(text, _begun_in(text))))


def _plain(text: str, begun: list[Shape]) -> Iterator[Span]:
    """Find secrets that are not disguised."""
    patterns = [pattern for _, pattern in begun]
    if "@" in text:
        patterns.append(_word(*ADDRESSES))
    if _HELD.search(text):
        patterns += [_compiled(whole) for held, whole in INSIDE if _compiled(held).search(text)]
    for pattern in patterns:
        group = "value" if "value" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            yield match.span(group)
    yield from named_secrets(text)


def _begun_in(text: str) -> list[Shape]:
    """List the shapes whose beginnings are in the text, in their order; those in letters of another case at the end."""
    # prose has few: a hundred beginnings are looked for in little text, and splitting costs less than searching
    runs = "\n".join(_RUN.findall("\n".join([word for word in text.split() if len(word) >= SHORTEST_RUN])))
    lowered, begun, others = runs.lower(), list[tuple[int, Shape]](), list[Shape]()
    for sign, shapes in _BY_SIGN.items():
        for number, (start, rest), small in shapes if sign in runs else ():
            if start in runs:
                begun.append((number, (start, _word(start, rest))))
            elif small and small in lowered:
                others.append((start, _in_another_case(start, rest)))
    return [shape for _, shape in sorted(begun, key=itemgetter(0))] + others


def _without(shape: tuple[str, str], text: str) -> tuple[str, int]:
    """Replace the keys of that shape in `text` by stars, and count them."""
    return _word(*shape).subn(lambda found: _stars_for(found[0]), text) if shape[0] in text else (text, 0)


class Redactor:
    """Removes the secrets of one environment."""

    def __init__(self, env: Mapping[str, str]) -> None:
        secret = [value if SECRET_NAME.search(name) else password_in(value) for name, value in env.items()]
        secret += [password_in(value) for name, value in env.items() if SECRET_NAME.search(name)]
        values = {value for value in secret if len(value) >= SHORTEST and not value.isspace()}
        forms = {form for value in values for form in (value, *_written(value))}
        longest_first = sorted(forms, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        """Replace every secret in `text` by as many `*`."""
        if self._values:
            text = self._without_values(_without_seen(text, self._without_values)[0])
        return redact_shapes(text)[0]

    def _without_values(self, text: str) -> str:
        if not self._values:
            return text
        return self._values.sub(lambda found: re.sub(r"[^\r\n]", "*", found[0]), text)


def _written(value: str) -> Iterator[str]:
    """List the forms of the value in JSON, an address, base64 and hexadecimal digits."""
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe=""))
    data = value.encode(errors="surrogateescape")
    yield data.hex()
    for before in range(3):  # what stands before it shifts its digits
        digits = base64.b64encode(b"\0" * before + data).decode()
        within = digits[(0, 2, 3)[before] : len(digits) - (0, 3, 2)[(before + len(data)) % 3]]
        yield from {within, within.replace("+", "-").replace("/", "_")} if len(within) >= SHORTEST else ()


def _stars_for(secret: str) -> str:
    """Replace each character of the secret by a star. Line ends stay, also as JSON has them."""
    if secret.isprintable() and "\\" not in secret:
        return "*" * len(secret)
    return _NOT_LINE_ENDS.sub(lambda part: part[1] or "*" * len(part[0]), secret)
