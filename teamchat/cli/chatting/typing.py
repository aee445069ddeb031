"""The actions of the prompt's keys. Everything here runs in the screen's thread."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue

import typer
from msgspec import Struct

from teamchat.cli.chatting.layout import ChatLines
from teamchat.cli.chatting.slash import WAITS, WORKING, SlashCommand, command_of, habit_of, opens, options_in_chat
from teamchat.cli.startup.options import session_title
from teamchat.cli.startup.workspace import choose_session, is_held
from teamchat.core.conversation.addressing import Addressed
from teamchat.core.conversation.entry import check_message
from teamchat.core.conversation.inputs import Message, typed_spans
from teamchat.core.conversation.mentioned import illustrated, mentioned_images
from teamchat.core.errors import ExitCode, TeamchatError, UsageError
from teamchat.core.messages import Span
from teamchat.core.routing.at_calls import inside_note, names_inside, split_calls, with_calls
from teamchat.core.routing.markers import touches
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, current_session, find_session, is_bare, remove_session
from teamchat.core.store.unsent import Unsent, edit_unsent, keep_unsent, put_back_unsent, remove_unsent, unsent_of
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable
from teamchat.core.turn.run import Hand
from teamchat.runners.child.supervisor import Stopper


class ChatPlace(Struct):
    """What a chat talks to: team (as loaded and as typed), person, session, and how it tells that a run ended.

    A session that it does not continue begins with the first message, with the `name` and `title` that were typed.
    """

    team: Team
    team_typed: str | None
    speaker: str | None
    name: str | None
    new: bool
    title: str | None = None
    session: Session | None = None
    notify: str | None = None

    @property
    def you(self) -> str:
        """The person at the keyboard."""
        return self.speaker or self.team.humans[0].name

    def find(self, db: Database) -> Session | None:
        """Find the session that it continues, if there is one."""
        if self.session is None and not self.new:
            self.session = current_session(db, self.name)
        return self.session

    def begin_another(self, title: str) -> None:
        """Let the next message begin another session, with that title if there is one. Raises `UsageError`."""
        try:
            self.title = session_title(title or None)
        except typer.BadParameter as error:
            raise UsageError(str(error)) from None
        self.session, self.name, self.new = None, None, True

    def open(self, session: Session) -> None:
        """Continue another session."""
        self.session, self.name, self.new, self.title = session, session.name, False, None

    @contextlib.contextmanager
    def begun(self, db: Database) -> Iterator[None]:
        """Begin the conversation for a command. If the command stores nothing in it, there is none."""
        self.session, _ = choose_session(db, self.team, self.name, new=True, title=self.title)
        try:
            yield
        finally:
            session = find_session(db, self.session.name)
            if session and is_bare(db, session, self.team.task):
                remove_session(db, session.id)
                self.session = None


class WaitingMessages:
    """For the thread that has made `db`. `waiting` has the messages in the order typed, as of the last look.

    One of them may be `edited` in the prompt: it stays in the store until its new text is, or until it is removed.
    """

    def __init__(self, db: Database, place: ChatPlace, hand: Hand) -> None:
        self._db, self._place, self._hand = db, place, hand
        self.waiting: list[Unsent] = []
        self.edited: Unsent | None = None

    def look(self) -> None:
        session = self._place.session
        self.waiting = unsent_of(self._db, session.id) if session else []

    def check(self, text: str, to: str | None, pasted: tuple[Span, ...]) -> Addressed:
        """Address a message. Raises the reason if it cannot be sent as it is, as `check_message` does."""
        place = self._place
        shown = illustrated(text, len(text), pasted, place.team.root)
        typed = typed_spans(shown.typed, shown.pasted)
        message = Message(text=shown.text, typed=typed, images=shown.images, speaker=place.speaker, to=to)
        addressed = check_message(place.team, self._db, place.session, message)
        assert addressed, "it is no task"
        return addressed

    def keep(self, text: str, to: str | None, pasted: tuple[Span, ...]) -> None:
        """Store a message that was checked, in place of the one that was edited."""
        place = self._place
        if place.session is None:
            place.session, _ = choose_session(self._db, place.team, place.name, new=True, title=place.title)
        with self._db.transaction():
            message = keep_unsent(self._db, place.session.id, text, place.speaker, to, pasted=pasted)
            self._hand.typed.add(message.id)  # before a run can send it
            self.waiting.append(message)
            self.remove_edited()

    def edit_last(self) -> Unsent | None:
        """Edit the message that was typed last; None if all have been sent meanwhile."""
        self.look()
        while self.waiting:
            last = self.waiting.pop()
            if edit_unsent(self._db, last.id):
                self.edited = last
                return last
        return None

    def remove_edited(self) -> None:
        """Remove the message that is edited, if there is one."""
        if self.edited:
            remove_unsent(self._db, self.edited.id)
            self.edited = None

    def put_back(self) -> None:
        """Let the edited message wait again unchanged, if there is one."""
        if self.edited:
            put_back_unsent(self._db, self.edited.id)
            self.edited = None
            self.look()


STOPS = "stopping the turn; Ctrl-C again stops what is queued, too"
STOPS_ALL = "stopping; what is queued stays queued"
STOPPED = "stopped: a message takes its place, /resume runs it again, /resume --drop not"
LEAVES = "leaving as soon as the turn is stopped"
STAYS = "a turn runs: Ctrl-D once more stops it and leaves"
NEW_LINE = "Enter behind Esc begins a new line; Enter once more sends"
UNDOES = "Esc once more: /undo, which asks first"
AGAIN_S = 2.0  # how soon the second of two keys must follow the first
ELSEWHERE = "another process runs this conversation: teamchat stop, in a shell, stops it"
OPEN = "the question stays open"
PASTED = "· a paste of several lines holds no commands: it is sent as text"


def _as_text(names: Sequence[str], to: Sequence[str]) -> str:
    """Write the note on members named inside a line, before the line is sent."""
    those, are, goes = ", ".join(f"@{name}" for name in names), "is" if len(names) == 1 else "are", ", ".join(to)
    goes = f"this goes to {goes}" if goes else "this goes to nobody"
    does = f"@{names[0]} at the beginning of a line calls {names[0]}"
    return printable(f"· {those} {are} text here, and {goes}: Enter once more sends it; {does}")


class Send(Struct, frozen=True):
    """Send the kept messages; `earlier`: also those of an earlier chat, because a person has just asked for them."""

    earlier: bool = False


class Stop(Struct, frozen=True):
    """Wait no longer for a session that another process runs."""


class Leave(Struct, frozen=True):
    code: int = ExitCode.DONE


Item = Send | Stop | SlashCommand | Leave | BaseException
"""Work for the main thread; an error of the screen's thread ends chat."""


