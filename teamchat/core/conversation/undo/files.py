"""The changes to files when turns are undone or an undo is redone, and the obstacles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint.compare import changes, kind_of, left_out_changes, left_out_of, stat
from teamchat.core.checkpoint.disk import in_the_way
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.paths import is_within, readable
from teamchat.core.checkpoint.plan import plan_restore
from teamchat.core.checkpoint.refs import trees_of
from teamchat.core.checkpoint.restore import KeptFile, Restore, restore
from teamchat.core.checkpoint.take import take, take_restored
from teamchat.core.checkpoint.values import (
    Conflict,
    GitRepository,
    Lines,
    NoRepository,
    RestorePlan,
    TreeEntry,
    TurnChanges,
)
from teamchat.core.conversation.differences import known_changes
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.checks import CheckRecord
from teamchat.core.store.turns import Turn
from teamchat.core.store.undos import Undo
from teamchat.core.text.clean import printable
from teamchat.core.turn.work_trees import WorkTrees
from teamchat.core.worktrees.records import all_of
from teamchat.runners.untrusted.file_changes import FileChange, FileChanges, NoCheckpoint

NO_CHECKPOINTS = "checkpoints are no longer there (keep_checkpoints)"
MOST_COUNTED = 200  # paths of which the lines are counted


class TreePlan(Struct, frozen=True):
    """The plan of what goes back in one work tree."""

    repository: GitRepository
    now: str
    """The checkpoint that was taken before."""
    plan: RestorePlan
    files: tuple[FileChange, ...]
    """The changes of the turns that an undo reverts or a redo makes again."""
    left_out: tuple[str, ...]
    """The paths that no checkpoint has."""
    member: str | None
    """The member whose worktree it is."""
    known: Mapping[str, TreeEntry | None]
    """The entries of `now` at the paths."""
    keep: Collection[str] = ()
    """The paths at which the turns left something that no checkpoint has, such as a pipe."""
    above: Collection[str] = ()
    """The paths of something like that where a folder is needed."""

    @property
    def top(self) -> str:
        """The work tree's folder."""
        return str(self.repository.top)

    def targets(self, *, force: bool) -> Mapping[str, TreeEntry | None]:
        """Map each path to its planned content; with `force` also paths changed by others or blocked above."""
        forced = {conflict.path: conflict.target for conflict in self.plan.conflicts} if force else {}
        moved = dict.fromkeys(path for path in self.above if force or path in self.keep)
        return {**moved, **self.plan.restore, **forced}


class FilesPlan(Struct, frozen=True):
    """The files that go back in each work tree. `not_undone` says what does not, a sentence each."""

    trees: tuple[TreePlan, ...] = ()
    not_undone: tuple[str, ...] = ()

    @property
    def conflicts(self) -> tuple[str, ...]:
        """The paths that somebody else changed since, or that are in the way."""
        return tuple(readable(conflict.path) for tree in self.trees for conflict in tree.plan.conflicts)

    @property
    def files(self) -> tuple[FileChange, ...]:
        """The files that go back."""
        return tuple(file for tree in self.trees for file in tree.files)

    @property
    def now(self) -> tuple[str, ...]:
        """The trees as they are."""
        return tuple(tree.now for tree in self.trees)

    def apply(self, trees: WorkTrees, *, force: bool) -> tuple[KeptFile, ...]:
        """Put the files back. After a kill, call it again. Returns the files kept because no checkpoint has them.

        Raises `FilesChanged` where somebody changes one meanwhile, and `CheckpointFailed`, also for some of them.
        """
        parts = [Restore(tree.repository, tree.known, tree.targets(force=force), tree.keep) for tree in self.trees]
        return restore(trees.folder, parts, force=force)

    def take(self, trees: WorkTrees, name: str, *, force: bool) -> dict[str, str]:
        """Take checkpoints of the work trees after `apply`, by their folders. Raises `CheckpointFailed`."""
        refs = _names(trees, name, [tree.top for tree in self.trees])
        return {
            tree.top: take_restored(tree.repository, trees.folder, refs[tree.top], tree.now, tree.targets(force=force))
            for tree in self.trees
        }


_Work = tuple[str, FileChanges]
"""The changes of a turn or a check, and the name of its checkpoints."""


def _works(turns: Sequence[Turn], checks: Sequence[CheckRecord]) -> Iterator[_Work]:
    for turn in turns:
        if known := known_changes(turn):
            yield str(turn.number), known
    for check in checks:
        if isinstance(check.changes, FileChanges):
            yield check.label, check.changes


