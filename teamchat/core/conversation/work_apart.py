"""The members that a process has work apart: whether they can, and which files they changed."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from teamchat.core.checkpoint.find import why_none
from teamchat.core.engine.process import Process, Work
from teamchat.core.engine.processes.table import STRATEGIES
from teamchat.core.errors import UsageError
from teamchat.core.receipt import Outcome
from teamchat.core.store.database import Database
from teamchat.core.store.turns import Turn, turns_of_member
from teamchat.core.team.team import Member, Team
from teamchat.core.text.commands import quote
from teamchat.runners.file_changes import FileChanges


def need_worktrees(team: Team, state: Path, session: int | None, process: Process) -> None:
    """Raise `UsageError` if members that are to work apart cannot, or have changes that are not merged.

    Those would be compared and merged together with what the process makes. `state` is the state folder. Blocks while
    git reads the worktrees.
    """
    step = STRATEGIES[process.kind].step(process)
    names = {call.target for call in step.calls if call.part.apart} if step else set[str]()
    writers = [member for member in team.ai_members if member.name in names and member.access != "read"]
    for member in writers:
        _need_repository(member, process)
    if session is not None and writers:
        _need_merged(state, session, writers)


def _need_repository(member: Member, process: Process) -> None:
    if missing := why_none(member.cwd):
        raise UsageError(
            f"{process.name or process.kind} has {member.name} work in a git worktree, and there is none for "
            f"{member.cwd}: {missing.reason}",
            missing.hint,
        )


def _need_merged(state: Path, session: int, writers: list[Member]) -> None:
    from teamchat.core.worktrees.records import find
    from teamchat.core.worktrees.remove import not_merged

    trees = [tree for member in writers if (tree := find(state, session, member.name))]
    if lost := not_merged(state, trees):
        names = [quote(name) for name in lost]
        merging = [f"teamchat merge {name}" for name in names]
        removing = " && ".join(f"teamchat worktrees remove --force {name}" for name in names)
        told = "; ".join(lost.values())
        raise UsageError(f"{told}: they would be judged and merged with the new ones", "\n".join((*merging, removing)))


def work_of(db: Database, session: int, turn: Turn, outcome: Outcome | None) -> Work:
    """What the `turn` with that `outcome` changed, and the turns before it that failed in the same part."""
    its = takewhile(lambda other: other.route == turn.route, turns_of_member(db, session, turn.member))
    outcomes = [outcome, *(other.outcome for other in its if other.undone is None and other.id != turn.id)]
    found = [one.changes for one in outcomes if one and isinstance(one.changes, FileChanges)]
    files = {file.path for changes in found for file in changes.files}
    return Work(tuple(sorted(files)), max((changes.more for changes in found), default=0))
