"""Runs a conversation from a command: the session's lock, the work, and the console that shows it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from teamchat.cli.output.lines import note
from teamchat.cli.running.console import TERMINATED_BY, AtEnd, Console, Listen, Work
from teamchat.cli.running.keyboard import KEYBOARD, Keyboard
from teamchat.cli.running.notify import tell
from teamchat.cli.running.showing import choose_output
from teamchat.cli.startup.options import ShownOptions
from teamchat.cli.startup.typed import placed
from teamchat.cli.startup.workspace import lock_file, session_typed
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.permission import trust_store
from teamchat.core.conversation.recovery import turns_dir
from teamchat.core.engine.state import UNBOUNDED, Bounds
from teamchat.core.errors import ExitCode
from teamchat.core.files.folders import state_dir
from teamchat.core.files.session_lock import session_lock
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, check_there
from teamchat.core.store.turns import lacks_denials
from teamchat.core.store.undos import check_no_unfinished_undo
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable
from teamchat.core.turn.caller import find_caller
from teamchat.core.turn.lines import LineMaker
from teamchat.core.turn.machine import Cooldowns, Machine, TrustedMachine
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import Conclusion, ConversationEvent, Warned
from teamchat.core.turn.run_file import RunFile, run_file
from teamchat.runners.child.guardians import GUARDIANS
from teamchat.runners.child.supervisor import Stopper

Record = Callable[[Team, Database, Session, Work, Machine], tuple[Work, Machine, Listen]]
"""Makes the same work on the same machine, and records what happens. The last argument is the recording's `listen`."""
DESCRIPTORS = 14  # descriptors for a turn besides the store: the event loop, signals, the guardian, the agent's streams
LONGEST_COMMAND = 200  # characters of this command that another process shows


def converse(
    team: Team,
    db: Database,
    session: Session,
    show: ShownOptions,
    work: Work,
    *,
    wait: bool = True,
    listen: Listen | None = None,
    record: Record | None = None,
    bounds: Bounds = UNBOUNDED,
    at_end: AtEnd | None = None,
    verdict: Sequence[str] = (),
    notify: str | None = None,
    lets_go: bool = False,
) -> ExitCode:
    """Let `work` run the conversation under the session's lock, and record it if requested. Returns the exit code.

    While another process runs the session, this one waits. With `wait` off it raises `SessionBusy`. `listen` receives
    everything that happens, whether or not it can be shown; a recording replaces it. `bounds` are as for `Run`.
    `at_end` may change the shown end of the run. A finished run may give one of the words of `verdict`, which decides
    the exit code. A person is told of the end after the lock is released: the command of `--notify` may use the
    conversation.
    """
    began, machine = time.monotonic(), live(team)
    if record:
        work, machine, listen = record(team, db, session, work, machine)
    if verdict:
        work = _judged(work, verdict)  # a verdict is not recorded: a replay is asked for none

    keyboard = KEYBOARD.get() if show.talks else None
    lines = LineMaker()
    console = _console(keyboard, team, db, session, show, lines, listen, at_end)
    works = keyboard.while_working(console.stopper) if keyboard else contextlib.nullcontext()
    file = RunFile(run_file(db.path.parent, session.id), session.name, lines)
    with held(team.root, db, session, wait=wait), works, contextlib.closing(file):
        console.file = file
        check_no_unfinished_undo(db, session.id)
        if caller := find_caller():
            caller.note(db, session)
        elif team.hooks:
            from teamchat.cli.running.hooks import Hooks

            console.hooks = Hooks(team, session.name, trust_store(), console.warn, lambda: console.stopper.asked)
        run = Run(
            team,
            db,
            session.id,
            folder=turns_dir(db),
            stopper=console.stopper,
            emit=console.emit,
            machine=machine,
            cooldowns=Cooldowns(state_dir() / "cooldowns.json"),
            bounds=bounds,
            hand=keyboard.hand if keyboard else None,
            takes_over=record is None and bounds == UNBOUNDED,
            person=sys.stdin.isatty() and sys.stderr.isatty(),
            lets_go=lets_go,
        )
        need_descriptors()
        with contextlib.closing(console):
            code = asyncio.run(console.run(ConversationCoordinator(run), work))
        if not KEYBOARD.get():
            GUARDIANS.dismiss()
    if console.ended:
        tell(console.ended, session.name, time.monotonic() - began, notify)
    return code


