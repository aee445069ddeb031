"""A walk through a work tree by the entries of its folders: what is there, before git opens any of it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterable
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, field

from teamchat.core.checkpoint.ignored import READ_BY_GIT

_TRIED = 50  # files whose inodes are compared


class Walk(Struct):
    """`files` has the inodes of regular files, `folders` the permissions of folders.

    `rules` are what git would open by its name and is no regular file.
    """

    files: dict[str, int] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)


def walk(top: Path, without: Collection[str]) -> Walk:
    """What is in the work tree, but not in the folders `without` nor in nested repositories.

    Files are not looked at one by one: a folder tells the kind and the inode of each.
    """
    walked, files = Walk(), dict[str, int]()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        here = _listed(f"{top}/{folder}")
        if folder and any(entry.name == ".git" for entry in here):
            walked.folders.pop(folder, None)
            continue
        prefix = f"{folder}/" if folder else ""
        for entry in here:
            path = f"{prefix}{entry.name}"
            if entry.is_file(follow_symlinks=False):
                files[path] = entry.inode()
            elif entry.is_dir(follow_symlinks=False):
                if entry.name != ".git" and path not in without and (bits := _bits(entry)) is not None:
                    walked.folders[path] = bits
                    waiting.append(path)
            elif entry.name in READ_BY_GIT and not entry.is_symlink():
                walked.rules.append(path)
    walked.files = files if _are_told(top, files) else _inodes(top, files)
    return walked


def _listed(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder, as far as it can be read."""
    entries = list[os.DirEntry[str]]()
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            entries.append(entry)
    return entries


def _bits(entry: os.DirEntry[str]) -> int | None:
    try:
        return stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return None


def _are_told(top: Path, files: dict[str, int]) -> bool:
    """Whether folders tell the inodes that files have: some file systems of several layers do not."""
    step = max(1, len(files) // _TRIED)
    some = {path: files[path] for path in list(files)[::step]}
    return _inodes(top, some).items() <= some.items()


def _inodes(top: Path, paths: Iterable[str]) -> dict[str, int]:
    """The inode of each file that is there still."""
    found = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[path] = os.lstat(f"{top}/{path}").st_ino
    return found


def stamp_of(folder: str) -> str:
    """What changes with any file in the work tree of a submodule, by `lstat` alone: git runs nowhere in it.

    Empty where it is not fetched. What git keeps of it, its commits, is no part of that.
    """
    if not os.path.lexists(f"{folder}/.git"):
        return ""
    digest = sha256()
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        for name, status in sorted(_entries(f"{folder}/{inner}").items()):
            path = f"{inner}/{name}" if inner else name
            if name == ".git":
                continue
            if stat.S_ISDIR(status.st_mode):
                waiting.append(path)
                continue
            state = f"{status.st_mode:o} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
            digest.update(os.fsencode(path) + b"\0" + state.encode() + b"\0")
    return digest.hexdigest()


def _entries(folder: str) -> dict[str, os.stat_result]:
    """What is in a folder, by name; empty for one that cannot be read or is gone."""
    statuses = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                statuses[entry.name] = entry.stat(follow_symlinks=False)
    return statuses
