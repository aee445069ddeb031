"""The refs that keep checkpoints from being collected as garbage: set, and removed by session or age.

They are refs to trees, so that `git log --all` shows nothing of them. The times are in a file next to the index, since
neither a tree nor a packed ref has one.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from teamchat.core.checkpoint.shadow import Shadow, open_shadow, shadow_folder
from teamchat.core.checkpoint.values import GitRepository
from teamchat.patterns import regex

_PREFIX = "refs/teamchat/"
_NAME = regex(r"refs/teamchat(/(?!\.)[A-Za-z0-9._-]+(?<!\.)(?<!\.lock))+")
_TIMES = "times"
_BEFORE_A_TURN = regex(rb"\d+ refs/teamchat/\w+/\d+/before\n")
_PRUNED = "pruned"  # when old refs were removed last
_DAY_S = 86_400
_LONGEST_S = 60.0


def check_ref(ref: str) -> None:
    """Raises `ValueError` for a ref that is not ours to write."""
    if not _NAME.fullmatch(ref) or ".." in ref:
        raise ValueError(f"{ref!r} is no ref of teamchat")


def set_ref(shadow: Shadow, ref: str, tree: str) -> None:
    """Have `ref` name the tree, and note the time. Raises `GitFailed`, also where the tree is no longer there."""
    _record(shadow.folder, ref)  # first: whoever is killed in between leaves no ref without a time
    # a killed git may have left its lock: nobody else writes a ref of this work tree now
    with contextlib.suppress(OSError):  # git says what is wrong there
        shadow.repository.common_dir.joinpath(f"{ref}.lock").unlink()
    shadow.git("update-ref", "--no-deref", ref, tree)


def tree_of(repository: GitRepository, state_folder: Path, ref: str) -> str | None:
    """The tree that `ref` names; None if there is no such ref. Raises `CheckpointFailed`."""
    check_ref(ref)
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        return shadow.git("for-each-ref", "--format=%(objectname)", ref).decode().strip() or None


def trees_of(repository: GitRepository, state_folder: Path, session: str) -> dict[str, str]:
    """The trees by the refs of `session` (the part after `refs/teamchat/`), in the order in which they were taken.

    Without those that another work tree of the repository took, and those whose times are lost: nobody knows their
    order. Raises `CheckpointFailed`.
    """
    below = f"{_PREFIX}{session}/"
    check_ref(f"{below}x")
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        listed = os.fsdecode(shadow.git("for-each-ref", "--format=%(refname) %(objectname)", below)).splitlines()
        times = _times(shadow.folder)
    trees = dict(line.split(" ") for line in listed)
    return {ref: trees[ref] for ref in times if ref in trees}


def refs_below(repository: GitRepository, state_folder: Path, name: str) -> list[str]:
    """The refs whose names begin with `name` and a slash. Raises `CheckpointFailed`."""
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        return shadow.git("for-each-ref", "--format=%(refname)", f"{name}/").decode().splitlines()


def _record(folder: Path, ref: str) -> None:
    with (folder / _TIMES).open("a") as file:
        file.write(f"{time.time():.0f} {ref}\n")


def mark_of(folder: Path) -> tuple[int, int]:
    """The list of times as it is now, for `has_ended_since`."""
    try:
        status = (folder / _TIMES).stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_size


def has_ended_since(folder: Path, mark: tuple[int, int]) -> bool:
    """Whether another checkpoint was recorded since than that before a turn: what ended wrote files until then.

    True as well where nobody can tell.
    """
    now, (known, size) = mark_of(folder), mark
    if now == mark:
        return False
    if known and known != now[0]:  # pruned
        return True
    with (folder / _TIMES).open("rb") as file:
        file.seek(size)
        return not all(_BEFORE_A_TURN.fullmatch(line) for line in file)


def prune(
    repository: GitRepository, state_folder: Path, session: str | None = None, *, before: float | None = None
) -> int:
    """Remove the refs of `session` (the part after `refs/teamchat/`; None: of all sessions). Returns how many.

    `before` (seconds since the epoch): only those that were taken earlier by this state folder, and none of a worktree,
    which needs its own as long as it is there. Raises `CheckpointFailed`.
    """
    below = _PREFIX if session is None else f"{_PREFIX}{session}/"
    check_ref(f"{below}x")
    with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
        times = _times(shadow.folder)
        listed = shadow.git("for-each-ref", "--format=%(refname)", below).decode(errors="replace").split("\n")

        def is_old(ref: str) -> bool:
            return before is None or ("/worktrees/" not in ref and times.get(ref, before) < before)

        gone = [ref for ref in listed if _NAME.fullmatch(ref) and is_old(ref)]
        if gone:
            shadow.git("update-ref", "--stdin", "--no-deref", given="".join(f"delete {ref}\n" for ref in gone).encode())
        there = set(listed) - set(gone) if session is None else times.keys() - set(gone)
        _write_times(shadow.folder, {ref: at for ref, at in times.items() if ref in there})
    return len(gone)


def prune_daily(repository: GitRepository, state_folder: Path, keep_s: float) -> int:
    """Remove what is older than `keep_s`, where that was not done within a day; the rest as for `prune`."""
    now, marker = time.time(), shadow_folder(repository, state_folder) / _PRUNED
    with contextlib.suppress(FileNotFoundError):
        if now - marker.stat().st_mtime < _DAY_S:
            return 0
    with open_shadow(repository, state_folder, _LONGEST_S):
        marker.touch()
    return prune(repository, state_folder, before=now - keep_s)


def _times(folder: Path) -> dict[str, float]:
    try:
        lines = (folder / _TIMES).read_text().splitlines()
    except FileNotFoundError:
        return {}
    parted = (line.partition(" ") for line in lines)
    return {ref: float(at) for at, _, ref in parted if at.isdigit()}  # the last time that a ref was written


def _write_times(folder: Path, times: dict[str, float]) -> None:
    new = folder / f"{_TIMES}.new"
    new.write_text("".join(f"{at:.0f} {ref}\n" for ref, at in times.items()))
    new.replace(folder / _TIMES)