def _judged(work: Work, words: Sequence[str]) -> Work:
    from teamchat.cli.startup.verdict import replies_of, with_verdict

    async def judged(coordinator: ConversationCoordinator) -> Conclusion:
        ended = await work(coordinator)
        return with_verdict(ended, words, replies_of(coordinator))

    return judged


def _console(
    keyboard: Keyboard | None,
    team: Team,
    db: Database,
    session: Session,
    show: ShownOptions,
    lines: LineMaker,
    listen: Listen | None,
    at_end: AtEnd | None,
) -> Console:
    """Make the console of a run. With a `keyboard` it is one in chat, where Ctrl-C is a key."""

    def place(hint: str) -> str:
        return placed(hint, shlex.split(team.typed + session_typed(db, session)))

    lacks = show.talks and lacks_denials(db, session.id)
    if not keyboard:
        return Console(choose_output(team, session.name, show, lines, told=lacks), listen, place, at_end)
    console = Console(keyboard.output(team, told=lacks), listen, at_end=at_end)

    def hint(commands: str) -> str:
        """Word the commands for the prompt of chat, or for the shell if chat ends with the run."""
        return place(commands) if keyboard.leaving or console.stopped_by else keyboard.hint(commands)

    console.place = hint
    console.ends = tuple(TERMINATED_BY)
    console.before_exit = keyboard.restore
    return console


@contextlib.contextmanager
def held_run(team: Team, db: Database, session: Session) -> Iterator[Run]:
    """Hold the session's lock for a command that begins no turn, and recover its run. Warnings become notes.

    Raises `SessionBusy` while another process runs the session.
    """

    def emit(event: ConversationEvent) -> None:
        if isinstance(event, Warned):
            note(printable(event.text))

    with held(team.root, db, session, wait=False):
        run = Run(team, db, session.id, folder=turns_dir(db), stopper=Stopper(), emit=emit)
        ConversationCoordinator(run).recover()
        yield run


def live(team: Team) -> Machine:
    """Make the real machine. Each turn checks the team's trust and the members' folders again."""
    return TrustedMachine(team, trust_store())


@contextlib.contextmanager
def held(root: Path, db: Database, session: Session, *, wait: bool) -> Iterator[None]:
    """Hold the session's lock. Raises `SessionBusy` if it may not `wait`, `UnknownName` if the session was deleted."""
    command = printable(shlex.join(["teamchat", *sys.argv[1:]]))[:LONGEST_COMMAND]
    waits = (lambda holder: note(f"waiting for {holder}")) if wait else None
    with session_lock(lock_file(root, session.id), command, waits):
        check_there(db, session)
        _complete_restores(db.path.parent)
        yield


def _complete_restores(state: Path) -> None:
    """Return files that a killed undo, redo or merge put aside and no checkpoint has, or say where they are kept.

    It also reports files that a killed removal of a worktree took out.
    """
    if (state / "restoring").is_dir():
        from teamchat.cli.output.undoing import kept_lines
        from teamchat.core.checkpoint.restore import recover

        for line in kept_lines(recover(state)):
            note(line)
    if (state / "kept").is_dir():
        from teamchat.core.worktrees.remove import left_behind

        for place in left_behind(state):
            note(printable(f"kept: what only a worktree had is at {place}, which a killed command has moved"))


def need_descriptors() -> None:
    """Raise `OSError` if no turn could start. asyncio would print tracebacks of its own."""
    with contextlib.ExitStack() as spare:
        for _ in range(DESCRIPTORS):
            spare.callback(os.close, os.dup(2))
