"""Chat: typed messages go into the store, and the main thread runs the conversation until nothing is left to send.

The prompt has a thread of its own. The session's lock is held only while members work, so that other terminals can
send, undo and stop in between.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct
from msgspec.structs import replace
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from teamchat.cli.chatting.completing import completer
from teamchat.cli.chatting.layout import ChatLines, Footer
from teamchat.cli.chatting.picker import pick
from teamchat.cli.chatting.screen import ChatScreen
from teamchat.cli.chatting.slash import (
    BEGINS,
    NOT_BEGUN,
    OF_CHAT,
    PRINTS,
    WORDS,
    SlashCommand,
    explained,
    how_to_set,
    in_chat,
    models_of,
    named_in_chat,
    needs_conversation,
    opens,
    run_command,
)
from teamchat.cli.chatting.typing import ChatPlace, Item, Leave, Send, Stop, Typing
from teamchat.cli.output import Output
from teamchat.cli.output.lines import note, plural, short_number
from teamchat.cli.output.terminal.look import look_of
from teamchat.cli.output.terminal.output import TerminalOutput
from teamchat.cli.output.terminal.surface import Surface
from teamchat.cli.output.terminal.wrap import wrapped
from teamchat.cli.output.unreported import Unreported
from teamchat.cli.running.converse import converse
from teamchat.cli.running.keyboard import KEYBOARD
from teamchat.cli.running.showing import excerpts_of
from teamchat.cli.running.watching import Beside
from teamchat.cli.startup.options import ShownOptions
from teamchat.cli.startup.report import complain
from teamchat.cli.startup.workspace import (
    check_title,
    find_team,
    lock_file,
    need_person,
    need_trust,
    note_moved,
    open_store,
    session_typed,
    store_file,
)
from teamchat.core.conversation.addressing import person
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.following import LOOK_S, Follower
from teamchat.core.conversation.mentioned import what_becomes
from teamchat.core.conversation.permission import trust_store
from teamchat.core.conversation.waiting import on_hold, waiting_in
from teamchat.core.engine.decide import default_target
from teamchat.core.engine.fitting import fitted
from teamchat.core.engine.state import State
from teamchat.core.errors import ExitCode, SessionBusy, TeamchatError, UnknownName, UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.listing import title_of
from teamchat.core.store.routes import load_state
from teamchat.core.store.sessions import Session, find_session, last_session, no_session, touch_session
from teamchat.core.store.unsent import kept_of, unsent_of
from teamchat.core.store.usage import Sum, total_used, used
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import saying
from teamchat.core.turn.run import Hand, rules_of
from teamchat.core.turn.run_events import (
    Conclusion,
    ConversationEvent,
    MessageStored,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.child.supervisor import Stopper

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

DROPS = "/resume --drop"
BUSY_S = 0.3  # between two tries to run a session that another process runs
ENDS = (signal.SIGTERM, signal.SIGHUP)


@dataclass
class Chat:
    """One chat of the main thread. `load` reads the team file again before each run."""

    db: Database
    place: ChatPlace
    load: Callable[[], Team]
    inbox: SimpleQueue[Item] = field(default_factory=SimpleQueue)
    shown: ChatLines = field(default_factory=ChatLines)
    locked_out: bool = False  # another process runs the session
    beside: Beside | None = None  # shows what other processes run in it
    hidden: bool = False  # a command has the terminal
    hand: Hand = field(default_factory=Hand)  # `held_back` is what an earlier chat has left and nobody has asked for
    run_begins: bool = False  # nothing of the run is shown yet
    interruptible: bool = False  # and Ctrl-C ends it
    terminated: bool = False  # by a signal: what is still in `inbox` is not done any more
    code: int = ExitCode.DONE  # the exit code of the last run

    def __post_init__(self) -> None:
        self.typing = Typing(self.place, self.inbox, self.shown, self.hand, self._open_again)
        history = history_in(store_file(self.place.team.root).parent)
        self.screen = ChatScreen(self.typing, self.shown, history, completer(self.place, (*WORDS, *OF_CHAT)))
        self.typing.tell = self._tell
        self.typing.run_now = self._run_now

    def _tell(self, line: str) -> None:
        """Write a line above the prompt, broken at words."""
        self.screen.write("".join(f"{piece}\n" for piece in wrapped(line, self.screen.width)))

    def _open_again(self) -> Database:
        """Open the store for another thread."""
        return Database(store_file(self.place.team.root), typed=self.db.typed)

    def run(self) -> int:
        """Handle typed text until the person leaves. Returns the exit code."""
        self._look()
        before = sys.stdout, sys.stderr
        with self._signals():
            self.screen.start()
            sys.stdout, sys.stderr = Above(before[0], self.screen), Above(before[1], self.screen)
            try:
                return self._take_items()
            finally:
                self._leave_beside()
                sys.stdout, sys.stderr = before
                self.screen.stop()
                self._say_what_waits()

    def _take_items(self) -> int:
        self._say_who_answers()
        self._hold_back()
        while True:
            item = self._next()
            if self.beside and not self.beside.follower.active:
                self._leave_beside()
            match item:
                case Send(earlier=earlier):
                    if earlier:
                        self.hand.held_back.clear()
                    self._send()
                case Stop():
                    self.locked_out = False
                case SlashCommand():
                    self._run_command(item)
                case Leave(code=code):
                    ended_itself = code == ExitCode.INTERRUPTED != self.code
                    return ExitCode.DONE if ended_itself else code
                case BaseException() as error:
                    raise error
            self._look()

    def _next(self) -> Item:
        """Return the person's next action. Until then the chat shows what another process runs in its conversation."""
        while True:
            with contextlib.suppress(Empty):
                item = self.inbox.get(timeout=self._look_beside())
                return Leave(ExitCode.TERMINATED) if self.terminated else item
            if self.locked_out:
                return Send()

    def _look_beside(self) -> float:
        """Show what another process has run meanwhile. Returns the seconds until the next look."""
        with contextlib.suppress(TeamchatError):
            session = self.place.session
            if self.beside and not (session and session.id == self.beside.follower.session.id):
                self._leave_beside()
            if self.beside is None and session:
                team = self.place.team
                follower = Follower(self.db, session, team, lock_file(team.root, session.id))
                self.beside = Beside(follower, lambda: self.output(team, told=True), self._ended_elsewhere)
            if self.beside:
                for _ in self.beside.look():
                    pass
        return BUSY_S if self.locked_out or (self.beside and self.beside.follower.active) else LOOK_S

    def _ended_elsewhere(self, ended: Conclusion) -> Conclusion:
        return replace(ended, hint=ended.hint and self.hint(ended.hint))

    def _leave_beside(self) -> None:
        """Show the rest of what another process has run: from here on this one does, or prints by itself."""
        beside, self.beside = self.beside, None
        if beside:
            with contextlib.suppress(TeamchatError), contextlib.closing(beside):
                for _ in beside.look():
                    pass

    def _send(self) -> None:
        """Run the conversation until every kept message is sent, or something stops it."""
        refused: dict[int, TeamchatError] = {}
        held_back = self.hand.held_back

        async def work(coordinator: ConversationCoordinator) -> Conclusion:
            coordinator.typed_ahead.refused |= refused
            try:
                return await coordinator.send_unsent()
            finally:
                refused.update(coordinator.typed_ahead.refused)

        session = self.place.session
        while session and any(message.id not in {*refused, *held_back} for message in unsent_of(self.db, session.id)):
            try:
                self.place.team = self._trusted_team()
                notify = self.place.notify
                self.code = converse(self.place.team, self.db, session, ShownOptions(), work, wait=False, notify=notify)
            except SessionBusy as error:
                if not self.locked_out:
                    self._tell(f"· {printable(str(error))}")
                    self._tell("· what you type is sent when it ends")
                self.locked_out = True
                return
            except TeamchatError as error:
                self._tell(f"✗ {printable(str(error))}")
                return
            if self.code == ExitCode.TERMINATED:
                self.inbox.put(Leave(self.code))
            if self.code not in (ExitCode.DONE, ExitCode.HUMAN_ASKED):
                self._say_what_stays(session)
                break
        self.locked_out = False

    def _say_what_stays(self, session: Session) -> None:
        """Say where a message has gone that was typed while the only thing that ran was stopped, or failed."""
        if any(message.id not in self.hand.held_back for message in unsent_of(self.db, session.id)):
            self._tell("· your message is still queued: Enter sends it, ↑ takes it back")

    def _trusted_team(self) -> Team:
        """Load the team as its file is now. A change that needs trust is asked about."""
        team = self.load()
        if not trust_store().standing(team).trusted:
            with self._terminal():
                need_trust(team, give=False)
        return team

    # --- commands

    def _run_command(self, command: SlashCommand) -> None:
        if command.words[0] == "new":
            self._begin_another(" ".join(command.words[1:]))
        elif self._picks(command.words):
            with self._terminal():
                chosen = pick(self.db, self.place.session)
                self._open(chosen) if chosen else note("the conversation stays as it is")
        elif opens(command.words) and (named := find_session(self.db, command.words[1])):
            self._open(named)
        elif opens(command.words) and command.words[0] == "sessions":
            self._tell(f"✗ {printable(no_session(self.db, command.words[1]))}")
        elif command.words[0] in PRINTS:
            self._run(command)
        else:
            with self._terminal():
                self._run(command)

    def _picks(self, words: tuple[str, ...]) -> bool:
        """Whether the command lets the person choose a conversation: `/resume` does if there is nothing to resume."""
        session = self.place.session
        return words == ("sessions",) or (words == ("resume",) and not (session and on_hold(self.db, session)))

    def _open(self, chosen: Session) -> None:
        """Go on in another conversation."""
        self.place.open(chosen)
        touch_session(self.db, chosen.id)
        note(f"session {chosen.name} continues")
        run_command(("log", "-n", LAST_MESSAGES), chosen.name, self.place.team_typed)
        self._hold_back()

    def _hold_back(self) -> None:
        """Send nothing that an earlier chat has left in the conversation before the person asks for it."""
        session = self.place.session
        queued = {message.id for message in kept_of(self.db, session.id)} if session else set[int]()
        if left_behind := queued - self.hand.typed:
            self.hand.held_back |= left_behind
            left = f"still queued from before: {plural(len(left_behind), 'message')}"
            self._tell(f"· {left}; Enter sends what is queued, ↑ takes the last message back")

    def _say_who_answers(self) -> None:
        """Say, in a conversation where nothing was said, who answers, and how to call the others."""
        team, session = self.place.team, self.place.session
        if session and session.messages:
            return
        first = default_target(State(rules_of(team)), self.place.you)
        others = [f"@{member.name}" for member in team.ai_members if member.name != first]
        if first:
            calls = f"; {' and '.join(others)} {'calls' if len(others) == 1 else 'call'} the others" if others else ""
            self._tell(f"· {first} answers{calls}")

    def _begin_another(self, title: str) -> None:
        """Begin another conversation with the next message."""
        session = self.place.session
        if session and unsent_of(self.db, session.id):
            self._tell("✗ messages are queued here: send them first (Enter), or take them back (↑)")
            return
        try:
            self.place.begin_another(title)
        except TeamchatError as error:
            self._tell(f"✗ {printable(str(error))}")
            return
        self._tell("· the next message begins another conversation")
        self._say_who_answers()

    def _run_now(self, command: SlashCommand) -> None:
        """Run a command while members work, in the screen's thread."""
        self.screen.run_hidden(lambda: self._run(command))

    def _run(self, command: SlashCommand) -> None:
        """Run a command. Whatever fails in it is a line, because the chat goes on, and with it a turn that runs."""
        print(f"\n{command.line}")
        token = KEYBOARD.set(self)  # also in the screen's thread
        try:
            self._run_words(command.words)
        except TeamchatError as error:
            complain(printable(str(error)), None, error.code)
        except Exception as error:  # noqa: BLE001 -- a bug of teamchat
            complain(
                f"/{command.words[0]} failed: {type(error).__name__}: {printable(str(error))}", None, ExitCode.USAGE
            )
        finally:
            KEYBOARD.reset(token)

    def _run_words(self, words: tuple[str, ...]) -> None:
        if words[0] == "help" and explained(words[1:]):
            return
        if words[0] == "model" and words[1:] and not words[1].startswith("-"):
            self._tell(f"· {printable(how_to_set(words[1], self.load()))}")
            return
        begins = self.place.session is None and words[0] in BEGINS
        if self.place.session is None and needs_conversation(words):
            self._tell(f"✗ {NOT_BEGUN}")
            return
        with self.place.begun(self.db) if begins else contextlib.nullcontext():
            session = self.place.session
            run_command(words, session.name if session else None, self.place.team_typed)
        if words == ("model",):
            for line in ("", *models_of(self.load())):
                self._tell(printable(line))

    @contextlib.contextmanager
    def _terminal(self) -> Iterator[None]:
        """Give the terminal, without the prompt, to a function that may ask something. Ctrl-C ends it."""
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

    def output(self, team: Team, *, told: bool) -> Output:
        you = self.place.you
        self.run_begins = True
        return Watched(
            output_on(team, self.screen, you, told=told, light=self.screen.light),
            you,
            self.about_to_show,
            self.shown_now,
            self.typing.was_told,
            self.typing.end_work,
        )

    @property
    def leaving(self) -> bool:
        return self.typing.leaving

    def hint(self, commands: str) -> str:
        lines = in_chat(commands).splitlines()
        drops = [DROPS] if "/resume" in lines and DROPS not in lines else []
        return "\n".join([*lines, *drops])

    @contextlib.contextmanager
    def while_working(self, stopper: Stopper) -> Iterator[None]:
        self._leave_beside()
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
        """Follow the queue and the costs. A person's message moves from the queue in one step."""
        if _typed(event):
            if isinstance(event, MessageStored) and (line := what_becomes(event.message, self.place.team)):
                self._tell(f"· {line}")
            self.screen.update(self.typing.look)
        if isinstance(event, TurnFinished):
            self.screen.call(self.typing.turn_ended)
        if isinstance(event, MessageStored | TurnFinished):
            self._look_around()

    def _look(self) -> None:
        self._look_around()
        self.screen.update(self.typing.look)

    def _look_around(self) -> None:
        """Show who asks, and the costs."""
        session = self._there()
        self.shown.asked = question_to(self.db, session, self.place)
        self.shown.footer = footer_of(self.db, session, self.place)
        self.screen.refresh()

    def _there(self) -> Session | None:
        """Find the conversation as it is now. If it was deleted, here or elsewhere, a new one begins."""
        before = self.place.find(self.db)
        current = find_session(self.db, before.name) if before else None
        if before and not (current and current.id == before.id and current.created_at == before.created_at):
            self.place.begin_another("")
            self._tell(f"· session {before.name} is gone; the next message begins another one")
            return None
        self.place.session = current
        return current

    def _say_what_waits(self) -> None:
        """Say what waits in the conversation, and how to come back to it."""
        if (session := self._there()) is None:
            return
        if queued := len(unsent_of(self.db, session.id)):
            note(f"{plural(queued, 'message')} still queued; the next teamchat chat asks before it sends")
        chat = f"teamchat chat{self.place.team.typed}{session_typed(self.db, session)}"
        held = [waiting for waiting in waiting_in(self.db, session.id) if not waiting.aside]
        note(f"{chat} continues{'; /resume runs what is on hold' if held else ''}")

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
    """Whether the event is the message of a person, which may have been queued."""
    return isinstance(event, MessageStored) and event.message.speaker.type == "human"


