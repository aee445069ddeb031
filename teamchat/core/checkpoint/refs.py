"""The refs that keep checkpoints from being collected as garbage: set, and removed by session or age.

They are in the store, never in the user's repository. The order and the times are in a file there, since the ids of
checkpoints have none: the same files have the same id.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.checkpoint.shadow import Shadow, keep_file, open_shadow
from teamchat.core.checkpoint.values import GitRepository
from teamchat.patterns import regex

_PREFIX = "refs/teamchat/"
_NAME = regex(r"refs/teamchat(/(?!\.)[A-Za-z0-9._-]+(?<!\.)(?<!\.lock))+")
_TIMES = "times"
_PRUNED = "pruned"  # the file with the time when old refs were last removed
_OLD = "old"  # the refs that were old then
_DAY_S = 86_400
_LONGEST_S = 60.0
_LONGEST_GC_S = 240.0
_NO_TIME = 0.0


def check_ref(ref: str) -> None:
    """Raise `ValueError` for a ref that is not ours to write."""
    if not _NAME.fullmatch(ref) or ".." in ref:
        raise ValueError(f"{ref!r} is no ref of teamchat")


def git_command(repository: GitRepository) -> tuple[str, ...]:
    """Return how a person's git command begins that brings files of a checkpoint back."""
    return ("git", f"--git-dir={repository.store}", f"--work-tree={repository.top}")


def noted_at(repository: GitRepository, ref: str) -> Path:
    """Return the file that lists the files ignored when the turn of that ref began."""
    return repository.store / f"began-{ref.removeprefix(_PREFIX).replace('/', '-')}"


def set_ref(shadow: Shadow, ref: str, tree: str) -> None:
    """Have `ref` name the checkpoint, and note the time. Raises `GitFailed`, also if the checkpoint is gone."""
    _record(shadow.repository, ref)  # first: whoever is killed in between leaves no ref without a time
    _unlock(shadow.repository, ref)
    shadow.git("update-ref", "--no-deref", ref, tree)


def set_refs(repository: GitRepository, state_folder: Path, refs: dict[str, str | None]) -> None:
    """Set refs to checkpoints, and remove those with None, all at once. Raises `CheckpointFailed`."""
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        known = set(_names(shadow, _PREFIX))
        lines = [f"update {ref} {tree}\n" for ref, tree in refs.items() if tree]
        lines += [f"delete {ref}\n" for ref, tree in refs.items() if tree is None and ref in known]
        for ref, tree in refs.items():
            check_ref(ref)
            _unlock(repository, ref)
            if tree:
                _record(repository, ref)
        shadow.git("update-ref", "--no-deref", "--stdin", given="".join(lines).encode())


def _unlock(repository: GitRepository, ref: str) -> None:
    """Remove files that a killed git may have left: nobody else writes a ref of this store now."""
    for lock in (f"{ref}.lock", "packed-refs.lock"):
        repository.store.joinpath(lock).unlink(missing_ok=True)


def _names(shadow: Shadow, below: str) -> list[str]:
    return shadow.git("for-each-ref", "--format=%(refname)", below).decode(errors="replace").splitlines()


def tree_of(repository: GitRepository, state_folder: Path, ref: str) -> str | None:
    """Return the tree that `ref` names; None if there is no such ref. Raises `CheckpointFailed`."""
    check_ref(ref)
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        return shadow.git("for-each-ref", "--format=%(objectname)", ref).decode().strip() or None


def trees_of(repository: GitRepository, state_folder: Path, session: str) -> dict[str, str]:
    """Return the trees by the refs of `session` (the part after `refs/teamchat/`), in the order of their taking.

    Refs whose times are lost are left out: nobody knows their order. Raises `CheckpointFailed`.
    """
    below = f"{_PREFIX}{session}/"
    check_ref(f"{below}x")
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        listed = os.fsdecode(shadow.git("for-each-ref", "--format=%(refname) %(objectname)", below)).splitlines()
        times = _times(repository)
    trees = dict(line.split(" ") for line in listed)
    return {ref: trees[ref] for ref in times if ref in trees}


