"""A walk through the folders of a work tree, before git opens any file of it."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, field

from teamchat.core.checkpoint.ignored import READ_BY_GIT, RULES

SOON_S = 10.0  # seconds after a change; the times of a file may not show another change within them


class Folder(Struct, frozen=True, array_like=True):
    """One folder, with its permissions and the names of the folders in it."""

    bits: int
    state: tuple[int, ...] = ()
    """A value that changes with any name in the folder; empty where a change may come that does not change it."""
    inner: tuple[str, ...] = ()
    rules: bool = False
    """Whether the folder has a `.gitignore`."""
    special: tuple[str, ...] = ()
    """The names that git would open, and that are not regular files."""
    has_git: bool = False
    """Whether the folder has a `.git`, which may make it a repository of its own."""


class Walk(Struct):
    """The folders, by path; the top is `""`. `repositories` are repositories that git does not look into.

    `special` are paths that git would open although they are not files.
    """

    folders: dict[str, Folder] = field(default_factory=dict)
    repositories: set[str] = field(default_factory=set)

    @property
    def special(self) -> list[str]:
        return [_path(path, name) for path, folder in self.folders.items() for name in folder.special]

    @property
    def rules(self) -> list[str]:
        """The paths of the `.gitignore` files."""
        return [_path(path, RULES) for path, folder in self.folders.items() if folder.rules]

    def has(self, folder: str) -> bool:
        """Whether the folder belongs to the work tree and no link leads to it."""
        return folder in self.folders and folder not in self.repositories


def walk(top: Path, without: Collection[str], last: Mapping[str, Folder], repositories: Collection[str] = ()) -> Walk:
    """Walk through the work tree, but not into the folders `without`, nor into `repositories` that have a `.git`.

    git looks into a folder with a `.git` if it is not a repository, or if the index has files of it. A folder in the
    state of the `last` walk is not listed again, unless it is on another device, such as one of the network.
    """
    walked, soon, device = Walk(), time.time_ns() - int(SOON_S * 1e9), top.stat().st_dev
    waiting = [""]
    while waiting:
        path = waiting.pop()
        with contextlib.suppress(OSError):  # it is gone
            status = os.lstat(f"{top}/{path}")
            state = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
            folder = last.get(path)
            if folder is None or folder.state != state:
                told = status.st_dev == device and max(state[1:]) <= soon
                folder = _listed(f"{top}/{path}", status, state if told else (), is_top=not path)
            walked.folders[path] = folder
            if folder.has_git and path in repositories:
                walked.repositories.add(path)
            else:
                waiting += [inner for name in folder.inner if (inner := _path(path, name)) not in without]
    return walked


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _listed(place: str, status: os.stat_result, state: tuple[int, ...], *, is_top: bool) -> Folder:
    """List a folder, as far as it can be read."""
    inner, special, rules, has_git = list[str](), list[str](), False, False
    with contextlib.suppress(OSError), os.scandir(place) as found:
        for entry in found:
            if entry.name == ".git":
                has_git = not is_top
            elif entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            elif entry.name in READ_BY_GIT:
                rules = rules or (entry.name == RULES and entry.is_file(follow_symlinks=False))
                if not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                    special.append(entry.name)
    return Folder(stat.S_IMODE(status.st_mode), state, tuple(inner), rules, tuple(special), has_git)


def stamp_of(folder: str) -> str:
    """Stamp the work tree of a submodule: a value that changes with any file in it, by `lstat` alone, without git.

    The stamp is empty where the submodule is not fetched. Its commits, which git keeps, are not part of that.
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
    """Return the entries of a folder by name; empty if it cannot be read or is gone."""
    statuses = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                statuses[entry.name] = entry.stat(follow_symlinks=False)
    return statuses
