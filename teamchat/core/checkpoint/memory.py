"""The memory of a look at the files, in a file beside the index: the next look asks only for changes.

It is valid for the index that it names. After a killed look it is valid for none, and everything is found anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, ValidationError, convert, field, to_builtins

from teamchat.core.checkpoint.shadow import keep_file
from teamchat.core.checkpoint.values import EXECUTABLE, FILE
from teamchat.core.checkpoint.walk import Folder

Stamp: TypeAlias = tuple[int, int, int, int]
NOTHING: Stamp = (0, 0, 0, 0)


class Permissions(Struct):
    """The permissions of files: `number` files have the bits `most`; `others` has different bits by path.

    A path without any, such as a link or a submodule, is among the others with None. `most` has to stay a usual value,
    or the files with it have to be found again.
    """

    most: int = 0
    number: int = 0
    others: dict[str, int | None] = {}

    @classmethod
    def of(cls, found: Mapping[str, int | None]) -> Permissions:
        """Count the permissions of all files, given by path."""
        counted = Counter(bits for bits in found.values() if bits is not None)
        most = min(counted, key=lambda bits: (-counted[bits], bits), default=0)
        return cls(most, counted[most], {path: bits for path, bits in found.items() if bits != most})

    def put(self, path: str, bits: int | None) -> None:
        """Add a file that is not counted yet."""
        if bits == self.most:
            self.number += 1
        else:
            self.others[path] = bits

    def remove(self, path: str) -> None:
        """Remove a counted file."""
        if path in self.others:
            del self.others[path]
        else:
            self.number -= 1

    def usual(self) -> dict[str, int]:
        """Return the permissions of most files by their modes in git."""
        counted = Counter({self.most: self.number}) + Counter(bits for bits in self.others.values() if bits is not None)
        usual: dict[str, int] = {}
        for some in sorted(counted, key=lambda bits: (-counted[bits], bits)):
            usual.setdefault(EXECUTABLE if some & 0o100 else FILE, some)
        return usual


class Memory(Struct):
    """The last look's knowledge of a work tree."""

    device: int = 0
    """The device of the work tree."""
    index: Stamp = NOTHING
    """The state of the index that the look left."""
    users: Stamp = NOTHING
    """The state of the user's index."""
    tree: str = ""
    """The tree of the index."""
    checkpoint: str = ""
    """The checkpoint with that tree, and with the notes of the digest `noted`."""
    noted: str = ""
    permissions: Permissions = field(default_factory=Permissions)
    folders: list[str] = []
    """The folders of the files in the index."""
    again: list[str] = []
    """The files whose permissions the next look reads again."""
    submodules: dict[str, bool] = {}
    """The submodules of the user's index, True where ours has them."""
    ignored: list[str] = []
    """The folders that git ignored when a turn began last."""
    ignored_by: str = ""
    """The digest of the rules that ignored them."""
    others: list[str] = []
    """The paths that git did not ignore and the index lacks."""
    others_by: str = ""
    """The digest of the rules that did not ignore them."""
    closed: list[str] = []
    """The folders that cannot be opened."""
    local: bool = False
    """Whether the file system tells the time of each change."""
    walked: dict[str, Folder] = {}
    """The folders of the work tree; empty unless it is `local`."""

    def keep(self, file: Path) -> None:
        """Write it. Raises `OSError`."""
        keep_file(file, json.dumps(to_builtins(self)).encode())


def recalled(file: Path, index: Path, device: int) -> Memory | None:
    """Read the memory of the last look at the files; None if the index or the device is another one now."""
    try:
        memory = convert(json.loads(file.read_bytes()), Memory)
    except (OSError, ValueError, ValidationError):
        return None
    return memory if memory.index == stamp(index) != NOTHING and memory.device == device else None


def stamp(file: Path) -> Stamp:
    """Return a value that changes with each write of a file that is replaced; `NOTHING` without a file."""
    try:
        status = file.stat()
    except OSError:
        return NOTHING
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def folders_of_files(paths: Iterable[str]) -> list[str]:
    """List the folders that the files are in, and those above."""
    found = {path.rpartition("/")[0] for path in paths}
    above = {folder.rpartition("/")[0] for folder in found}
    while not above <= found:
        found |= above
        above = {folder.rpartition("/")[0] for folder in above}
    return sorted(found - {""})
