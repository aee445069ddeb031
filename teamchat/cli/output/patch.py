"""Prints changes of files: a patch as it is, or in colours at a terminal, and one line a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from teamchat.cli.output.lines import plural
from teamchat.core.text.clean import printable, visible
from teamchat.runners.file_changes import FileChange

MARKS = {"added": "new", "changed": "", "deleted": "deleted", "mode": "x bit", "type": "another type"}
_BOLD, _RED, _GREEN, _CYAN, _END = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[m"
_COLORS = {"+": _GREEN, "-": _RED, "@": _CYAN}


def counted(path: str, added: int | None, removed: int | None, *more: str) -> str:
    """`path  +3 −1  new`; without numbers for what is no text."""
    lines = "" if added is None else f"+{added} −{removed}"
    return "  ".join(filter(None, (path, lines, *more)))


def stat_lines(files: Iterable[FileChange]) -> Iterator[str]:
    """One line a file, and one for all."""
    number, added, removed = 0, 0, 0
    for file in files:
        number, added, removed = number + 1, added + (file.added or 0), removed + (file.removed or 0)
        yield counted(printable(file.path), file.added, file.removed, MARKS[file.what])
    yield f"{plural(number, 'file')}, +{added} −{removed}"


def write_patch(pieces: Iterable[bytes]) -> None:
    """All of a patch, byte for byte; for a terminal, which it could deceive, visible and coloured."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        for line in _colored(_lines(pieces)):
            print(line)
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    held = b""
    for piece in pieces:
        *whole, held = (held + piece).split(b"\n")
        for line in whole:
            yield visible(line.decode(errors="replace").removesuffix("\r"))
    if held:
        yield visible(held.decode(errors="replace"))


def _colored(lines: Iterable[str]) -> Iterator[str]:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        yield from lines
        return
    head = True
    for line in lines:
        head = (head and not line.startswith("@@")) or line.startswith("diff --git ")
        color = _BOLD if head else _COLORS.get(line[:1], "")
        yield f"{color}{line}{_END}" if color else line
