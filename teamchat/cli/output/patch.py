"""Prints changes of files: a patch as it is, or in colours at a terminal, and one line a file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator

from teamchat.cli.output.lines import plural
from teamchat.core.text.clean import printable, visible
from teamchat.runners.file_changes import FileChange

MARKS = {"added": "new", "changed": "", "deleted": "deleted", "mode": "x bit", "type": "another type"}
_BOLD, _RED, _GREEN, _CYAN, _END = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[m"
_INDEX = re.compile(r"(?<=^index )([0-9a-f]{7})[0-9a-f]*\.\.([0-9a-f]{7})[0-9a-f]*")
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
    """All of a patch, byte for byte. At a terminal, which it could deceive: visible, coloured, with short hashes."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        for line, is_head in _with_heads(_lines(pieces)):
            print(_colored(_INDEX.sub(r"\1..\2", line) if is_head else line, is_head=is_head))
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


def _with_heads(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it stands before a file's changes."""
    head = True
    for line in lines:
        head = (head and not line.startswith("@@")) or line.startswith("diff --git ")
        yield line, head


def _colored(line: str, *, is_head: bool) -> str:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return line
    color = _BOLD if is_head else _COLORS.get(line[:1], "")
    return f"{color}{line}{_END}" if color else line
