"""Brings a member's changes in its worktree into the user's files, all of them or none.

First the user's files are recorded, then the merged tree; only then is a file written. A merge that is killed meanwhile
finds both trees again, and does its work once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint.compare import changes, entries, tree_with
from teamchat.core.checkpoint.compare import stat as lines_of
from teamchat.core.checkpoint.disk import in_the_way
from teamchat.core.checkpoint.merge import Clash, Favour, merge
from teamchat.core.checkpoint.plan import plan_restore
from teamchat.core.checkpoint.refs import git_command, set_refs, tree_of
from teamchat.core.checkpoint.restore import FilesChanged, KeptFile, Restore, restore
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import GitRepository, Lines, PathChange, TreeEntry, TurnChanges
from teamchat.core.text.commands import command_of
from teamchat.core.worktrees.make import changed_paths, unmerged
from teamchat.core.worktrees.records import Opened

_Known = Mapping[str, TreeEntry]
MOST_SHOWN = 3  # files that were changed since a merge, each with a command
_BEFORE, _AFTER, _THEIRS = "merging/before", "merging/after", "merging/theirs"


class Difference(Struct, frozen=True):
    """A member's changes since its worktree was made or merged that the user's files do not have as well."""

    changes: tuple[PathChange, ...]
    lines: Mapping[str, Lines]
    tree: str

    @property
    def added(self) -> int:
        """The number of added lines, without files that are not text."""
        return sum(self.lines[change.path].added or 0 for change in self.changes)

    @property
    def removed(self) -> int:
        return sum(self.lines[change.path].removed or 0 for change in self.changes)


class Merge(Struct, frozen=True):
    """The changes that a merge has made in the user's files; none with `clashes` and no favoured side.

    `kept` are the files that it took out and no checkpoint has.
    """

    changes: tuple[PathChange, ...] = ()
    clashes: tuple[Clash, ...] = ()
    done: bool = True
    kept: tuple[KeptFile, ...] = ()


def difference(state: Path, there: Opened) -> Difference:
    """Compare both work trees: the changes that are not merged yet. Blocks. Raises `CheckpointFailed`."""
    now = take(there.own, state, there.tree.ref("now")).tree
    seen = take(there.home, state, there.tree.ref("seen"), also=changed_paths(there, now)).tree
    changed = unmerged(there, now, seen)
    return Difference(changed, lines_of(there.home, there.base, now) if changed else {}, now)


def merge_into(state: Path, there: Opened, favour: Favour | None = None) -> Merge:
    """Merge the worktree into the user's files, or complete a merge that was killed. Index and HEAD stay unchanged.

    The undo of a merge that was killed is completed first. Raises `CheckpointFailed`.
    """
    tree, home = there.tree, there.home
    if completed := _complete(state, there):
        return completed
    if tree_of(home, state, tree.ref("merged/base")) == there.base:  # only an undo that began sets that base again
        undo_merge(state, there)
    theirs = take(there.own, state, tree.ref(_THEIRS)).tree
    before = take(home, state, tree.ref(_BEFORE), also=changed_paths(there, theirs)).tree
    merged = merge(home, there.base, before, theirs, favour)
    clashes = tuple(clash for clash in merged.clashes if favour is None or clash.final)
    blocked = tuple(_on_disk(home, entries(home, before), merged.paths))
    if clashes or blocked:
        set_refs(home, state, {tree.ref(_THEIRS): None, tree.ref(_BEFORE): None})
        return Merge((), (*clashes, *blocked), done=False)
    after = tree_with(home, before, merged.paths)
    set_refs(home, state, {tree.ref(_AFTER): after})
    return _apply(state, there, before, after, theirs, entries(home, before))


def undo_merge(state: Path, there: Opened) -> Merge | None:
    """Put back the user's files to their state before the last merge of the worktree; None without a merge.

    Files that were changed since are clashes, and then nothing is put back. A merge that was killed is completed first.
    """
    tree, home = there.tree, there.home
    _complete(state, there)
    trees = {name: tree_of(home, state, tree.ref(f"merged/{name}")) for name in ("before", "after", "base")}
    before, after, base = trees["before"], trees["after"], trees["base"]
    if before is None or after is None or base is None:
        return None
    made = changes(home, before, after)
    current = _seen(state, there, made)
    plan = plan_restore([TurnChanges(made)], current)
    if plan.conflicts:
        clashes = (Clash(conflict.path, "changed since it was merged") for conflict in plan.conflicts)
        return Merge((), tuple(clashes), done=False)
    set_refs(home, state, {tree.ref("base"): base})  # first: whoever is killed has what is put back as not merged
    try:
        out = restore(state, [Restore(home, current, plan.restore)])
    except FilesChanged as changed:
        set_refs(home, state, {tree.ref("base"): there.base})
        return _changed_meanwhile(changed)
    set_refs(home, state, {tree.ref(f"merged/{name}"): None for name in trees})
    return Merge(changes(home, after, before), kept=out)


def _seen(state: Path, there: Opened, made: Iterable[PathChange]) -> _Known:
    """Record the user's current files, also files made by a merge that git ignores or only the user may read."""
    also = {change.path for change in made}
    return entries(there.home, take(there.home, state, there.tree.ref("seen"), also=also).tree)