LAST_MESSAGES = "2"


def begin(
    team: str | None,
    session: str | None,
    *,
    speaker: str | None,
    new: bool,
    title: str | None,
    timeout: str | None,
    notify: str | None,
    trust: bool,
) -> int:
    """Chat until the person leaves. Returns the exit code. `notify` is a shell command for the end of each run.

    Raises `UnknownName` for a session that is not there, `UnknownPerson` and `UsageError`.
    """
    need_person("chat is used")
    current_team = find_team(team, timeout)
    need_trust(current_team, give=trust)
    who = person(current_team, speaker).name if speaker else None
    with open_store(current_team.root) as db:
        there = find_session(db, session) if session else None
        if there and new:
            raise UsageError(f"session {session!r} already exists", saying("--session", there.name))
        if session and not (there or new):
            raise UnknownName(no_session(db, session), "teamchat sessions")
        place = ChatPlace(current_team, team, who, session, new, title, notify=notify)
        continued = place.find(db)
        if len(current_team.humans) > 1:
            place.speaker = person(current_team, who, state_of(db, continued, place) if continued else None).name
        if continued:
            check_title(continued, title)
            touch_session(db, continued.id)
            note(f"session {continued.name} continues (/new begins another)")
            run_command(("log", "-n", LAST_MESSAGES), continued.name, team)
        elif last_session(db) is None:
            note_moved(current_team.root)
        return Chat(db, place, lambda: find_team(team, timeout)).run()


