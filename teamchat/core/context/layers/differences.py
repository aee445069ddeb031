"""The differences layer: unified diffs of the worktrees of members that a judge compares.

Each is called by its letter: neither a name nor a path or branch of a worktree is told. In the room of the layer all
members have equal shares; what one does not need goes to the others. Small diffs are taken first, a diff that does not
fit loses its end, and the layer names the missing part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint import compare
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.values import GitRepository, NoRepository
from teamchat.core.context.layers.collector import LayerText
from teamchat.core.text.clean import printable, told
from teamchat.core.text.redact import redact_shapes
from teamchat.core.worktrees.make import usable
from teamchat.core.worktrees.merging import Difference, difference
from teamchat.core.worktrees.records import find

MOST_NAMED = 10  # files that are left out and named
LONGEST_NAME = 200  # characters of such a name
_LINE, _HUNK = b"\n", b"\n@@ "
_LINE_ENDS = {0x2028: "\\u2028", 0x2029: "\\u2029"}  # a line that they would begin is none of the diff


class _Changed(Struct, frozen=True):
    """A member's changes. `sizes` are the bytes of the diff of each path, in the order of the changes."""

    home: GitRepository
    base: str
    found: Difference
    sizes: tuple[int, ...]

    def diffs(self) -> Iterator[bytes]:
        """Read the diff of each path anew: together they may not fit into memory."""
        wanted = {change.path for change in self.found.changes}
        every = compare.changes(self.home, self.base, self.found.tree)
        return compress(
            compare.texts(self.home, self.base, self.found.tree), (change.path in wanted for change in every)
        )


class _Shown(Struct, frozen=True):
    """The diffs that a prompt has room for, and what it lacks, as a person reads it."""

    text: str
    lacks: tuple[str, ...]


def tell_differences(
    state: Path, session: int, labels: Sequence[str], members: Sequence[str], room: int, *, redact: bool
) -> LayerText:
    """Show what the `members` changed, each by its label in `labels`, in about `room` bytes.

    The note names the parts left out. Blocks while git reads the worktrees. Raises `UsageError` and `CheckpointFailed`.
    """
    changed = [_changed(state, session, member) for member in members]
    rooms = shares([sum(work.sizes) if work else 0 for work in changed], room)
    shown = [_shown(work, most) if work else _Shown("", ()) for work, most in zip(changed, rooms, strict=True)]
    sections = (
        _section(f"Answer {label}", work, part) for label, work, part in zip(labels, changed, shown, strict=True)
    )
    text = "\n\n".join(sections)
    lacks = [f"{what} of {member}" for member, part in zip(members, shown, strict=True) for what in part.lacks]
    return LayerText(redact_shapes(text)[0] if redact else text, note=", ".join(lacks) or None)


def _changed(state: Path, session: int, member: str) -> _Changed | None:
    """Measure a member's changes; None for a member without a worktree, which may only read."""
    tree = find(state, session, member)
    if tree is None:
        return None
    there = usable(state, tree)
    return _measured(there.home, there.base, difference(state, there))


def _measured(home: GitRepository, base: str, found: Difference) -> _Changed:
    without = _Changed(home, base, found, ())
    return _Changed(home, base, found, tuple(map(len, without.diffs())) if found.changes else ())


def tell_changes(folder: Path, state: Path, trees: tuple[str, ...], room: int, *, redact: bool) -> LayerText:
    """Show what changed between two git trees of the `folder`'s work tree, in about `room` bytes.

    Blocks while git reads them. Raises `CheckpointFailed`.
    """
    home, (old, new) = find_repository(folder, state), trees
    if isinstance(home, NoRepository) or not (old and new):
        return LayerText("What changed since the task began is not known.")
    changes, lines = compare.changes_and_lines(home, old, new)
    changed = _measured(home, old, Difference(changes, lines, new))
    shown = _shown(changed, room) if changes else _Shown("", ())
    text = _section("Since the task began somebody", changed, shown)
    return LayerText(redact_shapes(text)[0] if redact else text, note=", ".join(shown.lacks) or None)


def _section(answer: str, changed: _Changed | None, shown: _Shown) -> str:
    if changed is None or not changed.found.changes:
        return f"{answer} changed no file."
    compared, number = changed.found, len(changed.found.changes)
    head = f"{answer} changed {number} file{'s' * (number > 1)} (+{compared.added} \u2212{compared.removed}):"
    lacks = f"Not shown, for lack of room: {', '.join(shown.lacks)}." if shown.lacks else ""
    return "\n".join(filter(None, (head, shown.text, lacks)))


def _shown(changed: _Changed, room: int) -> _Shown:
    allowed = _allowed(changed.sizes, room)
    texts, cut, gone = [], [], []
    for change, diff, most in zip(changed.found.changes, changed.diffs(), allowed, strict=True):
        name = printable(readable(change.path))[:LONGEST_NAME]
        excerpt = diff if len(diff) <= most else diff[: diff.rfind(_LINE, 0, most) + 1]
        if excerpt != diff and _HUNK not in excerpt:
            gone.append(name)
            continue
        texts.append(_readable(excerpt))
        if missing := diff.count(_LINE) - excerpt.count(_LINE):
            cut.append(f"the end of {name} ({missing:,} lines)")
    more = (f"{len(gone) - MOST_NAMED:,} more files",) if len(gone) > MOST_NAMED else ()
    return _Shown("\n".join(texts), (*cut, *gone[:MOST_NAMED], *more))


def _allowed(sizes: Sequence[int], room: int) -> list[int]:
    """Choose how many bytes of each diff are shown: the small ones whole, the beginning of one more, no others."""
    allowed = [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        allowed[index] = min(sizes[index], room)
        room -= allowed[index]
    return allowed


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Share the room: each diff gets its size, up to an equal share of the room that the smaller ones leave."""
    given = [0] * len(sizes)
    for left, index in zip(range(len(sizes), 0, -1), sorted(range(len(sizes)), key=sizes.__getitem__), strict=True):
        given[index] = min(sizes[index], room // left)
        room -= given[index]
    return given


def _readable(diff: bytes) -> str:
    """Quote a diff for a prompt: every line begins with a sign of the diff, whatever the files hold."""
    return told(diff.decode(errors="replace")).translate(_LINE_ENDS).rstrip("\n")
