"""Running a conversation from a command: the session's lock, the signals, the output and the exit code.

Telling a person who looks elsewhere that a run has ended: a bell, a notification of the desktop, a command.

A terminal gets a notification only if its environment says which of the two sequences (OSC 9, OSC 777) it knows. Any
other one, tmux and screen included, gets the bell alone, and `TERM=dumb` nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import select
import shlex
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from io import RawIOBase
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol, TextIO

from msgspec.structs import replace

from teamchat.cli.output import Output
from teamchat.cli.output.lines import closing_lines, note
from teamchat.cli.shared.options import Shown
from teamchat.cli.shared.report import output_lost, silence
from teamchat.cli.shared.showing import choose_output
from teamchat.cli.shared.typed import PROGRAM, named, placed
from teamchat.cli.shared.workspace import lock_file, session_typed
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
from teamchat.core.text.clean import printable, visible
from teamchat.core.turn.caller import find_caller
from teamchat.core.turn.events import Conclusion, ConversationEvent, Warned
from teamchat.core.turn.machine import Cooldowns, Machine, TrustedMachine
from teamchat.core.turn.run import Hand, Run
from teamchat.runners.child.guardians import GUARDIANS
from teamchat.runners.child.supervisor import Stopper

if TYPE_CHECKING:
    from teamchat.cli.shared.hooks import Hooks


class Keyboard(Protocol):
    """A person types at it while members work. Their messages are sent between turns."""

    def output(self, team: Team, *, told: bool) -> Output:
        """What shows a run above the prompt; `told` is as for `choose_output`."""
        ...

    @property
    def hand(self) -> Hand:
        """What the person does at it."""
        ...

    @property
    def leaving(self) -> bool:
        """True if chat ends with the run."""
        ...

    def hint(self, commands: str) -> str:
        """Commands of the command line as a person types them here."""
        ...

    def while_working(self, stopper: Stopper) -> AbstractContextManager[None]:
        """Show the prompt, and let Ctrl-C reach the stopper."""
        ...

    def restore(self) -> None:
        """Leave the terminal as it was, before an exit that does nothing else. Any thread may call it."""
        ...


KEYBOARD: ContextVar[Keyboard | None] = ContextVar("KEYBOARD", default=None)


# A second Ctrl-C ends the program even while it reads or stores a large reply.
#
# The event loop does not answer then, and Python runs no signal handler inside a call of C code. But Python writes
# the number of each signal to a pipe at once, and a thread waits at that pipe. Only a call that holds the
# interpreter's lock delays the thread.

NOTICE_S = 0.1  # of work without an answer from the event loop after the first signal; a slow disk causes no note
ANSWER_S = 0.5  # that the event loop has to answer after the second signal
LOOK_S = 0.05
BUSY = "still busy; Ctrl-C now ends teamchat at once"


@contextlib.contextmanager
def ends_at_second(codes: Mapping[int, int], before_exit: Callable[[], None] | None = None) -> Iterator[None]:
    """After a second signal, exit with the first one's code of `codes` if the running loop does not answer.

    If the loop is still busy after the first signal, a line on stderr says so. A loop that answers ends by itself:
    it waits for an agent that is being killed. The exit is a hard one: the store keeps what was committed, and
    recovery treats the rest as after `kill -9`. A thread calls `before_exit`. For the main thread only.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    ended = Event()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    watch = Thread(target=_watch, args=(read, asyncio.get_running_loop(), codes, ended, before_exit), daemon=True)
    with contextlib.suppress(RuntimeError):  # no thread can start, so no agent can either
        watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        os.close(write)
        if watch.ident is None:
            os.close(read)


def _watch(
    read: int,
    loop: asyncio.AbstractEventLoop,
    codes: Mapping[int, int],
    ended: Event,
    before_exit: Callable[[], None] | None,
) -> None:
    with os.fdopen(read, "rb", buffering=0) as pipe:  # open until the end: the interpreter warns about a broken pipe
        first = _next(pipe, codes)
        asked, told, again = _Asked(loop), False, False
        while first is not None and not ended.wait(LOOK_S):
            again = again or (_readable(pipe) and _next(pipe, codes) is not None)
            if asked.answered.is_set():
                asked = _Asked(loop)
            elif again and time.monotonic() - asked.at > ANSWER_S:
                if before_exit:
                    before_exit()
                os._exit(codes[first])
            elif not told and time.process_time() - asked.worked > NOTICE_S:
                told = True
                _tell(BUSY)


