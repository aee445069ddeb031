"""The plan that puts files back to their state before some turns: a pure function of the turns' changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from teamchat.core.checkpoint.paths import folders_of
from teamchat.core.checkpoint.values import SUBMODULE, Conflict, PathChange, RestorePlan, TreeEntry, TurnChanges


class _Path(Struct):
    """A path: `target` is its content before the first step, `left` the content after the last step that touched it."""

    target: TreeEntry | None
    left: TreeEntry | None
    foreign: bool = False

    def then(self, change: PathChange) -> None:
        self.foreign |= change.old != self.left
        self.left = change.new


def plan_restore(steps: Sequence[TurnChanges], current: Mapping[str, TreeEntry | None]) -> RestorePlan:
    """Plan how to undo `steps`, given in the order of their execution.

    `current` has every existing path; one that it lacks, or has as None, does not exist. A path is a conflict
    where somebody else changed it between two steps that touched it or after the last one, unless it is again as it was
    before the first; and where another path that stays is in the way: a file where a folder is needed, or the other way
    round. Only paths that a step touched are in the plan.
    """
    touched = _follow(steps)
    moved = {path: history for path, history in touched.items() if current.get(path) != history.target}
    submodules = {path for path, history in moved.items() if _is_submodule(history.target, current.get(path))}
    changed = {
        path for path, history in moved.items() if history.foreign or current.get(path) != history.left
    } - submodules
    restore = {path: history.target for path, history in moved.items() if path not in changed | submodules}
    blocked = _blocked(restore, current)
    conflicts = (
        Conflict(path, touched[path].left, current.get(path), touched[path].target) for path in changed | blocked
    )
    return RestorePlan(
        dict(sorted((path, entry) for path, entry in restore.items() if path not in blocked)),
        tuple(sorted(conflicts, key=lambda conflict: conflict.path)),
        tuple(sorted(submodules)),
    )


def _follow(steps: Iterable[TurnChanges]) -> dict[str, _Path]:
    touched: dict[str, _Path] = {}
    for step in steps:
        for change in step.changes:
            if change.path in touched:
                touched[change.path].then(change)
            else:
                touched[change.path] = _Path(change.old, change.new)
    return touched


def _is_submodule(*entries: TreeEntry | None) -> bool:
    return any(entry is not None and entry.mode == SUBMODULE for entry in entries)


def _blocked(restore: Mapping[str, TreeEntry | None], current: Mapping[str, TreeEntry | None]) -> set[str]:
    """Find paths that cannot be put back because of another that stays. A blocked path stays, too."""
    there = {path for path, entry in current.items() if entry is not None}
    blocked: set[str] = set()
    while True:
        back = {path for path, entry in restore.items() if entry is not None and path not in blocked}
        after = back | {path for path in there if path not in restore or path in blocked}
        folders = {folder for path in after for folder in folders_of(path)}
        new = {path for path in back if path in folders or not after.isdisjoint(folders_of(path))}
        if not new:
            return blocked
        blocked |= new
