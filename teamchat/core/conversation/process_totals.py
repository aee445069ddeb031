"""The totals of a process that verifies: changed files, time, and each member's usage."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.engine.processes.until_report import MemberUsed, UntilReport
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.engine.workflow import Process
from teamchat.core.store.checks import CheckRecord, checks_behind
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.turns import Turn, latest_turns
from teamchat.runners.agent_events import Usage
from teamchat.runners.untrusted.file_changes import FileChanges

MOST_FILES = 1_000


def whole_report(db: Database, session: int, process: Process) -> Struct:
    """Complete the report of a process with what only the store knows."""
    report = strategy_of(process.kind).report(process)
    if not isinstance(report, UntilReport):
        return report
    # The files that the process changed, its time, and what its members have used.
    turns = tuple(turns_of_process(db, session, process))
    behind = checks_behind(db, session, turns[0].number) if turns else []
    checks = [check for check in behind if check.route is not None]
    files = dict.fromkeys(sorted(_files(turns, checks)))
    seconds = [turn.outcome.seconds for turn in turns if turn.outcome and turn.outcome.seconds]
    seconds += [check.result.seconds for check in checks if check.result]
    there = {turn.member for turn in turns}
    names = [name for name in dict.fromkeys((process.do, *process.review, *sorted(there))) if name in there]
    return replace(
        report,
        files=tuple(files)[:MOST_FILES],
        seconds=round(sum(seconds), 3),
        members=tuple(_used(name, [turn for turn in turns if turn.member == name]) for name in names),
    )


def turns_of_process(db: Database, session: int, process: Process) -> list[Turn]:
    """List the turns of the process that are not undone, in order."""
    began = SqliteLog(db, session).get(process.request).timestamp / 1000
    later = takewhile(lambda turn: turn.started_at >= began - 1, latest_turns(db, session))
    return [turn for turn in later if turn.setup.request == process.request and turn.undone is None][::-1]


def _files(turns: tuple[Turn, ...], checks: list[CheckRecord]) -> Iterator[str]:
    """List the files that changed since the first turn, relative to the top of their git tree, whoever changed them."""
    for turn in turns:
        if turn.outcome and (changes := turn.outcome.known_changes):
            yield from _from_top(changes, turn.setup.cwd)
        elif turn.outcome:
            yield from turn.outcome.files
    for check in checks:
        if isinstance(check.changes, FileChanges):
            yield from _from_top(check.changes, str(check.cwd))


def _from_top(changes: FileChanges, cwd: str) -> Iterator[str]:
    top, folder = os.path.realpath(changes.top), os.path.realpath(cwd)
    if not changes.top or not folder.startswith(f"{top}{os.sep}"):  # it was recorded elsewhere, or is the top itself
        return (file.path for file in changes.files)
    return (os.path.normpath(f"{os.path.relpath(folder, top)}/{file.path}") for file in changes.files)


def _used(name: str, turns: list[Turn]) -> MemberUsed:
    used = [turn.outcome.usage or Usage() for turn in turns if turn.outcome]
    return MemberUsed(
        name,
        len(turns),
        round(sum(turn.outcome.seconds or 0 for turn in turns if turn.outcome), 3),
        _sum([usage.input_tokens for usage in used]),
        _sum([usage.output_tokens for usage in used]),
        _sum([usage.cost_usd for usage in used]),
    )


def _sum(parts: Sequence[float | None]) -> float | None:
    """Return the sum, or None if a part is not known."""
    known = [part for part in parts if part is not None]
    return round(sum(known), 9) if known and len(known) == len(parts) else None