def _next(pipe: RawIOBase, numbers: Collection[int]) -> int | None:
    """Wait for the next signal of `numbers`; None if the run has ended."""
    while byte := pipe.read(1):
        if byte[0] in numbers:
            return byte[0]
    return None


def _readable(pipe: RawIOBase) -> bool:
    return bool(select.select((pipe,), (), (), 0)[0])


class _Asked:
    """A request to the loop for an answer, sent `at` that time after so many seconds of work."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.at, self.worked = time.monotonic(), time.process_time()
        self.answered = Event()
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run has ended
            loop.call_soon_threadsafe(self.answered.set)


def _tell(line: str) -> None:
    """Print a line on stderr if it can be written at once: the second signal must not wait for it."""
    with contextlib.suppress(OSError):
        if select.select((), (2,), (), 0)[1]:
            before = "\n" if os.isatty(2) else ""  # the terminal has printed ^C, perhaps in the middle of a line
            os.write(2, f"{before}· {line}\n".encode())


Work = Callable[[ConversationCoordinator], Awaitable[Conclusion]]
Listen = Callable[[ConversationEvent], None]
AtEnd = Callable[[Conclusion], Conclusion]
Record = Callable[[Team, Database, Session, Work, Machine], tuple[Work, Machine, Listen]]
"""Makes the same work on the same machine, and records what happens. The last argument is the recording's `listen`."""
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STUCK_S = 1.0  # a write that takes longer waits for a reader, such as a pager
AGAIN_S = 0.1  # the same after a second request to end
DESCRIPTORS = 14  # that a turn needs besides the store: the event loop, signals, the guardian, the agent's streams
TERMINATED_BY = {signal.SIGTERM: ExitCode.TERMINATED, signal.SIGHUP: ExitCode.TERMINATED}
LONGEST_COMMAND = 200  # characters of a running session's command that another process is shown
NOBODY_READS = (errno.EPIPE, errno.EIO)  # a closed pipe, a closed terminal


