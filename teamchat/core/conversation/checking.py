"""Runs a check of a conversation: stored when it begins and when it ends, with a checkpoint of the files around it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from msgspec.structs import replace

from teamchat.core.check import Check, CheckResult, without_place
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.values import NoRepository
from teamchat.core.checks.command import CheckRun
from teamchat.core.checks.failing import failing_lines
from teamchat.core.checks.protected import like_tests
from teamchat.core.conversation.conclusion import conclude_checks
from teamchat.core.conversation.judging import as_tried, judge
from teamchat.core.conversation.permission import check_runs_commands
from teamchat.core.conversation.protection import MOST_NAMED, Protection
from teamchat.core.engine.events import Action, CheckBegan, CheckEnded
from teamchat.core.engine.processes.until_round import Seen
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Checked, Finding, ProcessCheck, Review, Tried
from teamchat.core.errors import CheckpointFailed
from teamchat.core.receipt import Outcome
from teamchat.core.store.accepted import Accepted, accepted_in
from teamchat.core.store.checks import CheckRecord, begin_check, end_check, output_of
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import name_of
from teamchat.core.store.texts import pack
from teamchat.core.store.turns import Turn, turns_of_member
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import CheckFinished, CheckStarted, Conclusion, Warned
from teamchat.core.turn.watching import in_thread
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint

if TYPE_CHECKING:
    from teamchat.core.turn.turn_tree import TurnTree

T = TypeVar("T")
Judge: TypeAlias = "Callable[[CheckResult, TurnTree | None, Path, Collection[Accepted]], CheckResult]"


async def run_check(run: Run, route: Route) -> tuple[Action, ...]:
    """Run the check of a route, and have the engine decide on its result."""
    check, part = check_of(run, route), route.part
    assert part is not None

    def ended(record: CheckRecord) -> tuple[Action, ...]:
        result = record.result
        assert result is not None
        failing = failing_lines(output_of(run.db, record)) if record.status == "red" else ""
        told = replace(checked(record), failing=failing)
        return run.decide(CheckEnded(run.machine.now(), route.number, told, result.not_run))

    process = run.state.process
    if run.machine.live and part.fresh and process and (tree := Seen.of(process).tree):
        return await _perform_in_new_folder(run, check, route.number, tree, ended, part.attempt)
    return await perform(run, check, route.number, ended, partial(judge, process, check), part.attempt)


def check_of(run: Run, route: Route) -> Check:
    """Find the check of a route: as the team file has it now, else as a person has typed it."""
    process, name = run.state.process, route.part.check if route.part else ""
    asked = next((check for check in process.checks if check.name == name), None) if process else None
    if asked and not asked.command and name in run.team.checks:
        return run.team.checks[name]
    return Check(name, asked.command if asked else "", typed=True)


async def run_by_hand(run: Run, checks: Sequence[Check]) -> Conclusion:
    """Run the checks that a person asks for, in this order. A check is skipped if one that it needs is not green."""
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


async def perform(
    run: Run,
    check: Check,
    route: int | None,
    ended: Callable[[CheckRecord], T],
    judged: Judge | None = None,
    attempt: int = 1,
) -> T:
    """Run a check and store its result. `ended` is called in the transaction that stores it.

    `judged` judges the result once more, except in a replay. Raises `StoreError`; the next command finds the
    check as one that was interrupted. Raises `NotTrusted` in the turn of an agent that may not run any command.
    """
    if run.machine.live:
        check_runs_commands()
    moved, cwd = await _placed(run, check, route)

    async def ran(record: CheckRecord, scratch: Path) -> CheckRun:
        before = run.trees.before
        if not run.machine.live:
            return await run.machine.run_check(moved, cwd, record.folder, scratch, run.stopper)
        tree = await in_thread(partial(before, record.label, cwd, in_line=route is not None))
        found = await run.machine.run_check(moved, cwd, record.folder, scratch, run.stopper)
        files = None if isinstance(tree, NoCheckpoint) else tree
        if judged and files and check.protect:
            await _warn_of_typos(run, check, files, cwd)
        changes = tree if isinstance(tree, NoCheckpoint) else await in_thread(partial(tree.changes, cwd))
        verdict = found.result
        if judged:
            verdict = await in_thread(partial(judged, verdict, files, cwd, accepted_in(run.db, run.session)))
        return replace(found, result=as_tried(verdict, attempt), changes=changes)

    return await _stored(run, check, route, cwd, ran, ended)


async def _warn_of_typos(run: Run, check: Check, tree: TurnTree, cwd: Path) -> None:
    """Say once in a process which patterns of `protect` name no file."""
    process = run.state.process
    if process is None or any(done.part.check == check.name for done in process.done):
        return
    protection = Protection(tree.repository, process, tree.before)
    with suppress(CheckpointFailed):  # the judgement tells it
        for pattern in await in_thread(partial(protection.matching_nothing, check, cwd)):
            run.emit(Warned(f"check {check.name} protects nothing by {pattern!r}: no file fits that pattern"))


async def _perform_in_new_folder(
    run: Run, check: Check, route: int, tree: str, ended: Callable[[CheckRecord], T], attempt: int
) -> T:
    """Run a check, and store it, in a new folder with the files of the checkpoint `tree`, which it cannot change."""
    from teamchat.core.worktrees.make import placed
    from teamchat.core.worktrees.new_folder import make_new_folder, new_folder_of, remove_new_folder

    state, place = run.trees.folder, run.team.root / check.folder
    home = await in_thread(partial(find_repository, place, state))
    if isinstance(home, NoRepository):
        raise CheckpointFailed(f"no new folder can be made of {place}: {home.reason}")
    session, folder = name_of(run.db, run.session), new_folder_of(state, run.session, home.top)
    cwd = placed(folder, home.top, place)

    async def ran(record: CheckRecord, scratch: Path) -> CheckRun:
        files = FileChanges(str(home.top), tree, tree, ())
        try:
            try:
                await in_thread(partial(make_new_folder, state, run.session, session, home, tree))
                await in_thread(partial(cwd.mkdir, parents=True, exist_ok=True))
                moved = _in_folder(check, home.top, folder)
                found = await run.machine.run_check(moved, cwd, record.folder, scratch, run.stopper)
            finally:
                await in_thread(partial(remove_new_folder, state, session, folder))
        except (CheckpointFailed, OSError) as error:
            why = CheckResult("not_run", f"no new folder can be made: {error}", not_run="ended")
            return CheckRun(why, b"", files)
        return replace(found, result=as_tried(found.result, attempt, fresh=True), changes=files)

    return await _stored(run, check, route, cwd, ran, ended)


async def _stored(
    run: Run,
    check: Check,
    route: int | None,
    cwd: Path,
    ran: Callable[[CheckRecord, Path], Awaitable[CheckRun]],
    ended: Callable[[CheckRecord], T],
) -> T:
    """Store that a check begins in `cwd`, what `ran` says of its run, and what `ended` makes of that."""
    folder = run.folder / os.urandom(8).hex()
    scratch = run.machine.scratch(folder)
    with run.transaction():
        if route is not None:
            run.decide(CheckBegan(run.machine.now(), route))
        record = begin_check(run.db, run.session, route, without_place(check, run.team.root), cwd, folder)
    run.emit(CheckStarted(record))
    found = await ran(record, scratch)
    run.machine.keep_check(check, found)
    output = pack(found.output) if found.output else None
    with run.transaction():
        record = end_check(run.db, record, found.result, found.changes, output)
        result = ended(record)
    run.emit(CheckFinished(record))
    run.remove(scratch, folder)
    return result


async def _placed(run: Run, check: Check, route: int | None) -> tuple[Check, Path]:
    """Return the check and the folder in which it runs: in the worktree of its process, if that has one."""
    home = run.team.root / check.folder
    named = run.state.route(route) if route is not None else None
    name = run.shared_worktree(named) if named and run.machine.live else None
    if name is None or named is None:
        return check, home
    from teamchat.core.worktrees.make import need_worktree

    cwd = await run.ready_worktree(name, home, named)
    tree = need_worktree(run.trees.folder, run.session, name_of(run.db, run.session), name)
    return _in_folder(check, tree.top, tree.folder), cwd


def _in_folder(check: Check, top: Path, folder: Path) -> Check:
    """Point the check's program to the new folder, if it is one of the work tree `top`."""
    if isinstance(check.command, str) or not Path(check.command[0]).is_relative_to(top):
        return check
    program, *arguments = check.command
    return replace(check, command=(str(folder / Path(program).relative_to(top)), *arguments))


