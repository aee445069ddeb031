"""Ways to hide a secret from a pattern: other ways to write its letters, line ends within it, and encodings."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate

from msgspec import Struct

from teamchat.core.text.clean import SEQUENCE
from teamchat.core.text.invisible import INVISIBLE, TURNS
from teamchat.patterns import regex

Span = tuple[int, int]
Spans = Callable[[str], Iterator[Span]]

_FULL_WIDTH = regex("[０-９Ａ-Ｚａ-ｚ：＝][！-～]*")
_TO_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_ENTITY = (
    r"&(?:#(?:[xX]0{0,4}[2-7][0-9A-Fa-f]|0{0,4}(?:3[3-9]|[4-9][0-9]|1[01][0-9]|12[0-6]))"
    r"|quot|amp|apos|lowbar|hyphen);"
)
_ESCAPED = (
    r"[%\\](?:(?<=%)[2-7][0-9A-Fa-f]|(?<=\\)(?<!\\\\)\\{0,3}(?:(?:u00|x)[2-7][0-9A-Fa-f]|/))"
    rf"|{_ENTITY}"
)
_WRITTEN_IN_ASCII, _WRITTEN = regex(f"({_ESCAPED})"), regex(f"([{INVISIBLE}]++|{_ESCAPED})")


class View(Struct, frozen=True):
    """A decoded text, and where each part of it begins there (`places`) and in the original (`starts`)."""

    text: str
    places: list[int]
    starts: list[int]

    def original(self, span: Span) -> Span:
        """Find the place of that part of `text` in the original."""
        return (self._at(span[0]), self._at(span[1] - 1, behind=1)) if self.places else span

    def _at(self, place: int, *, behind: int = 0) -> int:
        part = bisect_right(self.places, place) - 1
        if part % 2:  # an odd part is one encoded character
            return self.starts[part + 1] if behind else self.starts[part]
        return self.starts[part] + place - self.places[part] + behind


def view(text: str) -> View:
    r"""Decode full-width and escaped letters (`%2D`, `\u002d`, `&#45;`) in `text`, and drop invisible ones."""
    if not text.isascii():
        text = _FULL_WIDTH.sub(lambda wide: wide[0].translate(_TO_ASCII), text)
    elif "%" not in text and "\\" not in text and "&" not in text:
        return View(text, [], [])
    parts = (_WRITTEN_IN_ASCII if text.isascii() else _WRITTEN).split(text)
    if len(parts) == 1:
        return View(text, [], [])
    meant = [_meant(part) if number % 2 else part for number, part in enumerate(parts)]
    return View(
        "".join(meant), list(accumulate(map(len, meant), initial=0)), list(accumulate(map(len, parts), initial=0))
    )


def _meant(written: str) -> str:
    if written[0] == "&":
        from html import unescape  # its table of entities takes a millisecond of each start

        return unescape(written)
    if written[0] not in "%\\":
        return ""
    return "/" if written[-1] == "/" else chr(int(written[-2:], 16))


# Output is lines of JSON in recordings. As often as JSON wraps JSON, it doubles the backslashes of its codes: each code
# of a sequence has as many as the first one, and what has others stands in the text itself. The patterns have no
# groups: Python 3.11 raises SystemError for those within possessive repeats.
_FINAL = r"[0-?]{0,256}+ [ -/]{0,16}+ [@-~]"
_WRITTEN_C1 = (
    r"[\x90\x98\x9d-\x9f] (?: [^\x07\x1b\x9c\n\\]++ | (?! \\{1,4}+ (?: u0007 | u001[bB]\\ | n ) ) \\++ )*+"
    r" (?: \x07 | \x9c | \\{1,4}+ (?: u0007 | u001[bB]\\{2,8}+ ) )?"
)


def _written_sequence(count: int) -> str:
    """Build the pattern of a sequence whose codes have `count` backslashes."""
    slashes = rf"\\{{{count}}}"
    escape = rf"{slashes} (?: u001[bB] | x1[bB] | 033 | e )"
    end = rf"(?: {slashes} (?: u0007 | x07 | u009[cC] | x9[cC] ) | {escape} {slashes}{slashes} )"
    says = rf"(?: [^\x07\x1b\x9c\n\\]++ | (?! {end} | {slashes} n ) \\++ )*+ (?: \x07 | \x9c | {end} )?"
    return (
        rf"{escape} (?: \[ {_FINAL} | (?<!e) (?: [\]P^_X] {says} | [\x20-/]{{0,16}}+ [0-~] ) )"
        rf"| {slashes} (?: u00 | x ) 9 (?: [bB] {_FINAL} | [08d-fD-F] {says} )"
    )


_WRITTEN_SEQUENCE = rf"{' | '.join(map(_written_sequence, (1, 2, 3, 4)))} | {_WRITTEN_C1}"
_UNSEEN_SIGN = rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f{INVISIBLE}{TURNS}] | \r(?!\n)"
_WRITTEN_SIGN = (
    r"\\{1,4} (?: [bf] | r (?!\\{1,4}n) )"
    r"| \\{1,4} u (?: 00 (?: 0[0-8bcefBCEF] | 1[0-9a-fA-F] | 7[fF] | [89][0-9a-fA-F] | [aA][dD] )"
    r"  | 061[cC] | 115[fF] | 1160 | 3164"
    r"  | 20 (?: 0[b-fB-F] | 2[a-eA-E] | 6[0-9a-fA-F] ) | [fF][eE] (?: 0[0-9a-fA-F] | [fF]{2} ) )"
)
SEEN = tuple(
    regex(rf"(?: {' | '.join(unseen)} )++", re.VERBOSE)
    for unseen in (
        (SEQUENCE, _UNSEEN_SIGN),
        (_WRITTEN_SEQUENCE, SEQUENCE, _UNSEEN_SIGN, _WRITTEN_SIGN),
        (_UNSEEN_SIGN, _WRITTEN_SIGN),
    )
)
"""Invisible text by its reader: a terminal, a reader of JSON, and one that leaves out control characters alone."""
_MAY_BE_UNSEEN = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\\]|[^\x00-\x7f]")


def as_seen(text: str, unseen: re.Pattern[str]) -> View | None:
    """Remove everything `unseen` from `text`: escape sequences, controls, marks of direction, invisible characters.

    None if it has nothing of these.
    """
    if not _MAY_BE_UNSEEN.search(text):
        return None
    parts, place = list[str](), 0
    for match in unseen.finditer(text):
        parts += [text[place : match.start()], match[0]]
        place = match.end()
    if not parts:
        return None
    parts.append(text[place:])
    seen = ["" if number % 2 else part for number, part in enumerate(parts)]
    return View(
        "".join(seen), list(accumulate(map(len, seen), initial=0)), list(accumulate(map(len, parts), initial=0))
    )


_KEY = r"[\w.~+/=:-]"
_WRAP = (
    r"(?:[\"'][ \t]{0,20}[+.]?)?[ \t]{0,20}\\?(?:\r?\n|(?:\\{1,4}r)?\\{1,4}n)[ \t>|#*+.]{0,60}[\"']?"
    r"|[\"'][ \t]{0,4}[+.]?[ \t]{0,4}[\"']"
)
_RUN, _GOES_ON = regex(rf"{_KEY}++"), regex(rf"(?:{_WRAP}){_KEY}")
_BETWEEN = regex(_WRAP)
_MORE = regex(r"[\w+/-]++={0,2}(?![\w.:=(\[])")
_MORE_OF_A_TOKEN = regex(r"[\w.-]++(?![\w.:=(\[])")
_RANDOM = regex(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])(?:[\w+/=.-]{16,}\Z|(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])[\w+/=.-]{4,}\Z)")
_TAIL = 300  # characters at the end of a line in which a key may begin
_TRIES, _FRAGMENTS = 8, 100
_LONGEST_BEGINNING = 600  # the most characters that a shape needs to be recognised


Shape = tuple[str, re.Pattern[str]]


def wrapped(text: str, shapes: list[Shape]) -> Iterator[Span]:
    """Find keys that go on in another line or another string. A shape is how a key begins, and its pattern."""
    for shape in shapes:
        at, run_end, tries = text.find(shape[0]), 0, 0
        while at >= 0:
            if at >= run_end:  # it belongs to another run of key characters
                run_end, tries = _RUN.match(text, at).end(), 0  # type: ignore[union-attr]  # the beginning is in it
                last = max(at, run_end - _TAIL) if _GOES_ON.match(text, run_end) else run_end
            elif tries >= _TRIES:
                last = run_end
            if at < last:
                at = text.find(shape[0], last)
                continue
            tries += 1
            end = _end_of_wrapped(text, at, shape, shapes)
            if end:
                yield at, end
            at = text.find(shape[0], end or at + 1)


def _end_of_wrapped(text: str, at: int, shape: Shape, shapes: list[Shape]) -> int:
    """Find the end of the key that begins there; 0 if there is none, or if it ends within its line."""
    start, pattern = shape
    before, more = text[max(at - 8, 0) : at], _MORE_OF_A_TOKEN if start == "ey" else _MORE
    first = _RUN.match(text, at)
    key, place, end, matched = before, at, 0, False
    for number in range(_FRAGMENTS):
        fragment = more.match(text, place) if number else first
        if not fragment or (number and any(fragment[0].startswith(begins) for begins, _ in shapes)):
            break
        if matched and not _RANDOM.match(fragment[0]):
            break
        key += fragment[0]
        if matched:
            end = fragment.end()
        elif match := pattern.match(key, len(before)):
            matched, rest = True, len(key) - match.end()
            end = fragment.end() - rest if number else 0
            if rest:  # the key ends within this line
                break
        elif len(key) > _LONGEST_BEGINNING:
            break
        if not (between := _BETWEEN.match(text, fragment.end())):
            break
        place = between.end()
    return end


_DIGITS = r"[A-Za-z0-9+/_-]"
_LONG_RUN = regex(rf"(?<!{_DIGITS}){_DIGITS}{{20,}}+(?:={{0,2}}\r?\n{_DIGITS}{{8,}}+)*+")
_BASE64 = regex(
    r"(?:[A-Za-f][A-Za-z0-9+/_-]{3}){4,}+[A-Za-z0-9+/_-]{0,3}(?:\r?\n(?:[A-Za-f][A-Za-z0-9+/_-]{3}){2,}+[A-Za-z0-9+/_-]{0,3})*+"
)
_HEX_RUN = regex(r"[2-7\\0][0-9a-fA-Fx][0-9a-fA-F:,x\\ ]{18,}+")
_HEX = regex(r"(?<![0-9a-fA-F])(?:(?:0x|\\x)?[2-7][0-9a-fA-F][:,]?+ ?+){10,}+")
_READABLE = regex(r"[\x20-\x7e\t\r\n]{8,}+")


def encoded(text: str, spans: Spans) -> Iterator[Span]:
    """Find base64 or hexadecimal digits that stand for anything that `spans` finds."""
    for run in _LONG_RUN.finditer(text):
        for match in _BASE64.finditer(text, *run.span()):
            yield from _decoded(match, spans)
    for run in _HEX_RUN.finditer(text):
        for match in _HEX.finditer(text, *run.span()):
            pairs = list(_PAIR.finditer(match[0]))
            for begin, end in spans("".join(chr(int(pair[1], 16)) for pair in pairs)):
                yield match.start() + pairs[begin].start(), match.start() + pairs[end - 1].end()


def _decoded(found: re.Match[str], spans: Spans) -> Iterator[Span]:
    digits = (
        [(place, letter) for place, letter in enumerate(found[0]) if letter not in "\r\n"] if "\n" in found[0] else None
    )
    plain = (
        (found[0] if digits is None else "".join(letter for _, letter in digits)).replace("-", "+").replace("_", "/")
    )
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    try:
        meant = base64.b64decode(plain + "=" * (-len(plain) % 4)).decode("latin-1")
    except (binascii.Error, ValueError):
        return
    for readable in _READABLE.finditer(meant):
        for begin, end in spans(readable[0]):
            first = (readable.start() + begin) * 4 // 3
            last = min(-((readable.start() + end) * -4 // 3), len(plain))
            if digits:
                yield found.start() + digits[first][0], found.start() + digits[last - 1][0] + 1
            else:
                yield found.start() + first, found.start() + last


_PAIR = regex(r"(?:0x|\\x)?([2-7][0-9a-fA-F])")
