"""Cuts a text into pieces that are found and quoted separately. Joined again they are the text, byte for byte.

Markdown is cut at its headings. Any other text is cut at blank lines, first at those before an unindented line: the
text between them is a paragraph, or one function of a program. A piece that is still too large is cut at lines, then
sentences, then words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from teamchat.assemblers.truncation import byte_length
from teamchat.patterns import regex

LARGEST = 1600  # UTF-8 bytes of a piece, about 400 tokens
DEEPEST = 6  # levels of headings
SEPARATOR = " > "  # separates the headings above a piece
_LINE = regex(r"[^\n]*\n|[^\n]+")
_WORD = regex(r"[^\s。！？；]*(?:[\s。！？；]+|\Z)")
_FENCE = regex(r" {0,3}(`{3,}|~{3,})")


class Piece(Struct, frozen=True):
    """The lines `first` to `last` of a file, or parts of them. `heading` names the headings above them."""

    text: str
    first: int
    last: int
    heading: str = ""


def cut_pieces(text: str, *, markdown: bool) -> list[Piece]:
    """All of `text` in order, each piece at most `LARGEST` bytes. The cost is linear."""
    pieces: list[Piece] = []
    line = 1
    for heading, section in _sections(text) if markdown else [("", text)]:
        for part in _fitting(section):
            next_line = line + part.count("\n")
            pieces.append(Piece(part, line, max(line, next_line - part.endswith("\n")), heading))
            line = next_line
    return pieces


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Headings and text of every section. A heading without a text of its own belongs to the section that follows."""
    path: list[str] = []
    held: list[str] = []
    has_text = False
    fence = ""
    for line in _LINE.findall(text):
        level = _level(line) if "#" in line and not fence else 0
        if level and has_text:
            yield _named(path), "".join(held)
            held, has_text = [], False
        if level:
            path = [*(path + [""] * level)[: level - 1], line.strip()[level:].strip("# \t")]
        elif not line.isspace():
            has_text = True
            fence = _after(fence, line) if "```" in line or "~~~" in line else fence
        held.append(line)
    if held:
        yield _named(path), "".join(held)


def _level(line: str) -> int:
    """The heading level of the line, from 1; 0 for other lines."""
    bare = line.strip()
    level = len(bare) - len(bare.lstrip("#"))
    indented = line.startswith(("    ", "\t"))
    return level if 1 <= level <= DEEPEST and bare[level : level + 1] in ("", " ", "\t") and not indented else 0


def _named(path: Iterable[str]) -> str:
    return SEPARATOR.join(filter(None, path))


def _after(fence: str, line: str) -> str:
    """The code fence that is open on the next line; empty if none is."""
    found = _FENCE.match(line)
    if not fence:
        return found[1] if found else ""
    closes = found is not None and found[1].startswith(fence) and line.strip() == found[1]
    return "" if closes else fence


def _fitting(text: str, level: int = 0) -> list[str]:
    """`text` in parts that are not too large, cut at the coarsest of the `LEVELS` that is fine enough."""
    if byte_length(text) <= LARGEST:
        return [text] if text else []
    fitting: list[str] = []
    held: list[str] = []
    size = 0
    for part in LEVELS[level](text):
        room = byte_length(part)
        if held and size + room > LARGEST:
            fitting.append("".join(held))
            held, size = [], 0
        if room > LARGEST:
            fitting += _fitting(part, level + 1)
        else:
            held.append(part)
            size += room
    return [*fitting, *(["".join(held)] if held else [])]


def _blocks(text: str, begins: Callable[[str], bool]) -> list[str]:
    """Parts whose first line follows a blank line, and for which `begins` is true."""
    parts: list[list[str]] = [[]]
    blank = False
    for line in _LINE.findall(text):
        if blank and begins(line) and parts[-1]:
            parts.append([])
        parts[-1].append(line)
        blank = line.isspace()
    return ["".join(part) for part in parts]


def _characters(text: str) -> list[str]:
    step = LARGEST // 4  # no character takes more than four bytes
    return [text[start : start + step] for start in range(0, len(text), step)]


LEVELS: tuple[Callable[[str], list[str]], ...] = (
    lambda text: _blocks(text, lambda line: not line[0].isspace()),
    lambda text: _blocks(text, lambda line: not line.isspace()),
    _LINE.findall,
    lambda text: list(filter(None, _WORD.findall(text))),
    _characters,
)
