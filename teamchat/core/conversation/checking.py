"""Runs a check of a conversation: stored when it begins and when it ends, with a checkpoint of the files around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from teamchat.core.check import Check, CheckResult, without_place
from teamchat.core.conversation.conclusion import conclude_checks
from teamchat.core.conversation.permission import check_runs_commands
from teamchat.core.engine.events import Action, CheckBegan, CheckEnded
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Checked, ProcessCheck, Review, Tried
from teamchat.core.receipt import Outcome
from teamchat.core.store.checks import CheckRecord, begin_check, end_check
from teamchat.core.store.database import Database
from teamchat.core.store.texts import pack
from teamchat.core.store.turns import Turn, turns_of_member
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import CheckFinished, CheckStarted, Conclusion, Warned
from teamchat.core.turn.watching import in_thread
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint

if TYPE_CHECKING:
    from teamchat.core.engine.workflow import Finding

T = TypeVar("T")
MOST_NAMED = 50  # files that a check has changed, as the process keeps them


async def run_check(run: Run, route: Route) -> tuple[Action, ...]:
    """Run the check of a route, and have the engine decide on its result."""

    def ended(record: CheckRecord) -> tuple[Action, ...]:
        result = record.result
        assert result is not None
        return run.decide(CheckEnded(run.machine.now(), route.number, checked(record), result.not_run))

    return await perform(run, check_of(run, route), route.number, ended)


def check_of(run: Run, route: Route) -> Check:
    """The check of a route: as the team file has it now, else as a person has typed it."""
    process, name = run.state.process, route.part.check if route.part else ""
    asked = next((check for check in process.checks if check.name == name), None) if process else None
    if asked and not asked.command and name in run.team.checks:
        return run.team.checks[name]
    return Check(name, asked.command if asked else "", typed=True)


async def run_by_hand(run: Run, checks: Sequence[Check]) -> Conclusion:
    """Run the checks that a person asks for, in this order. One whose needs among them are not green is skipped."""
    wanted, records = {check.name for check in checks}, dict[str, CheckRecord]()
    green, stopped = set[str](), False
    for check in checks:
        if stopped := run.stopped():
            break
        if missing := [name for name in check.needs if name in wanted - green]:
            which = "which is" if len(missing) == 1 else "which are"
            run.emit(Warned(f"check {check.name} is skipped: it needs {', '.join(missing)}, {which} not green"))
            continue
        record = records[check.name] = await perform(run, check, None, lambda ended: ended)
        green |= {check.name} if record.status == "green" else set()
    return conclude_checks(run, tuple(records.values()), stopped=stopped)


async def perform(run: Run, check: Check, route: int | None, ended: Callable[[CheckRecord], T]) -> T:
    """Run a check and store what came of it. `ended` is called in the transaction that stores it.

    Raises `StoreError`; the next command finds the check as one that was interrupted. Raises `NotTrusted` in the turn
    of an agent that may not run any command.
    """
    if run.machine.live:
        check_runs_commands()
    folder = run.folder / os.urandom(8).hex()
    scratch, cwd = run.machine.scratch(folder), run.team.root / check.folder
    with run.transaction():
        if route is not None:
            run.decide(CheckBegan(run.machine.now(), route))
        record = begin_check(run.db, run.session, route, without_place(check, run.team.root), cwd, folder)
    run.emit(CheckStarted(record))
    before = run.trees.before
    tree = await in_thread(partial(before, record.label, cwd, in_line=route is not None)) if run.machine.live else None
    ran = await run.machine.run_check(check, cwd, folder, scratch, run.stopper)
    changes = ran.changes
    if tree is not None:
        changes = tree if isinstance(tree, NoCheckpoint) else await in_thread(partial(tree.changes, cwd))
    run.machine.keep_check(check, replace(ran, changes=changes))
    output = pack(ran.output) if ran.output else None
    with run.transaction():
        record = end_check(run.db, record, ran.result, changes, output)
        result = ended(record)
    run.emit(CheckFinished(record))
    run.remove(scratch, folder)
    return result


def checked(record: CheckRecord) -> Checked:
    """What the engine is told of a check that is over."""
    result, changes = record.result or CheckResult("not_run"), record.changes
    if isinstance(changes, FileChanges):
        files = tuple(file.path for file in changes.files[:MOST_NAMED])
        return Checked(record.name, record.number, result.status, result.reason, changes.before, changes.after, files)
    unknown = changes.reason if changes else "no files are recorded"
    return Checked(record.name, record.number, result.status, result.reason, unknown=unknown)


def process_checks(checks: tuple[Check, ...]) -> tuple[ProcessCheck, ...]:
    """The checks as a process keeps them."""
    return tuple(
        ProcessCheck(check.name, check.needs, check.command if check.typed and isinstance(check.command, str) else "")
        for check in checks
    )


def with_trees(
    db: Database, session: int, finding: Finding | None, turn: Turn, outcome: Outcome | None
) -> Finding | None:
    """What is read in a reply, with the git trees around its turn where they are known.

    What the doer left in turns that failed before, for the same call, belongs to its work.
    """
    changes = outcome.known_changes if outcome else None
    if changes is None or not isinstance(finding, Tried | Review):
        return finding
    before = changes.before
    if isinstance(finding, Tried):
        same = takewhile(lambda other: other.route == turn.route, turns_of_member(db, session, turn.member))
        known = [
            earlier.outcome.known_changes
            for earlier in same
            if earlier.undone is None and earlier.outcome and earlier.id != turn.id
        ]
        before = next((older.before for older in reversed(known) if older), before)
    return replace(finding, before=before, after=changes.after)
