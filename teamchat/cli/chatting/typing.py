"""What the keys of the prompt do. Everything here runs in the screen's thread."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue

from msgspec import Struct

from teamchat.cli.chatting.kept import Kept, Place
from teamchat.cli.chatting.layout import Shown
from teamchat.cli.chatting.slash import WAITS, WORKING, Command, command_of, options_in_chat
from teamchat.core.errors import ExitCode, TeamchatError
from teamchat.core.messages import Span
from teamchat.core.routing.at_names import split_calls, with_calls
from teamchat.core.routing.markers import touches
from teamchat.core.store.database import Database
from teamchat.core.text.clean import printable
from teamchat.runners.process.supervisor import Stopper

STOPS = "stopping the turn; Ctrl-C again stops what is queued, too"
STOPS_ALL = "stopping; what is queued stays queued"
LEAVES = "leaving as soon as the turn is stopped"
OPEN = "the question stays open"
PASTED = "· a paste of several lines holds no commands: it is sent as text"


class Send(Struct, frozen=True):
    """Send what is kept; `earlier`: also what an earlier chat has left, for which a person has just asked."""

    earlier: bool = False


class Stop(Struct, frozen=True):
    """Wait no longer for a session that another process runs."""


class Leave(Struct, frozen=True):
    code: int = ExitCode.DONE


Item = Send | Stop | Command | Leave | BaseException
"""What the main thread is to do; an error of the screen's thread ends chat."""


class Typing:
    """`inbox` is read by the main thread. `stopper` is set while members work.

    `tell` writes a line above the prompt, `run_now` runs a command while members work.
    """

    def __init__(
        self,
        place: Place,
        inbox: SimpleQueue[Item],
        shown: Shown,
        open_db: Callable[[], Database],
    ) -> None:
        self.place, self.inbox, self.shown = place, inbox, shown
        self.stopper: Stopper | None = None
        self.leaving = False
        self.tell: Callable[[str], None]
        self.run_now: Callable[[Command], None]
        self._open_db, self._stops = open_db, 0

    def began(self) -> None:
        self._db = self._open_db()
        self._kept = Kept(self._db, self.place)
        self.look()

    def look(self) -> None:
        """Show what is queued now."""
        self._kept.look()
        self.shown.waiting = tuple(self._kept.waiting)

    def begin_work(self, stopper: Stopper) -> None:
        """Members begin to work; `stopper` stops them."""
        self._stops = 0
        self.stopper = stopper

    def end_work(self) -> None:
        self.stopper = None
        if self.shown.notice in (STOPS, STOPS_ALL):
            self.shown.notice = ""

    def entered(self, text: str, pasted: tuple[Span, ...]) -> bool:
        if not text.strip():
            if self.shown.waiting and self.stopper is None:
                self.inbox.put(Send(earlier=True))
            elif self.shown.asked:
                self.shown.notice = OPEN
            return True
        try:
            agents = [member.name for member in self.place.team.ai_members]
            begins_pasted = touches(0, 1, pasted)
            if not begins_pasted and (command := command_of(text, agents)):
                self._command(command)
                return True
            to, rest, parts = split_calls(text, self.place.team.members, pasted)
            self._kept.keep(rest, to, parts)
        except TeamchatError as error:
            self.tell(f"✗ {printable(options_in_chat(str(error)))}")
            return False
        if begins_pasted and text.startswith("/"):
            self.tell(PASTED)
        self._stops = 0
        self.shown.waiting = tuple(self._kept.waiting)
        if self.stopper is None:
            self.inbox.put(Send())
        return True

    def _command(self, command: Command) -> None:
        word = command.words[0]
        if word == "quit":
            self.left()
        elif word == "stop":
            self._stop()
        elif self.stopper is None:
            self.inbox.put(command)
        elif word in WAITS:
            self.tell(f"✗ {WORKING}")
        else:
            self.run_now(command)

    def _stop(self) -> None:
        """Stop what runs, as a second Ctrl-C does."""
        if self.stopper is None:
            self.tell("· nothing runs")
            return
        self._stops = 2
        self.stopper.request()
        self.shown.notice = STOPS_ALL

    def interrupted(self) -> bool:
        if self.stopper is None:
            self.inbox.put(Stop())
            return False
        self._stops += 1
        self.stopper.request(only_turn=self._stops == 1)
        self.shown.notice = STOPS if self._stops == 1 else STOPS_ALL
        return True

    def left(self) -> None:
        if self.stopper is None:
            self.inbox.put(Leave())
            return
        self.leaving = True
        self.shown.notice = LEAVES
        self.stopper.request()
        self.inbox.put(Leave(ExitCode.INTERRUPTED))

    def unqueued(self) -> tuple[str, tuple[Span, ...]] | None:
        try:
            last = self._kept.remove_last()
        except TeamchatError as error:
            self.tell(f"✗ {printable(str(error))}")
            return None
        self.shown.waiting = tuple(self._kept.waiting)
        if last is None:
            return None
        text = with_calls(last.to, last.text)
        before = len(text) - len(last.text)
        return text, tuple((start + before, end + before) for start, end in last.pasted)

    def ended(self, error: BaseException | None) -> None:
        self._db.close()
        if error is not None:
            if self.stopper is not None:
                self.stopper.request()
            self.inbox.put(error)