def question_to(db: Database, session: Session | None, place: ChatPlace) -> str | None:
    """Return the member whose question the person at the keyboard is asked."""
    asked = state_of(db, session, place).answered_by(place.you) if session else None
    return asked.by if asked else None


def state_of(db: Database, session: Session, place: ChatPlace) -> State:
    """Load the queue of the session, with the team as it is now."""
    return fitted(load_state(db, session.id, rules_of(place.team)))


def footer_of(db: Database, session: Session | None, place: ChatPlace) -> Footer:
    team, name = place.team, session.name if session else "new session"
    title = title_of(db, session) if session else place.title or ""
    members = plural(len(team.members), "member")
    begun = Footer(printable(team.name), printable(name), members, title=printable(title))
    if session is None:
        return begun
    spent = total_used(used(db, session.id))
    tokens = spent.input_tokens + spent.output_tokens
    return replace(
        begun,
        tokens=f"{_sum(tokens, short_number)} tokens" if tokens.known else "",
        cost=_sum(spent.cost_usd, "${:.2f}".format) if spent.cost_usd.known else "",
    )


def _sum(part: Sum, words: object) -> str:
    assert callable(words)
    return f"{'≥' if part.unknown else ''}{words(part.known)}"


class Watched(Struct, frozen=True):
    """An output whose events chat follows, too."""

    inner: Output
    you: str
    """The person who is asked at the prompt, which needs no command."""
    before: Callable[[ConversationEvent], None]
    after: Callable[[ConversationEvent], None]
    was_told: Callable[[str], bool]
    """Whether a warning was told before its message was sent: it is not shown again."""
    over: Callable[[], None]
    """Called once the end is shown: text typed from then on comes after the run."""

    def __call__(self, event: ConversationEvent) -> None:
        if isinstance(event, Warned):
            if self.was_told(event.text):
                return
            event = replace(event, text=named_in_chat(event.text))
        self.before(event)
        try:
            self.inner(event)
        finally:
            self.after(event)

    def finish(self, conclusion: Conclusion) -> None:
        asked = conclusion.waiting_for == self.you
        self.inner.finish(replace(conclusion, hint=None) if asked else conclusion)
        self.over()

    def close(self) -> None:
        self.inner.close()


