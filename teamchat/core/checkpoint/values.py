"""What a checkpoint, a change and a plan to put files back are made of.

A path is relative to the top of the work tree, with `/` between its parts; bytes that are no UTF-8 stand in it as
`os.fsdecode` has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

SUBMODULE = "160000"
LINK = "120000"
EXECUTABLE = "100755"


class GitRepository(Struct, frozen=True):
    """A git repository with a work tree. `common_dir` is `git_dir`, except in a linked worktree."""

    top: Path
    git_dir: Path
    common_dir: Path
    objects: Path
    object_format: str


class NoRepository(Struct, frozen=True):
    """`reason` says why no checkpoints can be taken, as the rest of a sentence."""

    reason: str


class CheckpointLimits(Struct, frozen=True):
    """`file_bytes`: a larger file is left out. `seconds`: the longest that one git process may take."""

    file_bytes: int = 50 * 1024**2
    seconds: float = 900.0


Why = Literal["large", "unreadable", "special", "repository", "name", "changing"]


class LeftOut(Struct, frozen=True):
    """A path that a checkpoint says nothing of: where it is missing in the tree, it was not deleted.

    `large`: over the limit; `unreadable`: without the permission to read; `special`: a pipe, a socket or a device;
    `repository`: a nested git repository that is no submodule; `name`: a name that git takes for its own;
    `changing`: it changed whenever it was read.
    """

    path: str
    size: int | None
    why: Why


class Checkpoint(Struct, frozen=True):
    """`largest` has the files that took longest to read, with their sizes: at most five, the largest first."""

    tree: str
    left_out: tuple[LeftOut, ...]
    seconds: float
    largest: tuple[tuple[str, int], ...]


class Latest(Struct, frozen=True):
    """A checkpoint that may serve a second time. `at` is when it was complete, in seconds of the monotonic clock.

    `mark` is what the list of checkpoints was then (`refs.mark_of`).
    """

    checkpoint: Checkpoint
    mark: tuple[int, int]
    at: float

    @property
    def began(self) -> float:
        """When the first file was looked at, or a moment earlier."""
        return self.at - self.checkpoint.seconds


class TreeEntry(Struct, frozen=True):
    """`mode` as git writes it (six octal digits); `blob` names the content, or the commit of a submodule."""

    mode: str
    blob: str


What = Literal["added", "changed", "deleted", "mode", "type"]


class PathChange(Struct, frozen=True):
    """`mode`: the x bit alone; `type`: a file, a symbolic link or a submodule became another of these."""

    path: str
    what: What
    old: TreeEntry | None
    new: TreeEntry | None


class Lines(Struct, frozen=True):
    """The lines of a file that were added and removed; None for what is no text."""

    added: int | None
    removed: int | None


class Step(Struct, frozen=True):
    """What one turn changed."""

    changes: tuple[PathChange, ...]


class Conflict(Struct, frozen=True):
    """A path that somebody else changed, or that stands where another one has to be put back.

    `expected` is what the last step left there, `found` what is there, `target` what it was before the first step.
    """

    path: str
    expected: TreeEntry | None
    found: TreeEntry | None
    target: TreeEntry | None


class RestorePlan(Struct, frozen=True):
    """`restore` has what each path is to be, None for one that is to be deleted.

    `submodules` name the paths that stay as they are, since the work tree of a submodule is its own repository's.
    """

    restore: Mapping[str, TreeEntry | None]
    conflicts: tuple[Conflict, ...]
    submodules: tuple[str, ...] = ()
