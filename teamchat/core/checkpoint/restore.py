"""Puts files back as checkpoints had them.

Every file is written next to its place and renamed, so that a reader finds the old content or the new. Every step can
be repeated: after a kill all are done again. Folders are opened one below the other without following symbolic links,
so that nothing outside the work tree is written.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Self

from msgspec import Struct, field

from teamchat.core.checkpoint.compare import object_reader
from teamchat.core.checkpoint.paths import is_safe
from teamchat.core.checkpoint.shadow import open_shadow
from teamchat.core.checkpoint.values import EXECUTABLE, LINK, SUBMODULE, GitRepository, TreeEntry
from teamchat.core.errors import CheckpointFailed
from teamchat.core.text.clean import printable
from teamchat.digests import sha256

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_NAMED = 3
_LONGEST_S = 900.0


def restore(repository: GitRepository, state_folder: Path, paths: Mapping[str, TreeEntry | None]) -> None:
    """Make every path what it is to be: its bytes, its x bit, its symbolic link; None deletes it.

    A folder that this leaves empty goes. The other permission bits of a file stay as they are. A submodule stays
    as it is.

    What cannot be written stays as it is and is named in the `CheckpointFailed` that is raised at the end, when all
    else is done.
    """
    with open_shadow(repository, state_folder, _LONGEST_S):
        failed = _Work(repository, dict(paths)).run()
    if failed:
        raise CheckpointFailed(_told(failed))


def _told(failed: Mapping[str, str]) -> str:
    named = ", ".join(f"{printable(path)} ({why})" for path, why in list(failed.items())[:_MOST_NAMED])
    more = len(failed) - _MOST_NAMED
    return f"not put back: {named}{f' and {more} more' if more > 0 else ''}; everything else is"


class _Work(Struct):
    repository: GitRepository
    paths: dict[str, TreeEntry | None]
    failed: dict[str, str] = field(default_factory=dict)

    def run(self) -> dict[str, str]:
        """What could not be done, with the reason."""
        for path in [path for path in self.paths if not is_safe(path)]:
            self._fail(path, "git keeps that name for itself")
        gone = [path for path, entry in self.paths.items() if entry is None and path not in self.failed]
        back = {path: entry for path, entry in self.paths.items() if entry and entry.mode != SUBMODULE}
        back = {path: back[path] for path in sorted(back) if path not in self.failed}
        with _Folders(self.repository.top) as folders:
            for path in sorted(gone, reverse=True):
                self._try(path, partial(_delete, folders, path))
            kept = {parent for path in back for parent in _parents(path)}
            for parent in sorted({parent for path in gone for parent in _parents(path)} - kept, reverse=True):
                folders.remove_empty(parent)
        with _Folders(self.repository.top) as folders:
            for path, entry, content in _contents(self.repository, back):
                if content is None:
                    self._fail(path, "its content is no longer there")
                else:
                    self._try(path, partial(_put, folders, path, entry, content))
        return self.failed

    def _try(self, path: str, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            self._fail(path, error.strerror or str(error))

    def _fail(self, path: str, why: str) -> None:
        self.failed[path] = why


class _Folders:
    """Folders of the work tree, opened without following symbolic links. The last one stays open with its parents."""

    def __init__(self, top: Path) -> None:
        self._open: list[tuple[str, int]] = [("", os.open(top, _FOLDER & ~os.O_NOFOLLOW))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.pop()[1])

    def get(self, path: str, *, make: bool = False) -> int:
        """The folder `path`, "" for the top. Raises `OSError`, also where it is reached through a symbolic link."""
        parts = path.split("/") if path else []
        same = 0
        while same < len(parts) and same + 1 < len(self._open) and self._open[same + 1][0] == parts[same]:
            same += 1
        while len(self._open) > same + 1:
            os.close(self._open.pop()[1])
        for part in parts[same:]:
            self._open.append((part, _enter(part, self._open[-1][1], make=make)))
        return self._open[-1][1]

    def remove_empty(self, path: str) -> None:
        """Remove the folder if nothing is in it."""
        parent, _, name = path.rpartition("/")
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=self.get(parent))


def _enter(name: str, folder: int, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
        os.mkdir(name, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(errno.ENOTDIR, "a file or a symbolic link is where its folder was") from error
        raise


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _delete(folders: _Folders, path: str) -> None:
    """Remove a file or a symbolic link; a folder in its place is another path's."""
    parent, _, name = path.rpartition("/")
    try:
        folder = folders.get(parent)
        if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
            os.unlink(name, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return


def _put(folders: _Folders, path: str, entry: TreeEntry, content: bytes) -> None:
    parent, _, name = path.rpartition("/")
    folder = folders.get(parent, make=True)
    bits = _clear(folder, name)
    new = f".teamchat-{sha256(os.fsencode(name)).hexdigest()[:16]}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new, dir_fd=folder)  # of a process that was killed
    try:
        if entry.mode == LINK:
            os.symlink(content, os.fsencode(new), dir_fd=folder)
        else:
            _write(folder, new, content, executable=entry.mode == EXECUTABLE, bits=bits)
        os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise


def _clear(folder: int, name: str) -> int | None:
    """Make room for a file. Returns the permission bits of the one that it replaces, if its owner may read that."""
    try:
        status = os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        _remove_hollow(folder, name)
        return None
    kept = stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_IRUSR
    return stat.S_IMODE(status.st_mode) if kept else None


def _remove_hollow(folder: int, name: str) -> None:
    """Remove a folder that holds no file: git knows of no folders. Raises `OSError` for another."""
    inner = os.open(name, _FOLDER, dir_fd=folder)
    try:
        for child in os.listdir(inner):  # noqa: PTH208 (pathlib takes no descriptor)
            if not stat.S_ISDIR(os.lstat(child, dir_fd=inner).st_mode):
                raise OSError(errno.ENOTEMPTY, "a folder with other files is in its place")
            _remove_hollow(inner, child)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)


def _write(folder: int, name: str, content: bytes, *, executable: bool, bits: int | None) -> None:
    file = os.open(name, _NEW, 0o777 if executable else 0o666, dir_fd=folder)
    with os.fdopen(file, "wb") as opened:
        opened.write(content)
        if bits is not None:
            readers = bits & 0o666
            os.fchmod(file, readers | (readers & 0o444) >> 2 if executable else readers)


def _contents(
    repository: GitRepository, paths: Mapping[str, TreeEntry]
) -> Iterator[tuple[str, TreeEntry, bytes | None]]:
    """Every path with the content that it is to have; None where the repository has it no longer, or damaged."""
    if not paths:
        return
    wanted = b"".join(f"{entry.blob}\n".encode() for entry in paths.values())
    with object_reader(repository) as git, git.printing("cat-file", "--batch", "--buffer", given=wanted) as program:
        for path, entry in paths.items():
            yield path, entry, _content(program.out, entry, repository.object_format)


def _content(printed: IO[bytes], entry: TreeEntry, form: str) -> bytes | None:
    head = printed.readline().split(b" ")
    if len(head) != 3:
        return None
    content = printed.read(int(head[2]))
    printed.read(1)
    named = hashlib.new(form, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return content if named == entry.blob else None