class Typing:
    """`inbox` is read by the main thread. `stopper` is set while members work.

    `tell` writes a line above the prompt, `run_now` runs a command while members work.
    """

    def __init__(
        self, place: ChatPlace, inbox: SimpleQueue[Item], shown: ChatLines, hand: Hand, open_db: Callable[[], Database]
    ) -> None:
        self.place, self.inbox, self.shown, self.hand = place, inbox, shown, hand
        self.stopper: Stopper | None = None
        self.leaving = False
        self.tell: Callable[[str], None]
        self.run_now: Callable[[SlashCommand], None]
        self.asked: str | None = None
        self._notes: list[str] = []  # warnings given before the message was sent
        self._open_db, self._stops = open_db, 0
        self._escaped_at = -math.inf  # the time of an Esc at a text that has not changed since
        self._warned: tuple[str, float] = ("", -math.inf)  # what a second key would do, and the time of that warning

    def began(self) -> None:
        self._db = self._open_db()
        self._kept = WaitingMessages(self._db, self.place, self.hand)
        self.look()

    def look(self) -> None:
        """Show the current queue."""
        self._kept.look()
        self.shown.waiting = tuple(self._kept.waiting)

    def begin_work(self, stopper: Stopper) -> None:
        """Note that members begin to work; `stopper` stops them."""
        self._stops, self.hand.stopping = 0, None
        self.stopper, self.shown.works = stopper, True

    def end_work(self) -> None:
        stopped = self.stopper is not None and self.stopper.asked > 0
        self.stopper, self.shown.works = None, False
        if self.shown.notice in (STOPS, STOPS_ALL, STAYS, ""):
            self.shown.notice = STOPPED if stopped and self.hand.stopping else ""

    def turn_ended(self) -> None:
        """Note that the requested stop is done."""
        if self.shown.notice in (STOPS, STOPS_ALL):
            self.shown.notice = ""

    def entered(self, text: str, pasted: tuple[Span, ...]) -> bool:
        if not text.strip():
            if self.shown.waiting and self.stopper is None:
                self.inbox.put(Send(earlier=True))
            elif self.shown.asked:
                self.shown.notice = OPEN
            return True
        asked, self.asked = self.asked, None
        try:
            begins_pasted = touches(0, 1, pasted)
            if not begins_pasted and (command := command_of(text, self.place.team)):
                self._kept.put_back()
                self.shown.waiting = tuple(self._kept.waiting)
                self._command(command)
                return True
            if self._is_habit(text, pasted) or not self._taken(text, pasted, asked):
                return False
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

    def _is_habit(self, text: str, pasted: tuple[Span, ...]) -> bool:
        """Return whether a typed line is a habit from another program; say what does it here."""
        lines = [] if pasted else habit_of(text)
        for line in lines:
            self.tell(printable(line))
        return bool(lines)

    def _taken(self, text: str, pasted: tuple[Span, ...], asked: str | None) -> bool:
        """Return whether the message is kept.

        One with an `@name` that calls nobody is asked about first: `asked` is what Enter sends.
        """
        to, rest, parts = split_calls(text, self.place.team.members, pasted)
        addressed = self._kept.check(rest, to, parts)
        called = (addressed.speaker.role_name, *addressed.names)
        inside = list(dict.fromkeys(names_inside(addressed.text, self.place.team.members, called, parts)))
        if inside and text != asked:
            self.tell(_as_text(inside, addressed.names))
            self.asked = text
            return False
        self._kept.keep(rest, to, parts)
        self._notes += map(inside_note, inside)
        return True

    def was_told(self, warning: str) -> bool:
        """Return whether the warning was told before a message was sent; only once for each time."""
        with contextlib.suppress(ValueError):
            self._notes.remove(warning)
            return True
        return False

    def pictured(self, text: str, pasted: tuple[Span, ...]) -> tuple[str, ...]:
        return mentioned_images(text, pasted, self.place.team.root)

    def _command(self, command: SlashCommand) -> None:
        word = command.words[0]
        if word == "quit":
            self.left()
        elif word == "stop":
            self._stop()
        elif self.stopper is None:
            self.inbox.put(command)
        elif word in WAITS or opens(command.words):
            self.tell(f"✗ {WORKING}")
        else:
            self.run_now(command)

    def _stop(self) -> None:
        """Stop what runs, as a second Ctrl-C does."""
        if self.stopper is None:
            self.tell(f"· {ELSEWHERE if self.runs_elsewhere() else 'nothing runs'}")
            return
        self._stops = 2
        self._stop_by_hand(self.stopper)
        self.shown.notice = STOPS_ALL

    def runs_elsewhere(self) -> bool:
        session = self.place.session
        return session is not None and is_held(self.place.team.root, session.id)

    def commanded(self, line: str) -> None:
        if command := command_of(line):
            self._command(command)

    def _again(self, warning: str) -> bool:
        """Return whether the key is the second one, after the first has shown the warning; else show it."""
        before, at = self._warned
        if before == warning and time.monotonic() - at < AGAIN_S:
            return True
        self.shown.notice = warning
        self._warned = warning, time.monotonic()
        return False

    def escaped(self, *, empty: bool) -> None:
        if self.stopper is not None:
            if not self.stopper.asked:  # a key that is held for long sends many
                self._stops = 0
                self.interrupted()
        elif not empty:
            self.shown.notice, self._escaped_at = NEW_LINE, time.monotonic()
        elif self._again(UNDOES):
            self.shown.notice = ""
            self._warned = "", -math.inf
            self.commanded("/undo")

    @property
    def begins_line(self) -> bool:
        return time.monotonic() - self._escaped_at < AGAIN_S

    def interrupted(self) -> bool:
        if self.stopper is None:
            self.inbox.put(Stop())
            return False
        self._stops += 1
        self._stop_by_hand(self.stopper, only_turn=self._stops == 1)
        self.shown.notice = STOPS if self._stops == 1 else STOPS_ALL
        return True

    def _stop_by_hand(self, stopper: Stopper, *, only_turn: bool = False) -> None:
        """Stop by hand: messages typed from now on take the place of the stopped work."""
        self.hand.stopping = self.hand.stopping or time.time()
        stopper.request(only_turn=only_turn)

    def left(self, *, asks: bool = False) -> None:
        if self.stopper is None:
            self.inbox.put(Leave())
            return
        if asks and not self._again(STAYS):
            return
        self.leaving = True
        self.shown.notice = LEAVES
        self.stopper.request()
        self.inbox.put(Leave(ExitCode.INTERRUPTED))

    def unqueued(self) -> tuple[str, tuple[Span, ...]] | None:
        try:
            last = self._kept.edit_last()
        except TeamchatError as error:
            self.tell(f"✗ {printable(str(error))}")
            return None
        self.shown.waiting = tuple(self._kept.waiting)
        if last is None:
            return None
        text = with_calls(last.to, last.text)
        before = len(text) - len(last.text)
        return text, tuple((start + before, end + before) for start, end in last.pasted)

    def changed(self) -> None:
        self._escaped_at = -math.inf

    def emptied(self) -> None:
        self.asked = None
        try:
            self._kept.remove_edited()
        except TeamchatError as error:
            self.tell(f"✗ {printable(str(error))}")

    def ended(self, error: BaseException | None) -> None:
        with contextlib.suppress(TeamchatError):
            self._kept.put_back()
        self._db.close()
        if error is not None:
            if self.stopper is not None:
                self.stopper.request()
            self.inbox.put(error)
