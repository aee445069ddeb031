"""What is on the disk at a path of a work tree. Below a symbolic link, or a file, there is nothing of the work tree."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.core.checkpoint.paths import folders_of
from teamchat.core.checkpoint.values import TreeEntry


def status_at(top: Path, path: str) -> os.stat_result | None:
    """The status of what is at the path; None where nothing is, and below a link."""
    try:
        if any(stat.S_ISLNK(os.lstat(f"{top}/{folder}").st_mode) for folder in folders_of(path)):
            return None
        return os.lstat(f"{top}/{path}")
    except OSError:
        return None


def in_the_way(
    top: Path, path: str, known: Mapping[str, TreeEntry | None], wanted: Mapping[str, TreeEntry | None]
) -> str | None:
    """Find what no checkpoint has at a path that is to be written, or above it; return its path, None for nothing.

    `known` has what a checkpoint has, `wanted` what becomes of paths: what is known and goes is in nobody's way.
    """
    for place in (*folders_of(path), path):
        status = status_at(top, place)
        if status is None:
            return None
        if stat.S_ISDIR(status.st_mode):
            continue
        return None if _goes(place, known, wanted) else place
    return None if all(_goes(inner, known, wanted) for inner in _files_in(top, path)) else path


def _goes(path: str, known: Mapping[str, TreeEntry | None], wanted: Mapping[str, TreeEntry | None]) -> bool:
    there = known.get(path)
    return there is not None and wanted.get(path, there) is None


def _files_in(top: Path, folder: str) -> Iterator[str]:
    """The paths of all in a folder that is no folder itself."""
    for inner, folders, names in os.walk(f"{top}/{folder}"):
        links = (name for name in folders if os.path.islink(f"{inner}/{name}"))  # noqa: PTH114 (names of any bytes)
        yield from (os.path.relpath(f"{inner}/{name}", top) for name in (*names, *links))
