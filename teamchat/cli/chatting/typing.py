"""What the keys of the prompt do. Everything here runs in the screen's thread."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue

from msgspec import Struct

from teamchat.cli.chatting.kept import Kept, Place
from teamchat.cli.chatting.layout import Shown
from teamchat.cli.chatting.slash import WAITS, WORKING, command_of
from teamchat.core.errors import ExitCode, TeamchatError
from teamchat.core.routing.at_names import split_calls, with_calls
from teamchat.core.store.database import Database
from teamchat.core.text.clean import printable
from teamchat.runners.process.supervisor import Stopper

STOPS = "stopping the turn; Ctrl-C again stops what is queued, too"
STOPS_ALL = "stopping; what is queued stays queued"
LEAVES = "leaving as soon as the turn is stopped"
OPEN = "the question stays open"


class Send(Struct, frozen=True):
    """Send what is kept."""


class Stop(Struct, frozen=True):
    """Wait no longer for a session that another process runs."""


class Command(Struct, frozen=True):
    words: tuple[str, ...]


class Leave(Struct, frozen=True):
    code: int = ExitCode.DONE


Item = Send | Stop | Command | Leave | BaseException
"""What the main thread is to do; an error of the screen's thread ends chat."""


class Typing:
    """`inbox` is read by the main thread. `stopper` is set while members work.

    `tell` writes a line above the prompt, `run_now` runs a command's words while members work.
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
        self.run_now: Callable[[tuple[str, ...]], None]
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

    def entered(self, text: str) -> str | None:
        if not text.strip():
            if self.shown.waiting and self.stopper is None:
                self.inbox.put(Send())
            elif self.shown.asked:
                self.shown.notice = OPEN
            return None
        try:
            if words := command_of(text):
                self._command(tuple(words))
                return None
            to, rest = split_calls(text, self.place.team.members)
            self._kept.keep(rest, to)
        except TeamchatError as error:
            self.tell(f"✗ {printable(str(error))}")
            return text
        self._stops = 0
        self.shown.waiting = tuple(self._kept.waiting)
        if self.stopper is None:
            self.inbox.put(Send())
        return None

    def _command(self, words: tuple[str, ...]) -> None:
        if self.stopper is None:
            self.inbox.put(Command(words))
        elif words[0] in WAITS:
            self.tell(f"✗ {WORKING}")
        else:
            self.run_now(words)

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

    def unqueued(self) -> str | None:
        try:
            last = self._kept.remove_last()
        except TeamchatError as error:
            self.tell(f"✗ {printable(str(error))}")
            return None
        self.shown.waiting = tuple(self._kept.waiting)
        return with_calls(last.to, last.text) if last else None

    def ended(self, error: BaseException | None) -> None:
        self._db.close()
        if error is not None:
            if self.stopper is not None:
                self.stopper.request()
            self.inbox.put(error)