def checked(record: CheckRecord) -> Checked:
    """Build the event that tells the engine of a finished check."""
    result, changes = record.result or CheckResult("not_run"), record.changes
    told = Checked(
        record.name,
        record.number,
        result.status,
        result.reason,
        touched=tuple(one.path for one in result.touched),
        count=result.count,
        attempt=result.attempt,
    )
    if isinstance(changes, FileChanges):
        files = tuple(file.path for file in changes.files[:MOST_NAMED])
        return replace(told, before=changes.before, after=changes.after, files=files)
    return replace(told, unknown=changes.reason if changes else "no files are recorded")


def process_checks(checks: tuple[Check, ...]) -> tuple[ProcessCheck, ...]:
    """Convert the checks to the form that a process keeps."""
    return tuple(
        ProcessCheck(
            check.name,
            check.needs,
            check.command if check.typed and isinstance(check.command, str) else "",
            protects=bool(check.protect),
            counts=check.not_fewer,
            tries=check.tries,
            fresh=check.fresh,
        )
        for check in checks
    )


def with_trees(
    db: Database, session: int, finding: Finding | None, turn: Turn, outcome: Outcome | None
) -> Finding | None:
    """Add the known git trees around a turn to the finding in its reply.

    Files that the doer left in earlier failed turns for the same call belong to its work.
    """
    changes = outcome.known_changes if outcome else None
    if changes is None or not isinstance(finding, Tried | Review):
        return finding
    if isinstance(finding, Review):
        return replace(finding, before=changes.before, after=changes.after)
    same = takewhile(lambda other: other.route == turn.route, turns_of_member(db, session, turn.member))
    known = [
        earlier.outcome.known_changes
        for earlier in same
        if earlier.undone is None and earlier.outcome and earlier.id != turn.id
    ]
    whole = [*filter(None, reversed(known)), changes]
    touched = sorted(like_tests(file.path for one in whole for file in one.files))[:MOST_NAMED]
    return replace(finding, before=whole[0].before, after=changes.after, touched=tuple(touched))