def output_on(team: Team, surface: Surface, you: str, *, told: bool, light: bool | None = None) -> Output:
    """Make the output that shows a run of the team to the person at the keyboard."""
    return TerminalOutput(
        [member.name for member in team.members],
        surface,
        look_of(os.environ, light=light),
        people=frozenset(member.name for member in team.humans),
        you=you,
        receipt=lambda number: f"/show {number}",
        unreported=Unreported(told=told),
        excerpts=excerpts_of(team, lambda number: f"/diff {number}"),
    )


BELL = "\a"
NOTE = "· "  # begins a line of teamchat's own


class Above(io.TextIOBase):
    """Writes above the prompt, and to the stream itself while the prompt is hidden."""

    def __init__(self, stream: TextIO, screen: ChatScreen) -> None:
        self._stream, self._screen = stream, screen
        self._line = ""
        self.buffer = _Bytes(self)

    def write(self, text: str) -> int:
        if text.startswith(NOTE):
            text = named_in_chat(text)
        if not self._screen.visible:
            return self._stream.write(text)
        *lines, self._line = (self._line + text).split("\n")
        if lines:
            self._screen.write("".join(f"{line}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        if not self._screen.visible:
            self._stream.flush()
        elif self._line.startswith(BELL):  # a bell and a notification have no line
            self._screen.write(self._line)
            self._line = ""

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding


class _Bytes(io.RawIOBase):
    """Takes the bytes of a text, such as an exact prompt, for a stream of texts."""

    def __init__(self, to: Above) -> None:
        self._to = to

    def write(self, data: ReadableBuffer, /) -> int:
        self._to.write(bytes(data).decode(errors="backslashreplace"))
        return memoryview(data).nbytes

    def flush(self) -> None:
        self._to.flush()


NAME = "chat-history"


def history_in(folder: Path) -> History:
    """Open the history in that folder. It lasts only as long as the program if the file cannot be written."""
    file = folder / NAME
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(file)
