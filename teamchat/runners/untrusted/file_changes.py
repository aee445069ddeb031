"""Changes in a work tree while an agent ran, and the lines that a call of an editing tool adds and removes.

The lines are counted by the texts that the call replaces.
"""

from __future__ import annotations

from itertools import takewhile
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
    """The work tree of a running turn, in its state before the turn."""

    def changes(self, cwd: Path) -> FileChanges | NoCheckpoint:
        """List the changes since then, with paths relative to `cwd`. Blocks while git reads the work tree."""
        ...


Lines = tuple[int, int]
"""Lines added and lines removed."""


def edited(old: object, new: object) -> Lines | None:
    """Count the lines that one text adds and removes in place of another, without their common beginning and end.

    Return None if one of them is not a text.
    """
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    before, after = old.splitlines(), new.splitlines()
    same = _same(zip(before, after, strict=False))
    before, after = before[same:], after[same:]
    same = _same(zip(reversed(before), reversed(after), strict=False))
    return len(after) - same, len(before) - same


def _same(pairs: zip[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def lines_of(arguments: object) -> Lines | None:
    """Count the lines of a call by its arguments; None if they do not name the replaced text.

    A call that writes a file is such a one.
    """
    match arguments:
        case {"old_string": old, "new_string": new} | {"oldString": old, "newString": new}:
            return edited(old, new)
        case {"edits": [*edits]} if edits:
            counts = [lines_of(edit) for edit in edits]
            known = [count for count in counts if count is not None]
            return (sum(add for add, _ in known), sum(gone for _, gone in known)) if len(known) == len(counts) else None
    return None