def refs_below(repository: GitRepository, state_folder: Path, name: str) -> list[str]:
    """List the refs whose names begin with `name` and a slash. Raises `CheckpointFailed`."""
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        return _names(shadow, f"{name}/")


def _record(repository: GitRepository, ref: str) -> None:
    file = os.open(repository.store / _TIMES, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "a") as times:
        times.write(f"{time.time():.0f} {ref}\n")


def prune(
    repository: GitRepository, state_folder: Path, session: str | None = None, *, before: float | None = None
) -> int:
    """Remove the refs of `session` (the part after `refs/teamchat/`; None: of all sessions). Returns how many.

    `before` (seconds since the epoch): only refs of earlier checkpoints, and none of a worktree that still exists,
    because it needs them. Raises `CheckpointFailed`.
    """
    below = _PREFIX if session is None else f"{_PREFIX}{session}/"
    check_ref(f"{below}x")
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        listed, old = _names(shadow, below), None if before is None else _older(repository, before)
        removed = _remove(shadow, [ref for ref in listed if old is None or ref in old])
        if removed:
            replace(shadow.git, idle_s=_LONGEST_S)("prune", "--expire=now")
        return removed


def _older(repository: GitRepository, before: float) -> set[str]:
    return {ref for ref, at in _times(repository).items() if at < before and "/worktrees/" not in ref}


def _remove(shadow: Shadow, refs: list[str]) -> int:
    gone = [ref for ref in refs if _NAME.fullmatch(ref)]
    repository = shadow.repository
    for ref in gone:
        _unlock(repository, ref)
        noted_at(repository, ref).unlink(missing_ok=True)
    if gone:
        shadow.git("update-ref", "--stdin", "--no-deref", given="".join(f"delete {ref}\n" for ref in gone).encode())
    there = set(_names(shadow, _PREFIX))
    times = {ref: at for ref, at in _times(repository).items() if ref in there}
    _write(repository, _TIMES, "".join(f"{at:.0f} {ref}\n" for ref, at in times.items()))
    return len(gone)


def prune_daily(repository: GitRepository, state_folder: Path, keep_s: float) -> int:
    """Remove checkpoints that are older than `keep_s`, and were so a day ago already. Returns how many. Raises
    `CheckpointFailed`.

    So a clock that is wrong for a day removes nothing: what seemed old then no longer does a day later.
    """
    with open_shadow(repository, state_folder, _LONGEST_S, files=False) as shadow:
        now, last = time.time(), _number(_read(repository, _PRUNED))
        if last <= now < last + _DAY_S:
            return 0
        old = _older(repository, now - keep_s)
        before = set(_read(repository, _OLD).split("\n")) if last <= now else set[str]()
        gone = old & before
        _write(repository, _OLD, "\n".join(sorted(old - gone)))
        _write(repository, _PRUNED, f"{now:.0f}")
        if not gone:
            return 0
        removed = _remove(shadow, sorted(gone))
        # its own children work, while it waits
        replace(shadow.git, seconds=_LONGEST_GC_S, idle_s=_LONGEST_GC_S)("gc", "--quiet", "--prune=now")
        return removed


def _read(repository: GitRepository, name: str) -> str:
    try:
        return (repository.store / name).read_text()
    except FileNotFoundError:
        return ""


def _write(repository: GitRepository, name: str, text: str) -> None:
    keep_file(repository.store / name, text.encode())


def _number(text: str) -> float:
    return float(text) if text.isdigit() else _NO_TIME


def _times(repository: GitRepository) -> dict[str, float]:
    """Read when each ref was written last, in the order in which they were first written."""
    parted = (line.partition(" ") for line in _read(repository, _TIMES).splitlines())
    return {ref: float(at) for at, _, ref in parted if at.isdigit()}