def plan_undo_of_files(
    trees: WorkTrees, turns: Sequence[Turn], name: str, checks: Sequence[CheckRecord] = ()
) -> FilesPlan:
    """Plan how the files go back to before the undone turns and checks: all of them, in order.

    The current files become the checkpoints of `name`. Raises `CheckpointFailed`.
    """
    by_top: dict[str, list[_Work]] = {}
    for work in _works(turns, checks):
        by_top.setdefault(work[1].top, []).append(work)
    refs = _names(trees, name, by_top)
    plans, not_undone = [], [*_unknown(turns), *_unknown_of_checks(checks)]
    for top, done in by_top.items():
        if all(known.before == known.after for _, known in done):
            continue
        repository = find_repository(Path(top), trees.folder)
        if isinstance(repository, NoRepository):
            not_undone.append(f"the files in {top} stay as they are: {repository.reason}")
        elif spans := _spans(trees, repository, done):
            left_out = {path for _, known in done for path in known.left_out}
            plans.append(_plan(trees, repository, spans, refs[top], left_out))
        else:
            not_undone.append(f"the files in {top} stay as they are: {NO_CHECKPOINTS}")
    return FilesPlan(tuple(plans), tuple(not_undone))


def plan_redo_of_files(trees: WorkTrees, undo: Undo, name: str) -> FilesPlan:
    """Plan how a redo restores the files that an undo has reverted; otherwise as `plan_undo_of_files`."""
    plans, not_undone = [], []
    refs = _names(trees, name, undo.trees)
    for top, (before, after) in undo.trees.items():
        repository = find_repository(Path(top), trees.folder)
        if isinstance(repository, NoRepository):
            not_undone.append(f"the files in {top} stay as they are: {repository.reason}")
        elif before and after and {before, after} <= set(_taken(trees, repository).values()):
            span = _Span(before, after, ours=True)
            left_out = set(map(readable, left_out_of(repository, before)))
            plans.append(_plan(trees, repository, [span], refs[top], left_out, redo=True))
        else:
            not_undone.append(f"the files in {top} stay as they are: {NO_CHECKPOINTS}")
    return FilesPlan(tuple(plans), tuple(not_undone))


def _names(trees: WorkTrees, name: str, tops: Iterable[str]) -> dict[str, str]:
    """Name the ref of each work tree: work trees of one repository share its refs."""
    ends = (f"-{number}" if number else "" for number, _ in enumerate(tops))
    return {top: f"{trees.refs}/{name}{end}" for top, end in zip(tops, ends, strict=True)}


def _taken(trees: WorkTrees, repository: GitRepository) -> dict[str, str]:
    return trees_of(repository, trees.folder, trees.refs.removeprefix("refs/teamchat/"))


def _unknown(turns: Iterable[Turn]) -> Iterator[str]:
    """List the turns whose files nobody recorded, by the reason."""
    by_reason: dict[str, list[Turn]] = {}
    for turn in turns:
        changed = turn.outcome.changes if turn.outcome else None
        if isinstance(changed, NoCheckpoint):
            by_reason.setdefault(changed.reason, []).append(turn)
        elif turn.outcome and changed is None and turn.outcome.files:
            by_reason.setdefault("an older teamchat or a replay ran it", []).append(turn)
    for reason, some in by_reason.items():
        of = f"turns {_listed(some)}" if len(some) > 1 else f"turn {some[0].number}"
        files = ", ".join(dict.fromkeys(file for turn in some if turn.outcome for file in turn.outcome.files))
        reported = f"; its CLI reported {files}" if files else ""
        yield f"the files of {of} stay as they are: {reason}{reported}"


def _unknown_of_checks(checks: Iterable[CheckRecord]) -> Iterator[str]:
    for check in checks:
        if isinstance(check.changes, NoCheckpoint):
            yield f"the files of {check.label} stay as they are: {check.changes.reason}"


def _listed(turns: Sequence[Turn]) -> str:
    *others, last = (str(turn.number) for turn in turns)
    return f"{', '.join(others)} and {last}"


class _Span(Struct, frozen=True):
    """The time between two checkpoints, by their trees; `ours` while one of the turns was at work."""

    old: str
    new: str
    ours: bool = False


def _spans(trees: WorkTrees, repository: GitRepository, works: Sequence[_Work]) -> list[_Span]:
    """Cut the time of the turns and checks at every checkpoint; return nothing if a checkpoint is gone.

    Turns that overlap saw each other's changes, so a span belongs to all of them. The checkpoints are named by
    the receipts: whoever can write the refs could name others.
    """
    taken = _taken(trees, repository)
    names: dict[str, str] = {}
    ids: dict[str, str] = {}
    for name, known in works:
        both = {f"{trees.refs}/{name}/before": known.before, f"{trees.refs}/{name}/after": known.after}
        ids |= both
        names |= dict.fromkeys(both, name)
    if not names.keys() <= taken.keys():
        return []
    at_work: set[str] = set()
    spans = []
    for ref, following in pairwise(ref for ref in taken if ref in names):
        at_work ^= {names[ref]}
        spans.append(_Span(ids[ref], ids[following], bool(at_work)))
    return spans


