"""Showing a conversation that another process runs, until a person ends it."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from teamchat.cli.output import Output
from teamchat.cli.output.jsonl import JsonOutput
from teamchat.cli.output.lines import note
from teamchat.cli.running.changes import Changes
from teamchat.cli.running.console import ENDS, TERMINATED_BY
from teamchat.cli.startup.typed import placed
from teamchat.cli.startup.workspace import find_team, session_typed
from teamchat.core.conversation.following import Follower
from teamchat.core.conversation.retelling import Retold
from teamchat.core.errors import ExitCode, TeamchatError
from teamchat.core.store.sessions import Session
from teamchat.core.team.team import Team
from teamchat.core.turn.lines import ResultLine
from teamchat.core.turn.run_events import Conclusion
from teamchat.core.turn.run_file import run_file

IDLE = "waiting for the next message; Ctrl-C ends"


def team_to_show(option: str | None, session: Session, root: Path) -> Team:
    """Find the team whose members are shown. A broken or a strange team file must not hide the conversation."""
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
    the shown end of a run.
    """
    typed = shlex.split(follower.team.typed + session_typed(follower.db, follower.session))

    def ends(ended: Conclusion) -> Conclusion:
        return at_end(replace(ended, hint=ended.hint and placed(ended.hint, typed)))

    shown = Beside(follower, output_of, ends)
    changes = Changes(run_file(follower.db.path.parent, follower.session.id).parent)
    with contextlib.closing(shown), asked_to_end() as asked, changes:
        first = True
        while not asked:
            for code in shown.look():
                if until_done and code is not None:
                    return code
                first = first or code is not None
                if asked:
                    break
            if not (follower.active or follower.unsure):
                if until_done:
                    return follower.conclusion().code if follower.code is None else follower.code
                if first:
                    note(IDLE)
                first = False
            sys.stdout.flush()
            changes.wait()
        if asked[0] is signal.SIGINT:
            return ExitCode.INTERRUPTED if until_done else ExitCode.DONE
        return TERMINATED_BY[asked[0]]


class Beside:
    """Shows the runs of another process, each with an output of its own. `at_end` may change how one is said to end."""

    def __init__(
        self, follower: Follower, output_of: Callable[[], Output], at_end: Callable[[Conclusion], Conclusion]
    ) -> None:
        self.follower, self._output_of, self._at_end = follower, output_of, at_end
        self._retold = Retold(follower.db, follower.session.id)
        self._output: Output | None = None

    def look(self) -> Iterator[ExitCode | None]:
        """Show the events since the last look, line by line. At the end of a run comes its exit code."""
        for line in self.follower.look():
            output = self._output = self._output or self._output_of()
            ended = self._retold.conclusion(line) if isinstance(line, ResultLine) else line
            if isinstance(ended, Conclusion):
                ended = self._at_end(ended)
                output.finish(ended)
                self._leave()
                yield ended.code
                continue
            if isinstance(output, JsonOutput):
                output.show(ended)
            elif event := self._retold.event(ended):
                output(event)
            yield None
        if not self.follower.active:
            self._leave()

    def _leave(self) -> None:
        output, self._output = self._output, None
        with contextlib.suppress(OSError):  # nobody reads it any more
            if output:
                output.close()

    def close(self) -> None:
        self._leave()
        self.follower.close()


@contextlib.contextmanager
def asked_to_end() -> Iterator[list[signal.Signals]]:
    """Collect the signals that ask for the end. The second one ends a write that waits for its reader."""
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