def converse(
    team: Team,
    db: Database,
    session: Session,
    show: Shown,
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

    While another process runs the session, this one waits. With `wait` off it raises `SessionBusy`. `listen`
    receives everything that happens, whether or not it can be shown; a recording replaces it. `bounds` are
    as for `Run`. `at_end` may change what is shown of how it ended. The words of `verdict` are those that a run which
    is done may give; which one it is decides the exit code. What tells a person that the run has ended comes after
    the lock: the command of `--notify` may use the conversation.
    """
    began, machine = time.monotonic(), live(team)
    if record:
        work, machine, listen = record(team, db, session, work, machine)
    if verdict:
        work = _judged(work, verdict)  # which is not recorded: a replay is asked for none

    keyboard = KEYBOARD.get() if show.talks else None
    console = _console(keyboard, team, db, session, show, listen, at_end)
    works = keyboard.while_working(console.stopper) if keyboard else contextlib.nullcontext()
    with held(team.root, db, session, wait=wait), works:
        check_no_unfinished_undo(db, session.id)
        if caller := find_caller():
            caller.note(db, session)
        elif team.hooks:
            from teamchat.cli.shared.hooks import Hooks

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
    from teamchat.cli.shared.verdict import replies_of, with_verdict

    async def judged(coordinator: ConversationCoordinator) -> Conclusion:
        ended = await work(coordinator)
        return with_verdict(ended, words, replies_of(coordinator))

    return judged


def _console(
    keyboard: Keyboard | None,
    team: Team,
    db: Database,
    session: Session,
    show: Shown,
    listen: Listen | None,
    at_end: AtEnd | None,
) -> Console:
    """The console of a run, in chat if there is its `keyboard`."""

    def place(hint: str) -> str:
        return placed(hint, shlex.split(team.typed + session_typed(db, session)))

    told = show.talks and lacks_denials(db, session.id)
    if keyboard:
        return _in_chat(keyboard, keyboard.output(team, told=told), place, listen, at_end)
    return Console(choose_output(team, session.name, show, told=told), listen, place, at_end)


def _in_chat(
    keyboard: Keyboard, output: Output, place: Callable[[str], str], listen: Listen | None, at_end: AtEnd | None
) -> Console:
    """The console of a run in chat, where Ctrl-C is a key."""
    console = Console(output, listen, at_end=at_end)

    def hint(commands: str) -> str:
        """The commands for the prompt of chat, or for the shell if chat ends with the run."""
        return place(commands) if keyboard.leaving or console.stopped_by else keyboard.hint(commands)

    console.place = hint
    console.ends = tuple(TERMINATED_BY)
    console.before_exit = keyboard.restore
    return console


@contextlib.contextmanager
def held_run(team: Team, db: Database, session: Session) -> Iterator[Run]:
    """The run of a command that begins no turn, recovered, with the session's lock. Warnings become notes.

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
    """The real machine. Each turn checks the team's trust and the members' folders again."""
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
    """Return what a killed undo, redo or merge had put aside and no checkpoint has, or tell where it is kept.

    What a killed removal of a worktree took out is told, too.
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
    """Raises `OSError` if no turn could start. asyncio would print tracebacks of its own."""
    with contextlib.ExitStack() as spare:
        for _ in range(DESCRIPTORS):
            spare.callback(os.close, os.dup(2))


class Console:
    """Where one run is shown and stopped. `listen` receives everything that happens, whether or not it can be shown.

    Ctrl-C stops the turn. A second one kills it at once, or ends the program while a reply is read or stored.
    `place` adds team and session to a hint's commands. `at_end` may change what is shown of how the run ended.
    """

    def __init__(
        self,
        output: Output,
        listen: Listen | None = None,
        place: Callable[[str], str] | None = None,
        at_end: AtEnd | None = None,
    ) -> None:
        self.output, self.listen, self.place, self.at_end = output, listen, place, at_end
        self.ended: Conclusion | None = None
        self.ends: tuple[signal.Signals, ...] = ENDS
        self.before_exit: Callable[[], None] | None = None
        self.stopper = Stopper()
        self.stopped_by: signal.Signals | None = None
        self.deaf = False
        self.lost: OSError | None = None
        self.showing_since = math.inf
        self.hooks: Hooks | None = None

    async def run(self, coordinator: ConversationCoordinator, work: Work) -> ExitCode:
        """Let `work` run the conversation, whose run has this console's stopper and `emit`. Returns the exit code."""
        with self._signals():
            try:
                await coordinator.rejoin()
                coordinator.recover(rejoined=True)
                conclusion = self._concluded(await work(coordinator))
                if self.hooks:
                    self.hooks.end(conclusion)
            finally:
                await coordinator.close()
                if self.hooks:
                    await self.hooks.close()
            return self._finish(conclusion)

    def close(self) -> None:
        """Leave the terminal as it was. Nothing is written where nobody reads."""
        if not self.deaf:
            with contextlib.suppress(OSError):
                self.output.close()

    def _concluded(self, conclusion: Conclusion) -> Conclusion:
        """How the run ended, with the signal that ended it and a hint that can be typed as it stands."""
        if conclusion.code is ExitCode.INTERRUPTED and self.stopped_by in TERMINATED_BY:
            conclusion = replace(conclusion, code=TERMINATED_BY[self.stopped_by])
        if self.place and conclusion.hint:
            conclusion = replace(conclusion, hint=self.place(conclusion.hint))
        return conclusion

    def _finish(self, conclusion: Conclusion) -> ExitCode:
        """Show how the run ended. Returns its exit code."""
        self.ended = conclusion
        if self.at_end:
            conclusion = self.at_end(conclusion)
        self._show(lambda: self.output.finish(conclusion))
        return self._not_shown(conclusion) if self.deaf else conclusion.code

    def _not_shown(self, conclusion: Conclusion) -> ExitCode:
        """The exit code of a run whose output was lost. Notes say what is waiting, and which command prints the rest.

        It prints no note if nobody asked for the output (as behind `head`), or if nobody reads stderr any more.
        """
        if (self.lost or self.stopped_by) and self.place and select.select([], [sys.stderr], [], 0)[1]:
            for line in (*closing_lines(conclusion), f"the conversation is in: {self.place('teamchat log')}"):
                note(visible(line))
        if self.lost:
            return ExitCode.STORE
        if self.stopped_by and conclusion.done:
            return TERMINATED_BY.get(self.stopped_by, ExitCode.INTERRUPTED)
        return conclusion.code

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle the signals that end a run, except those that the caller ignores (`nohup`, a script's `&`)."""
        before = {number: signal.getsignal(number) for number in self.ends}
        heard = [number for number in self.ends if before[number] is not signal.SIG_IGN]
        for number in heard:
            signal.signal(number, self._stop)  # not the event loop's, which waits for a write that nobody reads
        try:
            codes: dict[int, int] = {number: TERMINATED_BY.get(number, ExitCode.INTERRUPTED) for number in heard}
            with ends_at_second(codes, self.before_exit):
                yield
        finally:
            for number in heard:
                signal.signal(number, before[number])

    def _stop(self, number: int, _frame: object) -> None:
        self.stopped_by = self.stopped_by or signal.Signals(number)
        self.stopper.request()
        patience = STUCK_S if self.stopper.asked == 1 else AGAIN_S
        if time.monotonic() - self.showing_since > patience:
            raise BrokenPipeError(errno.EPIPE, "nobody reads the output")

    def emit(self, event: ConversationEvent) -> None:
        if self.listen:
            self.listen(event)
        if isinstance(event, Warned) and PROGRAM.get() != "teamchat":
            event = replace(event, text=named(event.text))
        self._show(lambda: self.output(event))
        if self.hooks:
            self.hooks(event)

    def warn(self, text: str) -> None:
        """Show a warning that is no part of the conversation. No recording has it."""
        self._show(lambda: self.output(Warned(text)))

    def _show(self, show: Callable[[], None]) -> None:
        """A closed pipe or terminal ends the turn silently, a full disk with a note. The store keeps everything."""
        if self.deaf:
            return
        self.showing_since = time.monotonic()
        try:
            show()
        except OSError as error:
            self.deaf = True
            silence(sys.stdout)
            if not self.stopper.asked:
                self.stopper.request()
            if error.errno not in NOBODY_READS:
                self.lost = error
                output_lost(error)
        finally:
            self.showing_since = math.inf


AFTER_S = 20.0  # a run that ends earlier is still looked at
PATIENCE_S = 10.0  # for the command of `--notify`
LONGEST = 200  # characters of a notification
BELL = "\a"
OSC_9 = ("iTerm.app", "WezTerm", "ghostty")  # TERM_PROGRAM
OSC_777 = ("rxvt-unicode", "foot", "ghostty")  # how TERM begins


def tell(conclusion: Conclusion, session: str, seconds: float, command: str | None) -> None:
    """Tell that a run of so many seconds has ended, and run the `command` with its result.

    A person who stopped the run by Ctrl-C is there, and gets neither bell nor notification.
    """
    if seconds > AFTER_S and conclusion.code is not ExitCode.INTERRUPTED:
        ring(alert(conclusion, os.environ))
    if command:
        give(command, conclusion, session)


def alert(conclusion: Conclusion, env: Mapping[str, str]) -> str:
    """The bell, and the notification in the sequence that the terminal of this environment knows."""
    said = printable(next(iter(closing_lines(conclusion)), "done"))[:LONGEST]
    if env.get("TMUX") or env.get("STY"):
        return BELL
    if env.get("TERM_PROGRAM") in OSC_9 or env.get("TERM") == "xterm-kitty":
        return f"{BELL}\x1b]9;teamchat: {said}{BELL}"
    if env.get("TERM", "").startswith(OSC_777):
        return f"{BELL}\x1b]777;notify;teamchat;{said.replace(';', ',')}{BELL}"
    return BELL


def ring(sequence: str) -> None:
    """Write it to the terminal that is stdout or stderr, if there is one that is not `dumb`."""
    to = next(filter(_is_terminal, (sys.stdout, sys.stderr)), None)
    if to is None or os.environ.get("TERM", "dumb") == "dumb":
        return
    try:
        to.flush()
        os.write(to.fileno(), sequence.encode(errors="replace"))  # `chat` shows what is printed line by line
    except OSError:  # it has gone
        return


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False


def give(command: str, conclusion: Conclusion, session: str) -> None:
    """Run a shell command with the `result` of `--json` on its stdin. A note says that it failed."""
    import json

    from teamchat.cli.output.jsonl import result_line
    from teamchat.runners.child.command import run_alone

    result = json.dumps(result_line(session, conclusion), ensure_ascii=False) + "\n"
    try:
        ran = run_alone(
            ["/bin/sh", "-c", command], Path.cwd(), os.environ, PATIENCE_S, result.encode(errors="backslashreplace")
        )
    except (OSError, ValueError) as error:
        note(f"--notify failed: {error}")
        return
    except KeyboardInterrupt:
        note("--notify was interrupted")
        return
    if ran.code is None:
        note(f"--notify took longer than {PATIENCE_S:g} s and was ended")
    elif ran.code:
        said = ran.out.decode(errors="replace").strip().splitlines()[-1:]
        note(printable(": ".join([f"--notify failed with exit code {ran.code}", *said]))[:LONGEST])