def _plan(
    trees: WorkTrees,
    repository: GitRepository,
    spans: Sequence[_Span],
    ref: str,
    left_out: Collection[str],
    *,
    redo: bool = False,
) -> TreePlan:
    """Plan how to undo what changed in our spans. In a `redo` that is what an undo has changed.

    A path that changed in no span is the same at every checkpoint, so it can be in nobody's way.
    """
    changed = [(span, changes(repository, span.old, span.new)) for span in spans if span.old != span.new]
    also = {change.path for _, made in changed for change in made}
    now = take(repository, trees.folder, ref, after=spans[-1].new, also=also)
    if spans[-1].new != now.tree:
        since_then = _Span(spans[-1].new, now.tree)
        changed.append((since_then, changes(repository, since_then.old, since_then.new)))
    current = {change.path: change.new for _, made in changed for change in made}
    first = {change.path: change.old for _, made in reversed(changed) for change in made}
    plan = plan_restore([TurnChanges(made) for span, made in changed if span.ours], current)
    since = left_out_changes(repository, spans[-1].new, now.tree)
    own = {omitted.path for omitted in now.left_out if omitted.path not in since}
    ways = _ways(repository, plan, current, own)
    above = {place for path, place in ways.items() if place != path}
    plan = _without_unseen(plan, {path for path, place in ways.items() if place not in own})
    unseen = {readable(omitted.path) for omitted in now.left_out}
    unseen |= set() if redo else set(left_out)
    there = _there_before(plan, left_out if redo else unseen)
    plan = _without(plan, there)
    unseen |= {readable(path) for path in there}
    ends = (now.tree, spans[0].old) if redo else (spans[0].old, now.tree)
    lines = stat(repository, *ends) if len(plan.restore) <= MOST_COUNTED else {}
    counted = {path: count for path, count in lines.items() if plan.restore.get(path) == first[path]}
    sides = ((path, current.get(path), target) for path, target in plan.restore.items())
    files = tuple(
        _file(path, *((there, target) if redo else (target, there)), counted.get(path)) for path, there, target in sides
    )
    members = (worktree.member for worktree in all_of(trees.folder) if worktree.folder == repository.top)
    keep = {path for path in own if path in plan.restore or path in above}
    return TreePlan(repository, now.tree, plan, files, tuple(sorted(unseen)), next(members, None), current, keep, above)


def _there_before(plan: RestorePlan, left_out: Collection[str]) -> set[str]:
    """Find paths that the plan deletes, but that may have been there before: a checkpoint left them out."""
    targets = {**plan.restore, **{conflict.path: conflict.target for conflict in plan.conflicts}}
    return {path for path, target in targets.items() if target is None and is_within(readable(path), left_out)}


def _without(plan: RestorePlan, paths: Collection[str]) -> RestorePlan:
    entries = {path: entry for path, entry in plan.restore.items() if path not in paths}
    return replace(
        plan, restore=entries, conflicts=tuple(conflict for conflict in plan.conflicts if conflict.path not in paths)
    )


def _ways(
    repository: GitRepository, plan: RestorePlan, current: Mapping[str, TreeEntry | None], own: Collection[str]
) -> dict[str, str]:
    """Find paths with something in the way that checkpoints leave out, and where it is: there or above.

    Files that the turns themselves left at a path (`own`) are moved away and kept.
    """
    missing = (path for path in plan.restore if path not in own and current.get(path) is None)
    ways = ((path, in_the_way(repository.top, path, current, plan.restore)) for path in missing)
    return {path: place for path, place in ways if place}


def _without_unseen(plan: RestorePlan, unseen: Collection[str]) -> RestorePlan:
    """Turn paths into conflicts where something is that checkpoints leave out: nothing else has it."""
    conflicts = tuple(Conflict(path, None, None, plan.restore[path]) for path in sorted(unseen))
    entries = {path: entry for path, entry in plan.restore.items() if path not in unseen}
    return replace(plan, restore=entries, conflicts=(*plan.conflicts, *conflicts))


def _file(path: str, old: TreeEntry | None, new: TreeEntry | None, lines: Lines | None) -> FileChange:
    added, removed = (lines.added, lines.removed) if lines else (None, None)
    return FileChange(readable(path), kind_of(old, new), added, removed)


def refuse_conflicts(plan: FilesPlan, instead: Iterable[str], *, force: bool, what: str = "nothing was done") -> None:
    """Raise `CheckpointFailed` where somebody else changed files, unless they may be overwritten.

    `instead` has the commands that can be run then.
    """
    if plan.conflicts and not force:
        names = printable(", ".join(plan.conflicts[:5]))
        more = f" and {len(plan.conflicts) - 5} more" if len(plan.conflicts) > 5 else ""
        raise CheckpointFailed(f"{what}: {names}{more} changed since, by somebody else", "\n".join(instead))
