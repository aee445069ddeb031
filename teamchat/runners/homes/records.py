"""Records of sessions that a CLI keeps in its home, read without trusting them."""

from __future__ import annotations

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
    """Sort the records by the time of the last write, newest first."""
    return sorted(files, key=used_at, reverse=True)


def used_at(file: Path) -> float:
    """Return the time of the last write; 0 if the record is gone."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
