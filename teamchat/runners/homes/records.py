"""Records of sessions that a CLI keeps in its home, read without trusting them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from teamchat.runners.untrusted.json import decode
from teamchat.runners.untrusted.regular_files import open_regular

READ = 16 << 20  # bytes of a record in which to look for its first prompt: a picture may be in it
MOST = 200  # sessions that are listed


def first_lines(file: Path) -> Iterator[dict[str, object]]:
    """Read the JSON objects at the beginning of a record one by one, as the caller asks; none if the record is gone."""
    left = READ
    try:
        with open_regular(file) as opened:
            while line := opened.readline(left):
                left -= len(line)
                if value := decode(line):
                    yield value
    except OSError:
        return


def text_of(content: object) -> str:
    """Join the text of a message: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def newest(files: Iterable[Path]) -> list[Path]:
    """Sort the records by the time of the last write, newest first, without files whose name is no UTF-8."""
    return sorted((file for file in files if _is_utf8(file.name)), key=used_at, reverse=True)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # Python has put surrogates in the place of bytes
        return False
    return True


def is_folder(path: str, here: str) -> bool:
    """Whether the path, which a record names, leads to the folder `here`, a real path."""
    try:
        return os.path.realpath(path) == here
    except (OSError, ValueError):  # with a NUL in it
        return False


def longer_than_read(file: Path) -> bool:
    """Whether the record has more than `first_lines` reads."""
    return size_of(file) > READ


def size_of(file: Path) -> int:
    """Return the bytes of the record; 0 if it is gone."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def used_at(file: Path) -> float:
    """Return the time of the last write; 0 if the record is gone."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
