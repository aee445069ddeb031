"""What a checkpoint, a change and a plan to put files back are made of.

A path is relative to the top of the work tree, with `/` between its parts; bytes that are no UTF-8 stand in it as
`os.fsdecode` has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SUBMODULE = "160000"
LINK = "120000"
EXECUTABLE = "100755"


@dataclass(frozen=True, slots=True)
class GitRepository:
    """A git repository with a work tree. `common_dir` is `git_dir`, except in a linked worktree."""

    top: Path
    git_dir: Path
    common_dir: Path
    objects: Path
    object_format: str


@dataclass(frozen=True, slots=True)
class NoRepository:
    """`reason` says why no checkpoints can be taken, as the rest of a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class CheckpointLimits:
    """`file_bytes`: a larger file is left out. `seconds`: the longest that one git process may take."""

    file_bytes: int = 50 * 1024**2
    seconds: float = 900.0


Why = Literal["large", "unreadable", "special", "repository", "name", "changing"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A path that a checkpoint says nothing of: where it is missing in the tree, it was not deleted.

    `large`: over the limit; `unreadable`: without the permission to read; `special`: a pipe, a socket or a device;
    `repository`: a nested git repository that is no submodule; `name`: a name that git takes for its own;
    `changing`: it changed whenever it was read.
    """

    path: str
    size: int | None
    why: Why


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`largest` has the files that took longest to read, with their sizes: at most five, the largest first."""

    tree: str
    left_out: tuple[LeftOut, ...]
    seconds: float
    largest: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Latest:
    """A checkpoint that may serve a second time. `at` is when it was complete, in seconds of the monotonic clock.

    `mark` is what the list of checkpoints was then (`refs.mark_of`).
    """

    checkpoint: Checkpoint
    mark: tuple[int, int]
    at: float


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """`mode` as git writes it (six octal digits); `blob` names the content, or the commit of a submodule."""

    mode: str
    blob: str


What = Literal["added", "changed", "deleted", "mode", "type"]


@dataclass(frozen=True, slots=True)
class PathChange:
    """`mode`: the x bit alone; `type`: a file, a symbolic link or a submodule became another of these."""

    path: str
    what: What
    old: TreeEntry | None
    new: TreeEntry | None


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file that were added and removed; None for what is no text."""

    added: int | None
    removed: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """What one turn changed."""

    changes: tuple[PathChange, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that somebody else changed, or that stands where another one has to be put back.

    `expected` is what the last step left there, `found` what is there, `target` what it was before the first step.
    """

    path: str
    expected: TreeEntry | None
    found: TreeEntry | None
    target: TreeEntry | None


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """`restore` has what each path is to be, None for one that is to be deleted.

    `submodules` name the paths that stay as they are, since the work tree of a submodule is its own repository's.
    """

    restore: Mapping[str, TreeEntry | None]
    conflicts: tuple[Conflict, ...]
    submodules: tuple[str, ...] = ()
