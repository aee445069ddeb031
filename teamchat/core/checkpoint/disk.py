"""The files on the disk at the paths of a work tree. Nothing below a symbolic link or a file belongs to the tree."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from teamchat.core.checkpoint.paths import folders_of
from teamchat.core.checkpoint.values import TreeEntry
from teamchat.runners.child.command import run

_LOCAL = {"bcachefs", "btrfs", "ext2/ext3", "f2fs", "overlayfs", "tmpfs", "xfs", "zfs"}
_PLAIN = {"PATH": os.defpath, "LC_ALL": "C"}
_LONGEST_S = 30.0


def status_at(top: Path, path: str) -> os.stat_result | None:
    """Return the status of the file at the path; None without one, and below a link."""
    try:
        if any(stat.S_ISLNK(os.lstat(f"{top}/{folder}").st_mode) for folder in folders_of(path)):
            return None
        return os.lstat(f"{top}/{path}")
    except OSError:
        return None


def own_output(top: Path) -> list[str]:
    """List the files of the work tree that this program's standard output and standard error go to."""
    found = set[str]()
    for number in (1, 2):
        with suppress(OSError):  # it is closed
            status = os.fstat(number)
            if stat.S_ISREG(status.st_mode) and status.st_dev == top.stat().st_dev:
                found.update(_names_of(top, number, status))
    return sorted(found)


def _names_of(top: Path, number: int, opened: os.stat_result) -> Iterator[str]:
    """Find where in the work tree an open file is: where the system says, or by a search."""
    with suppress(OSError):
        place = Path(f"/proc/self/fd/{number}").readlink()
        if opened.st_nlink == 1 and os.path.samestat(place.lstat(), opened):
            return iter([str(place.relative_to(top))] if place.is_relative_to(top) else [])
    return _same(top, opened)


def _same(top: Path, opened: os.stat_result) -> Iterator[str]:
    for folder, _, names in os.walk(top):
        for name in names:
            with suppress(OSError):
                if os.path.samestat(os.lstat(f"{folder}/{name}"), opened):
                    yield os.path.relpath(f"{folder}/{name}", top)


def tells_all_changes(top: Path) -> bool:
    """Whether the file system gives a folder another time as soon as a name in it changes.

    That of another machine may tell it later. An unknown file system counts as one that does not.
    """
    try:
        told = run(("stat", "--file-system", "--format=%T", "--", str(top)), top, _PLAIN, _LONGEST_S)
    except OSError:
        return False
    return told.out.decode(errors="replace").strip() in _LOCAL


def in_the_way(
    top: Path, path: str, known: Mapping[str, TreeEntry | None], wanted: Mapping[str, TreeEntry | None]
) -> str | None:
    """Find a file without a checkpoint at or above a path about to be written; return its path, None without one.

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
    """List the paths of everything in a folder, except of folders."""
    for inner, folders, names in os.walk(f"{top}/{folder}"):
        links = (name for name in folders if os.path.islink(f"{inner}/{name}"))  # noqa: PTH114 (names of any bytes)
        yield from (os.path.relpath(f"{inner}/{name}", top) for name in (*names, *links))
