"""Chat: what is typed goes into the store, and the main thread runs the conversation until nothing is left to send.

The prompt has a thread of its own. The session's lock is held only while members work, so that other terminals can
send, undo and stop in between.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from teamchat.cli.chatting.completing import completer
from teamchat.cli.chatting.history import history_in
from teamchat.cli.chatting.kept import Place
from teamchat.cli.chatting.layout import Shown
from teamchat.cli.chatting.looking import footer_of, question_to
from teamchat.cli.chatting.screen import Screen
from teamchat.cli.chatting.showing import Watched, output_on
from teamchat.cli.chatting.slash import BEGINS, PRINTS, here, in_chat, known, print_help, run_command
from teamchat.cli.chatting.streams import Above
from teamchat.cli.chatting.typing import Command, Item, Leave, Send, Stop, Typing
from teamchat.cli.output import Output
from teamchat.cli.output.lines import note, plural
from teamchat.cli.output.terminal.wrap import wrapped
from teamchat.cli.shared.conversation import converse
from teamchat.cli.shared.keyboard import KEYBOARD
from teamchat.cli.shared.showing import OutputOptions
from teamchat.cli.shared.workspace import need_trust, store_file, trust_store
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.errors import ExitCode, SessionBusy, TeamchatError
from teamchat.core.store.database import Database
from teamchat.core.store.unsent import unsent_of
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable
from teamchat.core.turn.events import Conclusion, ConversationEvent, MessageStored, TurnFinished, TurnStarted
from teamchat.runners.process.supervisor import Stopper

BUSY_S = 0.3  # between two tries to run a session that another process runs
ENDS = (signal.SIGTERM, signal.SIGHUP)


@dataclass
class Chat:
    """One chat of the main thread. `load` reads the team file again before each run."""

    db: Database
    place: Place
    load: Callable[[], Team]
    inbox: SimpleQueue[Item] = field(default_factory=SimpleQueue)
    shown: Shown = field(default_factory=Shown)
    locked_out: bool = False  # another process runs the session
    hidden: bool = False  # a command has the terminal
    run_begins: bool = False  # nothing of the run is shown yet
    interruptible: bool = False  # and Ctrl-C ends it
    terminated: bool = False  # by a signal: what is still in `inbox` is not done any more
    code: int = ExitCode.DONE  # of the last run

    def __post_init__(self) -> None:
        self.typing = Typing(self.place, self.inbox, self.shown, self._open_again)
        history = history_in(store_file(self.place.team.root).parent)
        self.screen = Screen(self.typing, self.shown, history, completer(self.place, known))
        self.typing.tell = self._tell
        self.typing.run_now = self._run_now

    def _tell(self, line: str) -> None:
        """Write a line above the prompt, broken at words."""
        self.screen.write("".join(f"{piece}\n" for piece in wrapped(line, self.screen.width)))

    def _open_again(self) -> Database:
        """The store for another thread."""
        return Database(store_file(self.place.team.root), typed=self.db.typed)

    def run(self) -> int:
        """Take what is typed until the person leaves. Returns the exit code."""
        self._look()
        before = sys.stdout, sys.stderr
        with self._signals():
            self.screen.start()
            sys.stdout, sys.stderr = Above(before[0], self.screen), Above(before[1], self.screen)
            try:
                return self._take_items()
            finally:
                sys.stdout, sys.stderr = before
                self.screen.stop()
                self._say_what_waits()

    def _take_items(self) -> int:
        if self._waiting():
            self.inbox.put(Send())
        while True:
            match self._next():
                case Send():
                    self._send()
                case Stop():
                    self.locked_out = False
                case Command(words=words):
                    self._run_command(words)
                case Leave(code=code):
                    ended_itself = code == ExitCode.INTERRUPTED != self.code
                    return ExitCode.DONE if ended_itself else code
                case BaseException() as error:
                    raise error
            self._look()

    def _next(self) -> Item:
        try:
            item = self.inbox.get(timeout=BUSY_S if self.locked_out else None)
        except Empty:
            item = Send()
        return Leave(ExitCode.TERMINATED) if self.terminated else item

    def _waiting(self) -> bool:
        session = self.place.session
        return bool(session and unsent_of(self.db, session.id))

    def _send(self) -> None:
        """Run the conversation until every kept message is sent, or something stops it."""
        refused: set[int] = set()

        async def work(coordinator: ConversationCoordinator) -> Conclusion:
            coordinator.typed_ahead.refused |= refused
            try:
                return await coordinator.send_unsent()
            finally:
                refused.update(coordinator.typed_ahead.refused)

        session = self.place.session
        while session and any(message.id not in refused for message in unsent_of(self.db, session.id)):
            try:
                self.place.team = self._trusted_team()
                show = OutputOptions(notify=self.place.notify)
                self.code = converse(self.place.team, self.db, session, show, work, wait=False)
            except SessionBusy as error:
                if not self.locked_out:
                    self._tell(f"· {printable(str(error))}")
                    self._tell("· what you type is sent when it ends")
                self.locked_out = True
                return
            except TeamchatError as error:
                self._tell(f"✗ {printable(str(error))}")
                return
            self.locked_out = False
            if self.code == ExitCode.TERMINATED:
                self.inbox.put(Leave(self.code))
            if self.code not in (ExitCode.DONE, ExitCode.HUMAN_ASKED):
                return

    def _trusted_team(self) -> Team:
        """The team as its file is now. A change that needs trust is asked about."""
        team = self.load()
        if not trust_store().standing(team).trusted:
            with self._terminal():
                need_trust(team, give=False)
        return team

    # --- commands

    def _run_command(self, words: tuple[str, ...]) -> None:
        if words[0] in PRINTS:
            self._run(words)
            return
        with self._terminal():
            self._run(words)

    def _run_now(self, words: tuple[str, ...]) -> None:
        """Run a command while members work, in the screen's thread."""
        self.screen.run_hidden(lambda: self._run(words))

    def _run(self, words: tuple[str, ...]) -> None:
        print(f"\n/{' '.join(words)}")
        if words == ("help",):
            print_help()
            return
        begins = self.place.session is None and words[0] in BEGINS
        with self.place.begun(self.db) if begins else contextlib.nullcontext():
            session = self.place.session
            run_command(here(words, session.name if session else None, self.place.team_typed))

    @contextlib.contextmanager
    def _terminal(self) -> Iterator[None]:
        """The terminal without the prompt, for what may ask something. Ctrl-C ends it."""
        self._hide()
        try:
            self.interruptible = True
            yield
        except KeyboardInterrupt:
            print()
        finally:
            self.interruptible = False
            self._unhide()

    def _hide(self) -> None:
        self.hidden = True
        self.screen.hide()

    def _unhide(self) -> None:
        self.screen.unhide()
        self.hidden = False

    # --- the keyboard of a run

    def output(self, team: Team) -> Output:
        you = self.place.you
        self.run_begins = True
        return Watched(output_on(team, self.screen, you), you, self.about_to_show, self.shown_now)

    @property
    def leaving(self) -> bool:
        return self.typing.leaving

    def hint(self, commands: str) -> str:
        return in_chat(commands)

    @contextlib.contextmanager
    def while_working(self, stopper: Stopper) -> Iterator[None]:
        hidden = self.hidden
        if hidden:
            self._unhide()
        self.typing.begin_work(stopper)
        try:
            yield
        finally:
            self.typing.end_work()
            if hidden:
                self._hide()

    def restore(self) -> None:
        self.screen.restore()

    def about_to_show(self, event: ConversationEvent) -> None:
        """Leave an empty line above a message that begins a run."""
        if _typed(event):
            self.screen.hold()
        if isinstance(event, MessageStored) and self.run_begins:
            self.screen.write("\n")
        if isinstance(event, MessageStored | TurnStarted):
            self.run_begins = False

    def shown_now(self, event: ConversationEvent) -> None:
        """Follow what is queued and what was spent. A person's message moves from the queue in one step."""
        if _typed(event):
            self.screen.update(self.typing.look)
        if isinstance(event, MessageStored | TurnFinished):
            self._look_around()

    def _look(self) -> None:
        self._look_around()
        self.screen.update(self.typing.look)

    def _look_around(self) -> None:
        """Show who asks and what was spent."""
        session = self.place.find(self.db)
        self.shown.asked = question_to(self.db, session, self.place)
        self.shown.footer = footer_of(self.db, session, self.place)
        self.screen.refresh()

    def _say_what_waits(self) -> None:
        session = self.place.session
        kept = len(unsent_of(self.db, session.id)) if session else 0
        if kept:
            note(f"{plural(kept, 'message')} still queued; teamchat chat sends {'it' if kept == 1 else 'them'}")

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        before = {
            number: signal.getsignal(number) for number in (*ENDS, signal.SIGINT, signal.SIGWINCH, signal.SIGCONT)
        }
        token = KEYBOARD.set(self)
        for number in ENDS:
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, self._terminated)
        signal.signal(signal.SIGINT, self._interrupted)
        signal.signal(signal.SIGWINCH, lambda *_: self.screen.resized())
        signal.signal(signal.SIGCONT, lambda *_: self.screen.continued())
        try:
            yield
        finally:
            KEYBOARD.reset(token)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _terminated(self, _number: int, _frame: object) -> None:
        self.terminated = True
        self.inbox.put(Leave(ExitCode.TERMINATED))  # in case nothing else is in it

    def _interrupted(self, _number: int, _frame: object) -> None:
        if self.interruptible and self.hidden:
            raise KeyboardInterrupt
        self.screen.call(self.typing.interrupted)


def _typed(event: ConversationEvent) -> bool:
    """True for the message of a person, which may have been queued."""
    return isinstance(event, MessageStored) and event.message.speaker.type == "human"
