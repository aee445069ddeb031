"""The console of one run of a conversation: its output, its signals, and its end."""

from __future__ import annotations

import contextlib
import errno
import math
import select
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from teamchat.cli.output import Output
from teamchat.cli.output.lines import closing_lines, note
from teamchat.cli.running.second_signal import ends_at_second
from teamchat.cli.startup.report import output_lost, silence
from teamchat.cli.startup.typed import PROGRAM, named
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.errors import ExitCode
from teamchat.core.text.clean import visible
from teamchat.core.turn.run_events import Conclusion, ConversationEvent, Warned
from teamchat.core.turn.run_file import RunFile
from teamchat.runners.child.supervisor import Stopper

if TYPE_CHECKING:
    from teamchat.cli.running.hooks import Hooks

Work = Callable[[ConversationCoordinator], Awaitable[Conclusion]]
Listen = Callable[[ConversationEvent], None]
AtEnd = Callable[[Conclusion], Conclusion]
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STUCK_S = 1.0  # a write that takes longer waits for a reader, such as a pager
AGAIN_S = 0.1  # the same limit after a second request to end
TERMINATED_BY = {signal.SIGTERM: ExitCode.TERMINATED, signal.SIGHUP: ExitCode.TERMINATED}
NOBODY_READS = (errno.EPIPE, errno.EIO)  # a closed pipe, a closed terminal


class Console:
    """The place where one run is shown and stopped. `listen` receives everything that happens, whether or not it can be
    shown.

    So does the `file` of the run, if there is one.

    Ctrl-C stops the turn. A second one kills it at once, or ends the program while a reply is read or stored.
    `place` adds team and session to a hint's commands. `at_end` may change the shown end of the run.
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
        self.file: RunFile | None = None

    async def run(self, coordinator: ConversationCoordinator, work: Work) -> ExitCode:
        """Let `work` run the conversation, whose run has this console's stopper and `emit`. Returns the exit code."""
        with self._signals():
            try:
                await coordinator.rejoin()
                coordinator.recover(rejoined=True)
                ended = await work(coordinator)
                if ended.code is ExitCode.INTERRUPTED and self.stopped_by in TERMINATED_BY:
                    ended = replace(ended, code=TERMINATED_BY[self.stopped_by])
                hint = self.place(ended.hint) if self.place and ended.hint else ended.hint
                conclusion = replace(ended, hint=hint)
                if self.hooks:
                    self.hooks.end(conclusion)
            finally:
                await coordinator.close()
                if self.hooks:
                    await self.hooks.close()
            if self.file:
                self.file.finish(ended)  # with a hint that a reader places
            self.ended = conclusion
            if self.at_end:
                conclusion = self.at_end(conclusion)
            self._show(lambda: self.output.finish(conclusion))
            return self._not_shown(conclusion) if self.deaf else conclusion.code

    def close(self) -> None:
        """Leave the terminal as it was. Nothing is written where nobody reads."""
        if not self.deaf:
            with contextlib.suppress(OSError):
                self.output.close()

    def _not_shown(self, conclusion: Conclusion) -> ExitCode:
        """Return the exit code of a run whose output was lost. Notes say what waits, and which command prints the rest.

        It prints no note if nobody wanted the rest (as behind `head`), or if nobody reads stderr any more.
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
        if self.file:
            self.file(event)
        if self.listen:
            self.listen(event)
        if isinstance(event, Warned) and PROGRAM.get() != "teamchat":
            event = replace(event, text=named(event.text))
        self._show(lambda: self.output(event))
        if self.hooks:
            self.hooks(event)

    def warn(self, text: str) -> None:
        """Show a warning outside the conversation. No recording has it."""
        if self.file:
            self.file(Warned(text))
        self._show(lambda: self.output(Warned(text)))

    def _show(self, show: Callable[[], None]) -> None:
        """Show. A closed pipe or terminal ends the turn silently, a full disk with a note. The store loses nothing."""
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
