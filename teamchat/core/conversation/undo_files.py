"""What goes back in the files when turns are undone, or when an undo is redone; and what is in the way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from teamchat.core.checkpoint.compare import changes, entries, stat
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.plan import plan_restore
from teamchat.core.checkpoint.refs import trees_of
from teamchat.core.checkpoint.restore import restore
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import Conflict, GitRepository, Lines, NoRepository, RestorePlan, Step, TreeEntry
from teamchat.core.conversation.differences import known_changes
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.turns import Turn
from teamchat.core.store.undos import Undo
from teamchat.core.turn.work_trees import WorkTrees, readable
from teamchat.runners.file_changes import FileChange, FileChanges, NoCheckpoint


@dataclass(frozen=True, slots=True)
class TreePlan:
    """What goes back in one work tree, in which the checkpoint `now` was taken before.

    `files` says how the paths that go back differ from what they will be, `left_out` which paths no checkpoint has.
    """

    repository: GitRepository
    now: str
    plan: RestorePlan
    files: tuple[FileChange, ...]
    left_out: tuple[str, ...]

    @property
    def top(self) -> str:
        """The work tree's folder."""
        return str(self.repository.top)

    def targets(self, *, force: bool) -> Mapping[str, TreeEntry | None]:
        """What each path is to be; with `force` also those that somebody else changed."""
        forced = {conflict.path: conflict.target for conflict in self.plan.conflicts} if force else {}
        return {**self.plan.restore, **forced}


@dataclass(frozen=True, slots=True)
class FilesPlan:
    """What goes back in each work tree. `not_undone` says what does not, a sentence each."""

    trees: tuple[TreePlan, ...] = ()
    not_undone: tuple[str, ...] = ()

    @property
    def conflicts(self) -> tuple[str, ...]:
        """The paths that somebody else changed since, or that are in the way."""
        return tuple(readable(conflict.path) for one in self.trees for conflict in one.plan.conflicts)

    @property
    def files(self) -> tuple[FileChange, ...]:
        """The files that go back."""
        return tuple(file for one in self.trees for file in one.files)

    @property
    def now(self) -> tuple[str, ...]:
        """The trees as they are."""
        return tuple(one.now for one in self.trees)

    def apply(self, trees: WorkTrees, *, force: bool) -> None:
        """Put the files back. Whoever was killed does it again. Raises `CheckpointFailed`, also for some of them."""
        for one in self.trees:
            restore(one.repository, trees.folder, one.targets(force=force))

    def take(self, trees: WorkTrees, name: str) -> dict[str, str]:
        """Checkpoints of all the work trees, by their folders. Raises `CheckpointFailed`."""
        refs = _names(trees, name, [one.top for one in self.trees])
        return {one.top: take(one.repository, trees.folder, refs[one.top]).tree for one in self.trees}


def plan_undo_of_files(trees: WorkTrees, turns: Sequence[Turn], name: str) -> FilesPlan:
    """How the files go back to before the turns, which are in order and all of those that are undone.

    The files as they are become the checkpoints of `name`. Raises `CheckpointFailed`.
    """
    by_top: dict[str, list[tuple[Turn, FileChanges]]] = {}
    for turn in turns:
        if found := known_changes(turn):
            by_top.setdefault(found.top, []).append((turn, found))
    refs = _names(trees, name, by_top)
    plans, not_undone = [], list(_unknown(turns))
    for top, done in by_top.items():
        if all(found.before == found.after for _, found in done):
            continue
        repository = find_repository(Path(top))
        if isinstance(repository, NoRepository):
            not_undone.append(f"the files in {top} stay as they are: {repository.reason}")
        elif steps := _steps(trees, repository, [turn for turn, _ in done]):
            left_out = {path for _, found in done for path in found.left_out}
            plans.append(_plan(trees, repository, steps, refs[top], left_out))
        else:
            not_undone.append(
                f"the files in {top} stay as they are: checkpoints are no longer there (keep_checkpoints)"
            )
    return FilesPlan(tuple(plans), tuple(not_undone))


def plan_redo_of_files(trees: WorkTrees, undo: Undo, name: str) -> FilesPlan:
    """How the files that an undo took back come again; the rest as in `plan_undo_of_files`."""
    plans, not_undone = [], []
    refs = _names(trees, name, undo.trees)
    for top, (before, after) in undo.trees.items():
        repository = find_repository(Path(top))
        if isinstance(repository, NoRepository):
            not_undone.append(f"the files in {top} stay as they are: {repository.reason}")
        elif before and after and {before, after} <= set(_taken(trees, repository).values()):
            plans.append(_plan(trees, repository, [(before, after)], refs[top], ()))
        else:
            not_undone.append(
                f"the files in {top} stay as they are: checkpoints are no longer there (keep_checkpoints)"
            )
    return FilesPlan(tuple(plans), tuple(not_undone))


