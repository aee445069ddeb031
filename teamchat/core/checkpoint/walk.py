"""A walk through a work tree by `lstat` alone: what is there, before git opens any of it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, field

from teamchat.core.checkpoint.ignored import READ_BY_GIT


class Walk(Struct):
    """`files` has the permissions of regular files and `inodes` their numbers, `folders` the permissions of folders.

    `rules` are what git would open by its name and is no regular file.
    """

    files: dict[str, int] = field(default_factory=dict)
    inodes: dict[str, int] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)


def walk(top: Path, without: Collection[str]) -> Walk:
    """What is in the work tree, but not in the folders `without` nor in nested repositories."""
    walked = Walk()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        here = _entries(f"{top}/{folder}")
        if folder and ".git" in here:
            walked.folders.pop(folder, None)
            continue
        for name, status in here.items():
            path = f"{folder}/{name}" if folder else name
            if stat.S_ISREG(status.st_mode):
                walked.files[path] = stat.S_IMODE(status.st_mode)
                walked.inodes[path] = status.st_ino
            elif stat.S_ISDIR(status.st_mode):
                if name != ".git" and path not in without:
                    walked.folders[path] = stat.S_IMODE(status.st_mode)
                    waiting.append(path)
            elif name in READ_BY_GIT and not stat.S_ISLNK(status.st_mode):
                walked.rules.append(path)
    return walked


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
