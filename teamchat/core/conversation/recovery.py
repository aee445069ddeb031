"""Recovery after a crash: turns that were running when their process died are interrupted, and keep their partial text.

An agent's output goes to files, so its partial text is still there. Recovery waits for the guardian to end the agent,
and removes the files of turns that are over. Whatever the store says, it reads and removes only folders with names of
teamchat's own, and only where turns keep theirs.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.check import LARGEST_OUTPUT, CheckResult
from teamchat.core.errors import CheckpointFailed, DiskFull, SessionBusy, StoreError
from teamchat.core.receipt import KILLED, NOT_STORED, RUNS_ON, STOPPED_ON, Outcome
from teamchat.core.store.checks import CheckRecord, end_check, running_check_folders, running_checks
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import name_of
from teamchat.core.store.texts import pack
from teamchat.core.store.turn_events import TimedEvent
from teamchat.core.store.turns import Turn, end_turn, running_folders, running_turns, session_of_folder, trace
from teamchat.core.store.usage import children_of
from teamchat.core.turn.execution import FinishedTurn
from teamchat.core.turn.kept_end import free_output, has_end, keep_end, read_end
from teamchat.core.turn.machine import scratch_of
from teamchat.core.turn.work_trees import WorkTrees
from teamchat.core.worktrees import any_made
from teamchat.patterns import regex
from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.base import Verdict
from teamchat.runners.child.process import open_output, settle, sweep
from teamchat.runners.child.removal import remove
from teamchat.runners.child.running import FIRST_LINE, LIVE
from teamchat.runners.untrusted.file_changes import FileChanges

TURNS = "turns"  # the folder of a workspace in which turns keep their output
_OURS = regex(rf"[0-9a-f]{{16}}({re.escape(LIVE)})?")


def turns_dir(db: Database) -> Path:
    """Return the folder where the turns of a store keep their output."""
    return db.path.parent / TURNS


STOPPED = "stopped"  # the file in a turn's folder


def output_folder(db: Database, turn: Turn | CheckRecord) -> Path | None:
    """Return the output folder of an unfinished turn or check; None if the store names no folder of teamchat's own."""
    return turns_dir(db) / turn.folder.name if _OURS.fullmatch(turn.folder.name) else None


def how_left(db: Database, turn: Turn) -> str:
    """Say what became of a turn that the store calls running, and that no process runs."""
    folder = output_folder(db, turn)
    if folder and has_end(folder):
        return NOT_STORED
    if not turn.setup.host:
        return KILLED
    return (STOPPED_ON if folder and was_stopped(folder) else RUNS_ON).format(turn.setup.host)


def was_stopped(folder: Path) -> bool:
    """Whether a person has stopped the turn of that folder, which went on at a host."""
    return (folder / STOPPED).exists()


def note_stopped(db: Database, turn: Turn) -> None:
    """Note that a turn which goes on at a host was stopped there. Its end is stored by the next command."""
    if folder := output_folder(db, turn):
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / STOPPED).touch()


def refuse_on_hosts(db: Database, session: int) -> None:
    """Raise `SessionBusy` for a turn that may go on at a host."""
    for turn in running_turns(db, session):
        if turn.setup.host:
            where = RUNS_ON.format(turn.setup.host)
            raise SessionBusy(f"turn {turn.number} ({turn.member}) {where}", "teamchat resume\nteamchat stop")


def recover_turns(db: Database, session: int, folder: Path, trees: WorkTrees) -> list[str]:
    """Close every turn that a dead process left open. Returns a sentence for each. The caller holds the session's lock.

    `folder` is where turns keep their output. `trees` has the files as they were before each turn.
    """
    running = running_turns(db, session)
    return [note for turn in running for note in _recover(db, session, turn, folder / turn.folder.name, trees)]


def kept_turns(db: Database, session: int, folder: Path) -> Iterator[tuple[Turn, FinishedTurn]]:
    """List the turns whose ends could not be stored, with their kept ends."""
    for turn in running_turns(db, session):
        own = folder / turn.folder.name
        if _OURS.fullmatch(own.name) and (finished := read_end(own)):
            yield replace(turn, folder=own), finished


def clean_turns(db: Database, session: int, folder: Path) -> list[str]:
    """Remove the files of all turns that are over from `folder`, which all sessions share.

    A kept process belongs to the session whose turn started it, and this session runs none yet. Returns a sentence for
    each folder that cannot be removed.
    """
    try:
        paths = [path for path in folder.iterdir() if _OURS.fullmatch(path.name)]
    except OSError:
        return []  # there were no turns yet
    # read last: a turn or check is stored before it has its folder
    running = running_folders(db) | running_check_folders(db) if paths else set()
    over = [path for path in paths if path.suffix != LIVE and path.name not in running]
    stayed = [path for path in paths if path.suffix == LIVE and session_of_folder(db, path.stem) in (session, None)]
    for path in stayed:
        _wait_until_dead(path)
    return [problem for path in (*over, *stayed) if (problem := _remove(path))]