def _names(trees: WorkTrees, name: str, tops: Iterable[str]) -> dict[str, str]:
    """The ref of each work tree: those of one repository share its refs."""
    ends = (f"-{number}" if number else "" for number, _ in enumerate(tops))
    return {top: f"{trees.refs}/{name}{end}" for top, end in zip(tops, ends, strict=True)}


def _taken(trees: WorkTrees, repository: GitRepository) -> dict[str, str]:
    return trees_of(repository, trees.folder, trees.refs.removeprefix("refs/teamchat/"))


def _unknown(turns: Iterable[Turn]) -> Iterator[str]:
    """The turns whose files nobody recorded, by the reason."""
    by_reason: dict[str, list[Turn]] = {}
    for turn in turns:
        changed = turn.outcome.changes if turn.outcome else None
        if isinstance(changed, NoCheckpoint):
            by_reason.setdefault(changed.reason, []).append(turn)
        elif turn.outcome and changed is None and turn.outcome.files:
            by_reason.setdefault("an older teamchat or a replay ran it", []).append(turn)
    for reason, some in by_reason.items():
        numbers = ", ".join(str(turn.number) for turn in some)
        told = ", ".join(dict.fromkeys(file for turn in some if turn.outcome for file in turn.outcome.files))
        reported = f"; its CLI reported {told}" if told else ""
        yield f"files of turn {numbers} stay as they are: {reason}{reported}"


def _steps(trees: WorkTrees, repository: GitRepository, turns: Sequence[Turn]) -> list[tuple[str, str]]:
    """What the turns did to the files, from tree to tree; empty where a checkpoint is no longer there.

    Turns that overlap saw each other's changes. So time is cut at every checkpoint, and a part belongs to the turns
    while any of them was at work.
    """
    taken = _taken(trees, repository)
    numbers = {f"{trees.refs}/{turn.number}/{when}": turn.number for turn in turns for when in ("before", "after")}
    if not numbers.keys() <= taken.keys():
        return []
    at_work: set[int] = set()
    steps = []
    for ref, following in pairwise(ref for ref in taken if ref in numbers):
        at_work ^= {numbers[ref]}
        if at_work:
            steps.append((taken[ref], taken[following]))
    return steps


def _plan(
    trees: WorkTrees, repository: GitRepository, steps: Sequence[tuple[str, str]], ref: str, left_out: Iterable[str]
) -> TreePlan:
    now = take(repository, trees.folder, ref)
    done = [Step(changes(repository, old, new)) for old, new in steps if old != new]
    current = entries(repository, now.tree)
    plan = _without_unseen(repository, plan_restore(done, current), current)
    unseen = {readable(one.path) for one in now.left_out}
    files = tuple(_files(repository, steps[0][0], now.tree, plan))
    return TreePlan(repository, now.tree, plan, files, tuple(sorted(unseen.union(left_out))))


def _without_unseen(repository: GitRepository, plan: RestorePlan, current: Mapping[str, TreeEntry]) -> RestorePlan:
    """Make conflicts of the paths at which something is that checkpoints leave out: nothing else has it."""
    unseen = {path for path in plan.restore if path not in current and _holds(f"{repository.top}/{path}")}
    found = tuple(Conflict(path, None, None, plan.restore[path]) for path in sorted(unseen))
    kept = {path: entry for path, entry in plan.restore.items() if path not in unseen}
    return replace(plan, restore=kept, conflicts=(*plan.conflicts, *found))


def _holds(place: str) -> bool:
    """Whether anything but empty folders is at a place."""
    if os.path.isdir(place) and not os.path.islink(place):  # noqa: PTH112, PTH114 (paths of any bytes)
        return any(names for _, _, names in os.walk(place))
    return os.path.lexists(place)


def _files(repository: GitRepository, old: str, now: str, plan: RestorePlan) -> Iterator[FileChange]:
    """The paths that go back. Lines are counted where a path goes back to what the tree `old` has."""
    differ = {change.path: change for change in changes(repository, old, now)}
    lines = stat(repository, old, now)
    for path, target in plan.restore.items():
        change = differ.get(path)
        if change and change.old == target:
            count = lines.get(path, Lines(None, None))
            yield FileChange(readable(path), change.what, count.added, count.removed)
        else:
            yield FileChange(readable(path), "changed")


def refuse_conflicts(plan: FilesPlan, *commands: str, force: bool) -> None:
    """Raises `CheckpointFailed` where somebody else changed files, unless they may be overwritten."""
    if plan.conflicts and not force:
        names = ", ".join(plan.conflicts[:5])
        more = f" and {len(plan.conflicts) - 5} more" if len(plan.conflicts) > 5 else ""
        raise CheckpointFailed(f"nothing was done: {names}{more} changed since, by somebody else", "\n".join(commands))
