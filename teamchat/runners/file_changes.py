"""What changed in a work tree while an agent ran."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

Kind = Literal["added", "changed", "deleted", "mode", "type"]


class FileChange(Struct, frozen=True):
    """`path` is relative to where the agent ran. `mode`: only the x bit; `type`: a file became a link, say.

    `added` and `removed` count lines; they are None for what is no text.
    """

    path: str
    what: Kind
    added: int | None = None
    removed: int | None = None


class FileChanges(Struct, frozen=True):
    """The difference between the checkpoints of a work tree before and after a turn, whoever changed what in between.

    `top` is the root of the work tree, `before` and `after` name the trees in its repository. `files` holds the first
    changes by path, and `more` is how many there are beyond these. `left_out` names the files that a checkpoint does
    not have (too large, unreadable, a repository of their own). `shared_with` holds the numbers of turns that may write
    and ran in the same work tree at the same time. `slow` says that a checkpoint took long, and on which files.
    """

    top: str
    before: str
    after: str
    files: tuple[FileChange, ...] = ()
    more: int = 0
    left_out: tuple[str, ...] = ()
    shared_with: tuple[int, ...] = ()
    slow: str | None = None

    @property
    def count(self) -> int:
        """How many files changed."""
        return len(self.files) + self.more


class NoCheckpoint(Struct, frozen=True):
    """Why it is not known what changed, as the rest of a sentence."""

    reason: str


class WorkTree(Protocol):
    """The work tree of a turn that runs, as it was before the turn."""

    def changes(self, cwd: Path) -> FileChanges | NoCheckpoint:
        """What changed since, with paths relative to `cwd`. Blocks while git reads the work tree."""
        ...
