"""Which protected files changed while members of a process or its checks were at work, and what a person accepted.

The checkpoints around a turn or a check show which paths changed meanwhile, and the newest checkpoint shows which of
them still differ. Changes in between are a person's.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from teamchat.core.check import Check, Touched
from teamchat.core.checkpoint.compare import changes, entries, left_out_changes, states_of
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import GitRepository, NoRepository
from teamchat.core.checks.protected import SETS, protected
from teamchat.core.engine.processes.until_round import works_of
from teamchat.core.engine.workflow import Process
from teamchat.core.errors import UsageError
from teamchat.core.store.accepted import Accepted, accept
from teamchat.core.store.database import Database
from teamchat.core.store.routes import last_process
from teamchat.core.store.sessions import fence_key
from teamchat.core.team.team import Team
from teamchat.core.turn.work_trees import refs_of
from teamchat.runners.untrusted.json import first_of, listed

MOST_NAMED = 50  # paths
MOST_TOLD = 10  # paths that an error names


class Protection(Struct, frozen=True):
    """The files of one process in a work tree, as they are in the checkpoint `now`."""

    repository: GitRepository
    process: Process
    now: str

    def matching_nothing(self, check: Check, cwd: Path) -> list[str]:
        """List the check's own patterns that match no existing file. Raises `CheckpointFailed`."""
        paths, folder = entries(self.repository, self.now), self._folder(cwd)
        own = (pattern for pattern in check.protect if pattern not in SETS and not pattern.startswith("!"))
        return [pattern for pattern in own if not protected([pattern], folder, paths)]

    def _folder(self, cwd: Path) -> str:
        """Return the folder relative to the top of the work tree, empty at the top."""
        folder = os.path.relpath(os.path.realpath(cwd), self.repository.top)
        return "" if folder == "." else folder

    def touched(self, check: Check, cwd: Path) -> dict[str, str]:
        """Find protected paths that changed during a turn or a check and still differ.

        `cwd` is where the check runs. Raises `CheckpointFailed`.
        """
        folder = self._folder(cwd)
        changed = [
            (work, before, _changed(self.repository, before, after or self.now))
            for work, before, after in works_of(self.process)
        ]
        paths = {path for _, _, one in changed for path in one}
        new = {path for _, _, one in changed for path, is_new in one.items() if is_new}
        wanted = protected(check.protect, folder, paths, new)
        by: dict[str, str] = {}
        since: dict[str, str] = {}  # the tree that has the path as it was before
        for work, before, one in changed:
            for path in sorted(wanted & one.keys()):
                by[path] = work
                since.setdefault(path, before)
        return {path: by[path] for path in self._still(since)}

    def _still(self, since: Mapping[str, str]) -> list[str]:
        """List the paths that still differ from the last tree where they were right."""
        by_tree: dict[str, list[str]] = defaultdict(list)
        for path, tree in since.items():
            by_tree[tree].append(path)
        still = [
            path
            for tree, paths in by_tree.items()
            for path in _changed(self.repository, tree, self.now).keys() & set(paths)
        ]
        return sorted(still)


def without_accepted(
    accepted: Collection[Accepted], repository: GitRepository, tree: str, touched: Mapping[str, str]
) -> tuple[Touched, ...]:
    """Remove the changes that a person has `accepted` from the touched paths. Raises `CheckpointFailed`."""
    states = states_of(repository, tree, touched) if accepted and touched else {}
    left = (path for path in touched if Accepted(path, states.get(path, "")) not in accepted)
    return tuple(Touched(readable(path), touched[path]) for path in left)


def accept_files(db: Database, session: int, team: Team, words: Sequence[str], cwd: Path) -> tuple[Touched, ...]:
    """Accept what is at these paths, or below them, of the protected files that the last process has changed.

    `words` are relative to `cwd`. Raises `UsageError`, `CheckpointFailed` and `StoreError`.
    """
    process = last_process(db, session)
    checks = [team.checks[check.name] for check in process.checks if check.name in team.checks] if process else []
    if process is None or not any(check.protect for check in checks):
        raise UsageError("the last process has no check that protects files", "teamchat report")
    root, home = team.root, find_repository(team.root, db.path.parent)
    home_top = home.top if isinstance(home, GitRepository) else root
    if process.worktree:
        from teamchat.core.worktrees.make import place

        root = place(db.path.parent, session, process.do, root) or root
    repository = find_repository(root, db.path.parent)
    if isinstance(repository, NoRepository):
        raise UsageError(f"the files in {root} cannot be compared: {repository.reason}", repository.hint)
    now = take(repository, db.path.parent, f"{refs_of(fence_key(db, session))}/accepted").tree
    protection = Protection(repository, process, now)
    touched: dict[str, str] = {}
    for check in checks:
        touched |= protection.touched(check, root / check.folder)
    wanted: dict[str, str] = {}
    for word in words:
        if not word.strip():
            raise UsageError("expected a path, got an empty one", "teamchat until accept .")
        found: dict[str, str] = {}
        for folder, top in ((cwd, home_top), (repository.top, repository.top)):  # errors name it from the top
            found = found or {one: by for one, by in touched.items() if _is_at(one, _from_top(top, folder / word))}
        if not found and not touched:
            raise UsageError("no protected file was changed while the last process was at work", "teamchat report")
        if not found:
            there = listed(*first_of([*map(readable, touched)], MOST_TOLD))
            raise UsageError(f"{word!r} is no protected file that was changed, of which there are: {there}")
        wanted |= found
    accept(db, session, states_of(repository, now, wanted))
    return tuple(Touched(readable(path), by) for path, by in wanted.items())


def _is_at(path: str, place: str) -> bool:
    return place in (".", path) or path.startswith(f"{place}/")


def _from_top(top: Path, path: Path) -> str:
    """Return the path relative to the top of the work tree. Its last part may be a link, or gone."""
    whole = Path(os.path.normpath(path))
    return os.path.relpath(Path(os.path.realpath(whole.parent), whole.name), top)


@lru_cache(maxsize=256)  # each check asks anew of all turns so far
def _changed(repository: GitRepository, old: str, new: str) -> Mapping[str, bool]:
    """List the paths that differ between two checkpoints, and say whether each is new."""
    if old == new:
        return {}
    left_out = {path: what == "added" for path, what in left_out_changes(repository, old, new).items()}
    return left_out | {change.path: change.old is None for change in changes(repository, old, new)}
