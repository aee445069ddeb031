"""A tree that differs from another one in a few paths, made without an index.

With an index git takes two commands, each of which reads all of it: 17 ms with 50,000 files, for which the end of a
turn would wait. Here git prints the trees of the folders that change, and the new objects are written next to them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence

from teamchat.core.checkpoint.git import GitFailed
from teamchat.core.checkpoint.loose import write_object
from teamchat.core.checkpoint.paths import folders_of
from teamchat.core.checkpoint.shadow import Shadow
from teamchat.core.checkpoint.values import EXECUTABLE, LINK, SUBMODULE, TreeEntry
from teamchat.runners.regular_files import open_regular

_MOST_BYTES = 1 << 17  # of a file: it is read at each look until the index has it
_MOST_PRINTED = 1 << 18  # bytes of all trees: Python takes longer to read more than git for its index
_TREE = "40000"
_FILE = "100644"

Folder = dict[str, TreeEntry]
"""The entries of a folder by their names. A mode is as in a tree object: that of a folder has five digits."""


class Unfit(Exception):
    """Only git itself can record this: a file changes while it is read, say."""


def edited(shadow: Shadow, tree: str, paths: Mapping[str, TreeEntry | None]) -> str:
    """The tree with `paths` as they are given: None for what is gone. Raises `Unfit`, `GitFailed` and `OSError`."""
    names = ["", *sorted({folder for path in paths for folder in folders_of(path)})]
    folders = _folders(shadow, tree, names)
    for path, entry in paths.items():
        parent, _, name = path.rpartition("/")
        if entry is None:
            folders[parent].pop(name, None)
        else:
            folders[parent][name] = entry
    for folder in sorted(names[1:], key=lambda name: name.count("/"), reverse=True):
        parent, _, name = folder.rpartition("/")
        if folders[folder]:
            if paths.get(folder):
                raise Unfit
            folders[parent][name] = TreeEntry(_TREE, _write(shadow, folders[folder]))
        elif (now := folders[parent].get(name)) and now.mode == _TREE:
            del folders[parent][name]
    return _write(shadow, folders[""])


def entry_of(shadow: Shadow, path: str) -> TreeEntry | None:
    """What is at the path now; its content is in the repository then. None where nothing is.

    Raises `Unfit` and `OSError`.
    """
    place = shadow.repository.top / path
    try:
        status = place.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return TreeEntry(LINK, _blob(shadow, os.fsencode(place.readlink())))
    if status.st_size > _MOST_BYTES:
        raise Unfit
    with open_regular(place) as opened:
        before = os.fstat(opened.fileno())
        content = opened.read(_MOST_BYTES + 1)
        after = os.fstat(opened.fileno())
    if not _version(status) == _version(before) == _version(after) or len(content) != after.st_size:
        raise Unfit
    return TreeEntry(EXECUTABLE if after.st_mode & stat.S_IXUSR else _FILE, _blob(shadow, content))


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _blob(shadow: Shadow, content: bytes) -> str:
    return write_object(shadow.repository.objects, shadow.repository.object_format, "blob", content)


def _write(shadow: Shadow, folder: Folder) -> str:
    ordered = sorted((os.fsencode(name) + b"/" * (entry.mode == _TREE), entry) for name, entry in folder.items())
    content = b"".join(
        entry.mode.encode() + b" " + name.removesuffix(b"/") + b"\0" + bytes.fromhex(entry.blob)
        for name, entry in ordered
    )
    return write_object(shadow.repository.objects, shadow.repository.object_format, "tree", content)


def _folders(shadow: Shadow, tree: str, names: Sequence[str]) -> dict[str, Folder]:
    """The folders of the tree by their names, parents first; one that the tree does not have is empty."""
    if any("\n" in name for name in names):
        raise Unfit
    asked = [os.fsencode(f"{tree}:{name}") for name in names]
    printed = shadow.git("cat-file", "--batch", given=b"".join(one + b"\n" for one in asked))
    if len(printed) > _MOST_PRINTED:
        raise Unfit
    found: dict[str, Folder] = {}
    for name, one in zip(names, asked, strict=True):
        parent, _, last = name.rpartition("/")
        known = found[parent].get(last) if name else TreeEntry(_TREE, tree)
        head, _, printed = printed.partition(b"\n")
        blob, _, told = head.partition(b" ")
        content = b""
        if head != one + b" missing":
            size = int(told.rpartition(b" ")[2])
            content, printed = printed[:size], printed[size + 1 :]
        if known and known.mode == SUBMODULE:
            raise Unfit
        if not (known and known.mode == _TREE):
            found[name] = {}
        elif told.startswith(b"tree ") and blob.decode() == known.blob:
            found[name] = dict(_entries(content, len(known.blob) // 2))
        else:  # without this folder, its files would look deleted
            raise GitFailed("cat-file", b"a tree is missing")
    return found


def _entries(content: bytes, length: int) -> Iterator[tuple[str, TreeEntry]]:
    """The entries of a tree object. `length`: bytes of an object's name."""
    at = 0
    while at < len(content):
        space, end = content.index(b" ", at), content.index(b"\0", at)
        blob = content[end + 1 : end + 1 + length].hex()
        yield os.fsdecode(content[space + 1 : end]), TreeEntry(content[at:space].decode(), blob)
        at = end + 1 + length