def _changed_meanwhile(changed: FilesChanged) -> Merge:
    clashes = tuple(Clash(path, "changed meanwhile, by somebody else") for path in changed.paths)
    return Merge((), clashes, done=False, kept=changed.kept)


def since_merge(state: Path, there: Opened, clashes: Sequence[Clash]) -> tuple[list[str], str | None]:
    """Write commands for files that were changed since the last merge: each shows one, the last restores the merge.

    Files that the merge deleted, and files whose names are not text, are left out.
    """
    after = tree_of(there.home, state, there.tree.ref("merged/after"))
    known = entries(there.home, after) if after else {}
    paths = [clash.path for clash in clashes if clash.path in known and clash.path.isprintable()]
    if not paths:
        return [], None
    top = there.home.top
    git = git_command(there.home)
    shown = [  # git diff does not compare untracked files
        " | ".join((command_of(*git, "show", f"{after}:{path}"), command_of("diff", "-u", "-", str(top / path))))
        for path in paths[:MOST_SHOWN]
    ]
    restore = [*git, "restore", f"--source={after}", "--", *(f":(top,literal){path}" for path in paths)]
    return shown, command_of(*restore)


def _complete(state: Path, there: Opened) -> Merge | None:
    """Complete a merge that was killed; None where none was, or where the user has changed its files since."""
    tree, home = there.tree, there.home
    before, after, theirs = (tree_of(home, state, tree.ref(name)) for name in (_BEFORE, _AFTER, _THEIRS))
    if before is None or after is None or theirs is None:
        return None
    made = changes(home, after, before)
    current = _seen(state, there, made)
    if plan_restore([TurnChanges(made)], current).conflicts:
        set_refs(home, state, {tree.ref(name): None for name in (_BEFORE, _AFTER, _THEIRS)})
        return None
    return _apply(state, there, before, after, theirs, current)


def _apply(state: Path, there: Opened, before: str, after: str, theirs: str, known: _Known) -> Merge:
    """Write the merge into the user's files.

    `known` has the user's files as a checkpoint has them, which may differ from `before` by now.
    """
    tree, home = there.tree, there.home
    made = changes(home, before, after)
    refs: dict[str, str | None] = {tree.ref(name): None for name in (_BEFORE, _AFTER, _THEIRS)}
    try:
        wanted = {change.path: _without_set_id(change.new) for change in made}
        kept_files = restore(state, [Restore(home, known, wanted)])
    except FilesChanged as changed:
        set_refs(home, state, refs)
        return _changed_meanwhile(changed)
    refs |= {tree.ref("base"): theirs}
    if made:
        refs |= {tree.ref("merged/before"): before, tree.ref("merged/after"): after}
        refs |= {tree.ref("merged/base"): there.base}
    set_refs(home, state, refs)
    return Merge(made, kept=kept_files)


def _without_set_id(entry: TreeEntry | None) -> TreeEntry | None:
    """Drop the bits by which a program runs as its owner or group: a member gives them to no file of the user."""
    return replace(entry, bits=entry.bits & 0o1777) if entry and entry.bits is not None else entry


def _on_disk(
    home: GitRepository, known: Mapping[str, TreeEntry], paths: Mapping[str, TreeEntry | None]
) -> Iterator[Clash]:
    """Find files that would be written over one without a checkpoint, as git ignores it or it is too large."""
    for path, entry in paths.items():
        if entry is None or path in known:
            continue
        if place := in_the_way(home.top, path, known, paths):
            yield Clash(path, f"{place} is in the way, which git ignores or teamchat does not record")
