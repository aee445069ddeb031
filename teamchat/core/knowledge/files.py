"""Finds the files below the paths that a team file names. It lists folders and reads no file.

In a folder it skips links (they may lead anywhere), hidden and generated folders, anything that is not a regular file,
and files that are too large or too many. A path that the team file itself names is taken even if it is hidden.
"""

from __future__ import annotations

import os
import stat
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from teamchat.core.text.clean import clean


class Excerpt(Struct, frozen=True):
    """A part of a layer and its source. `why` says why it was chosen, `bytes` how much room it takes."""

    name: str
    why: str
    bytes: int


MAX_FILE = 1024 * 1024  # bytes
MAX_FILES = 2000
MAX_BYTES = 16 * 1024 * 1024
MAX_ENTRIES = 50_000  # files that are looked at
GENERATED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "target", "dist", "build"})


class KnowledgeFile(Struct, frozen=True):
    """A file that may be knowledge. `name` begins as in the team file. `stamp` changes when the file does."""

    path: Path
    name: str
    size: int
    changed_ns: int
    stamp: str


class FileSet(Struct, frozen=True):
    """The files, and how many were left out, by reason."""

    files: tuple[KnowledgeFile, ...]
    left_out: Mapping[str, int]


def find_files(named: Mapping[str, Path]) -> FileSet:
    """Find the files below these paths, each once, in the order of the paths, then breadth first and by name.

    The paths are absolute and resolved. If a link has replaced a path since the team file was read, it is left out.
    """
    files: dict[Path, KnowledgeFile] = {}
    left_out: Counter[str] = Counter()
    size = 0
    for name, path in named.items():
        for file in _under(name, path, left_out):
            if file.path in files:
                continue
            if file.size > MAX_FILE:
                left_out["larger than 1 MiB"] += 1
            elif len(files) == MAX_FILES or size + file.size > MAX_BYTES:
                left_out["more than 2,000 files or 16 MiB"] += 1
            else:
                files[file.path] = file
                size += file.size
    return FileSet(tuple(files.values()), left_out)


def _under(name: str, path: Path, left_out: Counter[str]) -> Iterator[KnowledgeFile]:
    try:
        if path.resolve() != path:
            left_out["links"] += 1
            return
        about = path.stat()
    except OSError:
        left_out["missing"] += 1
        return
    if not stat.S_ISDIR(about.st_mode):
        yield _found(path, name, about)
        return
    folders = deque([(str(path), os.path.normpath(name))])
    looked_at = 0
    while folders:
        folder, called = folders.popleft()
        for entry in _entries(folder, left_out):
            looked_at += 1
            if looked_at > MAX_ENTRIES:
                left_out["more than 50,000 entries of folders"] += 1
                return
            inner = entry.name if called == "." else f"{called}/{entry.name}"
            if reason := _unfit(entry):
                left_out[reason] += 1
            elif entry.is_dir(follow_symlinks=False):
                folders.append((entry.path, inner))
            else:
                try:
                    yield _found(Path(entry.path), inner, entry.stat(follow_symlinks=False))
                except OSError:
                    left_out["unreadable"] += 1


def _entries(folder: str, left_out: Counter[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        left_out["unreadable"] += 1
        return []


def _unfit(entry: os.DirEntry[str]) -> str | None:
    if entry.name.startswith(".") or entry.name in GENERATED:
        return "hidden or generated"
    if entry.is_symlink():
        return "links"
    if not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
        return "no files"
    return None


def _found(path: Path, name: str, about: os.stat_result) -> KnowledgeFile:
    stamp = f"{about.st_mtime_ns} {about.st_ctime_ns} {about.st_size} {about.st_ino}"
    return KnowledgeFile(path, name, about.st_size, max(about.st_mtime_ns, about.st_ctime_ns), stamp)


def read_source(found: KnowledgeFile) -> bytes | None:
    """Read the file. None if it cannot be read, is no longer a regular file, or has become too large."""
    try:
        # a pipe would never open, and a link that replaced the file may lead anywhere
        handle = os.open(found.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            content = file.read(MAX_FILE + 1)
    except OSError:
        return None
    return content if len(content) <= MAX_FILE else None


def harmless_text(content: bytes) -> str | None:
    """Decode a file without escape sequences, since anybody may have written it.

    None for a file that contains a NUL or is not UTF-8.
    """
    if b"\0" in content:
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return clean(text.replace("\r\n", "\n").replace("\r", "\n"))
