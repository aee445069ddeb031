"""What the CLIs' own records of sessions have in common: JSON lines that are read without trusting them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from teamchat.runners.regular_files import open_regular, read_regular
from teamchat.runners.untrusted_json import decode, one_line

READ = 1 << 18  # bytes at the beginning of a record in which its first prompt is looked for
MOST = 200  # sessions that are listed


def first_lines(file: Path) -> Iterator[dict[str, object]]:
    """The JSON objects at the beginning of a record; none of one that cannot be read."""
    try:
        with open_regular(file) as opened:
            head = opened.read(READ)
    except OSError:
        return
    for line in head.split(b"\n"):
        if value := decode(line):
            yield value


def text_of(content: object) -> str:
    """The text of a message: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def used_at(file: Path) -> float:
    """When the record was last written; 0 for one that has gone."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


LARGEST = 1 << 20  # bytes; those of Claude, Codex and Gemini have at most 1,500


def installed_version(program: str, package: str | None) -> str | None:
    """The version of the npm package that `program` belongs to; None if it does not belong to `package`."""
    if package is None:
        return None
    for folder in Path(os.path.realpath(program)).parents:
        match _description(folder / "package.json"):
            case {"name": name, "version": str(version)} if name == package:
                return one_line(version)
    return None


def _description(path: Path) -> dict[str, object] | None:
    try:
        return decode(read_regular(path, LARGEST))
    except (OSError, ValueError):
        return None
