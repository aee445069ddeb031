"""Prints changes of files: a patch as it is, or in colours at a terminal, and one line a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from teamchat.cli.output.lines import plural
from teamchat.core.text.clean import printable, visible
from teamchat.patterns import regex
from teamchat.runners.untrusted.file_changes import FileChange

MARKS = {"added": "new", "changed": "", "deleted": "deleted", "mode": "x bit", "type": "another type"}
_BOLD, _RED, _GREEN, _CYAN, _END = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[m"
_INDEX = regex(r"(?<=^index )([0-9a-f]{7})[0-9a-f]*\.\.([0-9a-f]{7})[0-9a-f]*")
_COLORS = {"+": _GREEN, "-": _RED, "@": _CYAN}


def counted(path: str, added: int | None, removed: int | None, *more: str) -> str:
    """Write the line of a file: `path  +3 −1  new`; without numbers if it is not text."""
    lines = "" if added is None else f"+{added} −{removed}"
    return "  ".join(filter(None, (path, lines, *more)))


def stat_lines(files: Iterable[FileChange]) -> Iterator[str]:
    """Write a line for each file, and a line for all."""
    number, added, removed = 0, 0, 0
    for file in files:
        number, added, removed = number + 1, added + (file.added or 0), removed + (file.removed or 0)
        yield counted(printable(file.path), file.added, file.removed, MARKS[file.what])
    yield f"{plural(number, 'file')}, +{added} −{removed}"


def write_patch(pieces: Iterable[bytes]) -> None:
    """Write a whole patch, byte for byte.

    At a terminal, which it could deceive, it is visible and coloured, with short hashes.
    """
    sys.stdout.flush()
    if sys.stdout.isatty():
        colours = not (os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb")
        head = True
        for lines in _lines(pieces):
            shown, head = _shown(lines, head=head, colours=colours)
            sys.stdout.write("".join(f"{line}\n" for line in shown))
        sys.stdout.flush()
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _lines(pieces: Iterable[bytes]) -> Iterator[list[str]]:
    """Make the lines of a patch visible, in lists of the lines that each piece completes."""
    held: list[bytes] = []  # parts of an incomplete line
    for piece in pieces:
        whole, end, rest = piece.rpartition(b"\n")
        if end:
            yield _visible(b"".join((*held, whole)))
            held = []
        held.append(rest)
    if last := b"".join(held):
        yield _visible(last)


def _visible(lines: bytes) -> list[str]:
    return visible(lines.decode(errors="replace")).split("\n")  # also without carriage returns


def _shown(lines: Iterable[str], *, head: bool, colours: bool) -> tuple[list[str], bool]:
    """Colour the lines and shorten hashes. `head` says whether the next line stands before a file's changes."""
    shown: list[str] = []
    for line in lines:
        if not line:
            shown.append(line)
            continue
        head = (head and not line.startswith("@@")) or line.startswith("diff --git ")
        color = (_BOLD if head else _COLORS.get(line[:1], "")) if colours else ""
        text = _INDEX.sub(r"\1..\2", line) if head and line.startswith("index ") else line
        shown.append(f"{color}{text}{_END}" if color else text)
    return shown, head
