"""Judges the result of a check once more: by its protected files, by its number before the work, and by its tries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from teamchat.core.check import Check, CheckResult, Touched
from teamchat.core.conversation.protection import MOST_NAMED, Protection, without_accepted
from teamchat.core.engine.processes.until_round import BY_CHECK, counted
from teamchat.core.engine.workflow import DOER, Process
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.accepted import Accepted
from teamchat.runners.untrusted.json import first_of, listed

if TYPE_CHECKING:
    from pathlib import Path

    from teamchat.core.turn.turn_tree import TurnTree

NTH = {2: "nd", 3: "rd"}  # `MOST_TRIES` is the largest number
MOST_TOLD = 5  # files in a reason
NEW_FOLDER = "in a new folder, without what git ignores"


def judge(
    process: Process | None,
    check: Check,
    result: CheckResult,
    tree: TurnTree | None,
    cwd: Path,
    accepted: Collection[Accepted],
) -> CheckResult:
    """Judge the result of a check of the process by what it protects, and by its number before the work began.

    `tree` is the work tree in which it ran. Blocks while git reads it.
    """
    if process is None or result.status == "not_run":
        return result
    if tree and check.protect and process.of(DOER):
        protection = Protection(tree.repository, process, tree.before)
        try:
            touched = without_accepted(accepted, tree.repository, tree.before, protection.touched(check, cwd))
        except CheckpointFailed as failed:
            return CheckResult("not_run", f"what it protects cannot be compared: {failed}", not_run="ended")
        if touched:
            why = "; ".join(filter(None, (result.reason, changed_in_turns(touched))))
            return replace(result, status="red", reason=why, touched=touched[:MOST_NAMED])
    before, now = counted(process, check.name), result.count
    if result.status == "green" and before is not None and now is not None and now < before:
        return replace(result, status="red", reason=f"expect finds {now:,}, fewer than the {before:,} before the work")
    return result


def as_tried(result: CheckResult, attempt: int, *, fresh: bool = False) -> CheckResult:
    """Add to the result which try it was, and where, also in words."""
    tried = f"at the {attempt}{NTH.get(attempt, 'th')} try" if attempt > 1 else ""
    reason = ", ".join(filter(None, (result.reason, tried, NEW_FOLDER if fresh else "")))
    return replace(result, reason=reason, attempt=attempt, fresh=fresh)


def changed_in_turns(touched: Sequence[Touched]) -> str:
    """Say in words that protected files changed: `tests/test_a.py changed during sarah's turn`."""
    by: dict[str, list[str]] = {}
    for one in touched:
        by.setdefault(one.by, []).append(one.path)
    told = (f"{listed(*first_of(paths, MOST_TOLD))} changed during {work}" for work, paths in by.items())
    by_check = any(one.by.startswith(BY_CHECK) for one in touched)
    own = "; what a check itself writes is taken out by a pattern such as !tests/output" if by_check else ""
    return f"{'; '.join(told)}, and {'is' if len(touched) == 1 else 'are'} protected{own}"
