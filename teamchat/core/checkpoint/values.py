"""The values of checkpoints, changes and plans that put files back.

A path is relative to the top of the work tree, with `/` between its parts; bytes that are no UTF-8 stand in it as
`os.fsdecode` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

SUBMODULE = "160000"
LINK = "120000"
FILE, EXECUTABLE = "100644", "100755"


class GitRepository(Struct, frozen=True):
    """A git repository with a work tree. `common_dir` is `git_dir`, except in a linked worktree.

    `store` is teamchat's own git directory for its checkpoints, which is not there before the first one.
    """

    top: Path
    git_dir: Path
    common_dir: Path
    store: Path
    object_format: str


class NoRepository(Struct, frozen=True):
    """`reason` says why no checkpoints can be taken, as the rest of a sentence; `hint` is the command that mends it.

    `refused`: there is a repository, and git does not read it.
    """

    reason: str
    hint: str | None = None
    refused: bool = False


class CheckpointLimits(Struct, frozen=True):
    """`file_bytes`: a larger file is left out. `seconds`: the longest that one git process may take.

    `idle_s`: the longest that it may do nothing. `stopped` says whether a person wants it to end.
    """

    file_bytes: int = 50 * 1024**2
    seconds: float = 240.0
    idle_s: float = 10.0
    stopped: Callable[[], bool] | None = None


Why = Literal[
    "large", "unreadable", "special", "repository", "name", "changing", "private", "earlier", "submodule", "output"
]


class LeftOut(Struct, frozen=True):
    """A path that a checkpoint says nothing of: where it is missing in the tree, it was not deleted.

    `large`: over the limit; `unreadable`: without the permission to read; `special`: a pipe, a socket or a device;
    `repository`: a nested git repository that is no submodule; `name`: a name that git takes for its own;
    `changing`: it changed whenever it was read; `private`: nobody tracks it, and its mode or its name says that it is
    a secret; `earlier`: it was there, unrecorded, before the turn; `submodule`: what is inside, beside its commit;
    `output`: teamchat itself writes it, as its standard output or standard error.
    `stamp` changes with the file, or with any file inside.
    """

    path: str
    size: int | None
    why: Why
    stamp: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeftOut) and (self.path, self.size, self.why) == (other.path, other.size, other.why)

    def __hash__(self) -> int:
        return hash((self.path, self.size, self.why))

    def __ne__(self, other: object) -> bool:
        return not self == other


class Checkpoint(Struct, frozen=True):
    """`tree` names it: the id of a commit in the store, the same for the same files.

    `largest` has the files that took longest to read, with their sizes: at most five, the largest first.
    """

    tree: str
    left_out: tuple[LeftOut, ...]
    seconds: float
    largest: tuple[tuple[str, int], ...]


class TreeEntry(Struct, frozen=True):
    """`mode` as git writes it (six octal digits); `blob` names the content, or the commit of a submodule.

    `bits` are the permissions that the file had, None where they are not known; they make no difference.
    """

    mode: str
    blob: str
    bits: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeEntry) and (self.mode, self.blob) == (other.mode, other.blob)

    def __hash__(self) -> int:
        return hash((self.mode, self.blob))

    def __ne__(self, other: object) -> bool:
        return not self == other


What = Literal["added", "changed", "deleted", "mode", "type"]


class PathChange(Struct, frozen=True):
    """`mode`: the x bit alone; `type`: a file, a symbolic link or a submodule became another of these."""

    path: str
    what: What
    old: TreeEntry | None
    new: TreeEntry | None


class Lines(Struct, frozen=True):
    """The numbers of lines that were added to a file and removed; None for a binary file."""

    added: int | None
    removed: int | None


class TurnChanges(Struct, frozen=True):
    """The changes of one turn."""

    changes: tuple[PathChange, ...]


class Conflict(Struct, frozen=True):
    """A path that somebody else changed, or that stands where another one has to be put back.

    `expected` is the content that the last step left, `found` the current one, `target` the one before the first step.
    """

    path: str
    expected: TreeEntry | None
    found: TreeEntry | None
    target: TreeEntry | None


class RestorePlan(Struct, frozen=True):
    """`restore` has the planned content of each path, None for a path to delete.

    `submodules` name paths that stay unchanged, since the work tree of a submodule belongs to its own repository.
    """

    restore: Mapping[str, TreeEntry | None]
    conflicts: tuple[Conflict, ...]
    submodules: tuple[str, ...] = ()
