"""Showing a conversation that another process runs, until a person ends it."""

from __future__ import annotations

import contextlib
import errno
import select
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from teamchat.cli.output import Output
from teamchat.cli.output.lines import note
from teamchat.cli.running.console import ENDS, TERMINATED_BY
from teamchat.cli.startup.typed import placed
from teamchat.cli.startup.workspace import find_team, session_typed
from teamchat.core.conversation.following import Follower
from teamchat.core.errors import ExitCode, TeamchatError
from teamchat.core.store.sessions import Session
from teamchat.core.team.team import Team
from teamchat.core.turn.run_events import Conclusion

IDLE = "waiting for the next message; Ctrl-C ends"


def team_to_show(option: str | None, session: Session, root: Path) -> Team:
    """The team whose members are shown. A broken team file, or that of another team, must not hide what is said."""
    try:
        team = find_team(option)
    except TeamchatError:
        team = None
    return team if team and team.name == session.team else Team(session.team, (), root)


def show_as_it_happens(
    follower: Follower,
    output_of: Callable[[], Output],
    *,
    until_done: bool = False,
    at_end: Callable[[Conclusion], Conclusion] = lambda ended: ended,
) -> ExitCode:
    """Show what happens, each run with an output of its own, until somebody ends it: Ctrl-C is the usual way.

    With `until_done` it ends with the run, and with the run's exit code; at once if nothing runs. `at_end` may change
    what is shown of how a run ended.
    """
    typed = shlex.split(follower.team.typed + session_typed(follower.db, follower.session))
    with contextlib.closing(follower), asked_to_end() as asked, contextlib.ExitStack() as shown:
        first, output = True, None
        while not asked:
            for event in follower.look():
                output = output or shown.enter_context(_closed_at_the_end(output_of()))
                if isinstance(event, Conclusion):
                    ended = at_end(replace(event, hint=event.hint and placed(event.hint, typed)))
                    output.finish(ended)
                    if until_done:
                        return ended.code
                    first = True
                else:
                    output(event)
                if asked:
                    break
            if not follower.active:
                shown.close()
                output = None
                if until_done:
                    return follower.conclusion().code
                if first:
                    note(IDLE)
                first = False
            _check_reader()
            time.sleep(follower.pause)
        if asked[0] is signal.SIGINT:
            return ExitCode.INTERRUPTED if until_done else ExitCode.DONE
        return TERMINATED_BY[asked[0]]


@contextlib.contextmanager
def _closed_at_the_end(output: Output) -> Iterator[Output]:
    try:
        yield output
    finally:
        with contextlib.suppress(OSError):  # nobody reads it any more
            output.close()


@contextlib.contextmanager
def asked_to_end() -> Iterator[list[signal.Signals]]:
    """The signals that ask for the end. The second one ends a write that waits for its reader."""
    asked: list[signal.Signals] = []

    def ask(number: int, _frame: object) -> None:
        asked.append(signal.Signals(number))
        if len(asked) > 1:
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in ENDS}
    heard = [number for number in ENDS if before[number] is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, ask)
    try:
        yield asked
    finally:
        for number in heard:
            signal.signal(number, before[number])


def _check_reader() -> None:
    """Raises `BrokenPipeError` if nobody reads the output any more. Without this, the next event would tell."""
    reader = select.poll()
    reader.register(sys.stdout, 0)
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in reader.poll(0)):
        raise BrokenPipeError(errno.EPIPE, "nobody reads the output")