def clean_folder(folder: Path) -> None:
    """End the remaining processes of turns with output in `folder` that nobody runs, and remove the folders."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _OURS.fullmatch(path.name):
                _wait_until_dead(path)
                _remove(path)


def recover_checks(db: Database, session: int, folder: Path, trees: WorkTrees) -> list[str]:
    """Close every check that a dead process left open, as one that was not run. Returns a sentence for each."""
    notes = []
    for check in running_checks(db, session):
        own = folder / check.folder.name
        output = _output(own) if _OURS.fullmatch(own.name) else b""
        changes = trees.interrupted(check.label, check.cwd)
        _remove_new_folder(db, check, trees)
        result = CheckResult("not_run", KILLED, not_run="interrupted", output_bytes=len(output))
        end_check(db, check, result, changes, pack(output) if output else None)
        again = ": it runs again" if check.route is not None else ""
        notes.append(f"{check.label} ({check.name}) {KILLED}{again}")
        notes += filter(None, [_remove(own) if _OURS.fullmatch(own.name) else None])
    return notes


def _remove_new_folder(db: Database, check: CheckRecord, trees: WorkTrees) -> None:
    """Remove the new folder of a killed check. What cannot be removed is replaced by the next one."""
    if not any_made(trees.folder):
        return
    from teamchat.core.worktrees.new_folder import is_in_new_folder, remove_new_folder

    if folder := is_in_new_folder(trees.folder, check.session, check.cwd):
        with contextlib.suppress(CheckpointFailed, OSError):
            remove_new_folder(trees.folder, name_of(db, check.session), folder)


def _output(folder: Path) -> bytes:
    """Wait until a killed check is dead, and read the kept part of its output."""
    _wait_until_dead(folder)
    return written_by_check(folder)


def written_by_check(folder: Path) -> bytes:
    """Read the kept part of an unfinished check's output from its folder."""
    with contextlib.suppress(OSError), open_output(folder) as file:
        file.seek(len(FIRST_LINE))
        return file.read(LARGEST_OUTPUT)
    return b""


def _wait_until_dead(folder: Path) -> None:
    """Wait until every process with its output in `folder` is dead, or end them if their guardian was killed."""
    with contextlib.suppress(OSError):  # it died before it made a file there
        settle(folder)
    with contextlib.suppress(StoreError):
        sweep(scratch_of(folder.with_suffix("")))


def _remove(folder: Path) -> str | None:
    """Remove the folders of the turn, or of the kept process, that has its output in `folder`."""
    try:
        return remove(scratch_of(folder.with_suffix("")), folder)
    except StoreError:
        return None  # the next command with a TMPDIR removes them


def _recover(db: Database, session: int, turn: Turn, folder: Path, trees: WorkTrees) -> list[str]:
    ours = _OURS.fullmatch(folder.name)
    verdict, events = Verdict(""), tuple[TimedEvent, ...]()
    if ours:
        from teamchat.core.conversation.turn_output import read_output

        _wait_until_dead(folder)
        verdict, events = read_output(turn, folder)
    failure = Failure(FailureKind.INTERRUPTED, KILLED)
    changes = trees.interrupted(str(turn.number), Path(turn.setup.cwd))
    files = tuple(change.path for change in changes.files) if isinstance(changes, FileChanges) else ()
    outcome = Outcome(None, None, failure, denied=None, usage=verdict.usage, files=files, changes=changes)
    outcome = replace(outcome, children=children_of(db, session, turn.id))
    _end(db, turn, FinishedTurn(outcome, verdict.text, events=events), folder if ours else None)
    note = f"turn {turn.number} ({turn.member}) {KILLED}; its partial text: teamchat show {turn.number}"
    return [note, *filter(None, [_remove(folder) if ours else None])]


def _end(db: Database, turn: Turn, finished: FinishedTurn, folder: Path | None) -> None:
    partial = trace(finished.text, events=finished.events)
    try:
        end_turn(db, turn, "interrupted", finished.outcome, partial)
    except DiskFull:
        if folder is None or not keep_end(folder, finished):
            raise
        free_output(folder)  # its output may be what has filled the disk
        end_turn(db, turn, "interrupted", finished.outcome, partial)
