"""Removing a folder that an agent could write to, with all its contents, and without ever leaving it.

The agent may have left paths of any length, millions of files, folders without permissions, links and mounts, and one
of its processes may still be changing the folder. So nothing here recurses, follows a link or builds a path: each step
is relative to an open folder. Folders further down are moved up to the top one and emptied there, which needs two open
folders for a tree of any depth. A mount point cannot be moved, so mounted files are not touched.

Imports only the standard library, because the guardian uses it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import time
from collections.abc import Iterator

LONGEST_S = 10.0  # neither a huge tree nor a process that goes on to fill it may keep teamchat
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)
_ALL = stat.S_IRWXU


def remove(*folders: str | os.PathLike[str] | bytes) -> str | None:
    """Remove folders with their content, or files in their place, up to the first that cannot be removed.

    Returns a sentence about that one, or None. Raises nothing. Files that cannot be removed stay below their folder,
    for a later call; the last folder stays as long as anything of the others.
    """
    for folder in folders:
        if problem := _remove(folder):
            return problem
    return None


def _remove(folder: str | os.PathLike[str] | bytes) -> str | None:
    path = os.path.abspath(os.fsdecode(folder))  # noqa: PTH100 (pathlib costs start-up)
    parent, name = os.path.split(path)
    try:
        place = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{path} cannot be removed: {error.strerror}"
    try:
        problem = _Removal().run(place, name)
    finally:
        os.close(place)
    return problem and f"{path} cannot be removed: {problem}"


class _Removal:
    def __init__(self) -> None:
        self.until = time.monotonic() + LONGEST_S
        self.fresh = (f".removed-{os.getpid()}-{number}" for number in itertools.count())
        self.changes = 0  # a pass without any is the last one
        self.problem: str | None = None  # the first one of a pass

    def run(self, place: int, name: str) -> str | None:
        """Remove it in as many passes as it takes; the first problem of the last one."""
        before = -1
        while before < self.changes and time.monotonic() < self.until:
            before, self.problem = self.changes, None
            if not self._remains_full(place, name):
                return self.problem
            self._empty(place, name)
        return self.problem or f"not done after {LONGEST_S:.0f} s"

    def _remains_full(self, place: int, name: str) -> bool:
        """Remove an entry (of a link the link itself); return whether it is a folder that must be emptied first."""
        with self._noting():
            try:
                os.rmdir(name, dir_fd=place)  # fails for a mount point, whatever is in it, with another error
            except FileNotFoundError:
                return False
            except NotADirectoryError:
                os.unlink(name, dir_fd=place)
            except OSError as error:
                if error.errno in _NOT_EMPTY:
                    return True
                raise
            self.changes += 1
        return False

    def _empty(self, place: int, name: str, top: int | None = None) -> None:
        """Remove the content of a folder. The folders in it move up to `top`; without one it is the top itself."""
        with self._noting(), _entered(place, name) as folder, os.scandir(folder) as entries:
            for entry in entries:
                if time.monotonic() > self.until:
                    return
                if not self._remains_full(folder, entry.name):
                    continue
                if top is None:
                    self._empty(folder, entry.name, folder)
                    self._remains_full(folder, entry.name)
                else:
                    self._move(folder, entry.name, top)

    def _move(self, folder: int, name: str, top: int) -> None:
        new = next(self.fresh)
        with self._noting():
            try:
                os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
            except PermissionError:
                _open_up(folder, name)  # its `..` is written
                os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
            self.changes += 1

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            self.changes += 1  # somebody else has removed it
        except OSError as error:
            self.problem = self.problem or error.strerror


@contextlib.contextmanager
def _entered(place: int, name: str) -> Iterator[int]:
    """Open the folder `name` of `place`, with the permissions to change it. Raises `OSError` for a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        folder = os.open(name, flags, dir_fd=place)
    except PermissionError:
        _open_up(place, name)
        folder = os.open(name, flags, dir_fd=place)
    try:
        if os.fstat(folder).st_mode & _ALL != _ALL:
            os.fchmod(folder, _ALL)
        yield folder
    finally:
        os.close(folder)


def _open_up(place: int, name: str) -> None:
    """Give the user all permissions for a folder that cannot be opened, and never for the target of a link."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, _ALL, dir_fd=place, follow_symlinks=False)
        return
    folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        os.chmod(f"/proc/self/fd/{folder}", _ALL)  # noqa: PTH101
    finally:
        os.close(folder)
