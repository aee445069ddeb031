"""A person's request with `send` or `run`: checked, stored, and followed until nobody is left to speak."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Awaitable
from contextlib import nullcontext
from functools import partial
from shutil import get_terminal_size

from msgspec import Struct
from msgspec.structs import replace

from teamchat.cli.output.lines import note, plural
from teamchat.cli.running.console import Work
from teamchat.cli.running.converse import converse
from teamchat.cli.running.keyboard import KEYBOARD
from teamchat.cli.startup.options import NewPlace, RunOutput, ShownOptions
from teamchat.cli.startup.typed import PROGRAM, saying_what_to_type
from teamchat.cli.startup.workspace import (
    calling,
    choose_session,
    continued_session,
    is_held,
    note_moved,
    open_store,
    session_typed,
)
from teamchat.core.conversation.addressing import person
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.entry import check_message
from teamchat.core.conversation.inputs import Input, Message, Resume, typed_spans
from teamchat.core.conversation.waiting import waiting_in
from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.fitting import fitted
from teamchat.core.engine.state import UNBOUNDED, Bounds
from teamchat.core.errors import ExitCode, TeamchatError
from teamchat.core.routing.at_calls import split_calls
from teamchat.core.store.database import Database
from teamchat.core.store.routes import load_state
from teamchat.core.store.sessions import Session, begun, last_session
from teamchat.core.store.unsent import handed_over_to, keep_unsent
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable, visible
from teamchat.core.turn.run import rules_of
from teamchat.core.turn.run_events import Conclusion


class Request(Struct, frozen=True, kw_only=True):
    """A person's message to a team, as it was read, and where it goes."""

    team: Team
    message: Message
    place: NewPlace
    bounds: Bounds
    cut: bool = False
    """Whether the message may be cut, instead of having to fit into a prompt as a whole."""
    expand: bool = False
    """Whether its `@paths` count as typed, also those of piped text."""
    anyway: bool = False
    """Whether it is sent even if it looks like a call and calls nobody."""

    @property
    def sent(self) -> Message:
        """The message as it is stored."""
        message = self.message
        return replace(message, typed=typed_spans(len(message.text))) if self.expand else message

    @property
    def checked(self) -> Message:
        """The message with what must not look like a call that calls nobody as its typed part."""
        return replace(self.message, typed=()) if self.anyway else self.message


def send_message(
    request: Request,
    output: RunOutput,
    *,
    wait: bool,
    ask: bool,
    notes: tuple[str, ...] = (),
    own_run: bool = True,
    follow: bool = False,
) -> ExitCode:
    """Store the message and follow the conversation. The keywords are as for `run_input`; `notes` are told before.

    While another process runs the session, that process sends a message that needs no `own_run`. At a terminal the
    command does not wait for the replies then, unless it is to `follow` them.
    """
    team, place, sent = request.team, request.place, request.sent
    with open_store(team.root) as db, saying_what_to_type(request.message):
        there = None if place.new else continued_session(db, place.session)
        check_message(team, db, there, request.checked, cut=request.cut, caller=calling())
        if not output.quiet and last_session(db) is None:
            note_moved(team.root)
        session, begins = choose_session(db, team, place.session, new=place.new, title=place.title)
        if not output.quiet:
            note(f"session {session.name} " + ("begins" if begins else "continues (--new starts another)"))
        for line in notes:
            note(line)
        run = partial(run_input, team, db, session, sent, output, bounds=request.bounds, wait=wait, ask=ask)
        shared = not (own_run or sent.images or calling())
        if wait and shared and is_held(team.root, session.id):
            from teamchat.cli.running.handing_over import hand_over_to_run, sent_there

            hand = partial(hand_over_to_run, team, db, session, sent)
            code = sent_there(hand, lambda work: run(work=work), output, output.verdicts, follow=follow)
            if code is not None:
                return code
        with begun(db, session) if begins else nullcontext():
            return run(work=partial(_send, team, db, session, sent, shared=shared))


def _send(
    team: Team, db: Database, session: Session, sent: Message, coordinator: ConversationCoordinator, *, shared: bool
) -> Awaitable[Conclusion]:
    """Send the message, after a note on calls that are still on hold.

    Unsent messages that were handed over go out before a message that may be `shared`.
    """
    if held := [waiting for waiting in waiting_in(db, session.id) if not waiting.aside]:
        keyboard, place = KEYBOARD.get(), team.typed + session_typed(db, session)
        resume, drop = f"{PROGRAM.get()} resume{place}", f"{PROGRAM.get()} resume --drop{place}"
        if keyboard:
            resume, drop = "/resume", "/resume --drop"
        what = "it" if len(held) == 1 else "them"
        note(printable(f"still on hold: {'; '.join(map(str, held))}; {resume} runs {what}, {drop} drops {what}"))
    if shared and (before := handed_over_to(db, session.id)):
        note(f"{plural(len(before), 'message')} that waited {'goes' if len(before) == 1 else 'go'} out first")
        own = keep_unsent(db, session.id, sent.text, sent.speaker, sent.to, typed=sent.typed_through, handed_over=True)
        return coordinator.send_unsent(own=own.id)
    return coordinator.run_input(sent)


def run_input(
    team: Team,
    db: Database,
    session: Session,
    given: Input,
    output: RunOutput,
    *,
    bounds: Bounds = UNBOUNDED,
    wait: bool = True,
    ask: bool = False,
    work: Work | None = None,
) -> ExitCode:
    """Run the conversation with that input, by `work` if it is given. Returns the last exit code.

    With `ask` the person at the terminal answers questions there. `bounds` and `wait` are as for `converse`.
    """
    speaker = None if isinstance(given, Resume) else given.speaker
    if isinstance(given, Resume) and not output.quiet:
        note(f"session {session.name} continues")
    asked = Asked(you_at_terminal(team, speaker, output) if ask else None)
    while True:
        record = None
        if output.record is not None:
            from teamchat.cli.running.recorder import recorded

            record = partial(recorded, output.record, given, bounds)
        code = converse(
            team,
            db,
            session,
            output,
            work or partial(_begin, given),
            wait=wait,
            record=record,
            bounds=bounds,
            at_end=asked,
            verdict=output.verdicts,
            notify=output.notify,
            lets_go=isinstance(given, Resume) and given.mode is not ResumeMode.RETRY,
        )
        if asked.hint is None:
            return code
        answer = _answer(team, db, session, person(team, asked.you).name)
        if answer is None:
            note(f"the question is open; {asked.hint} answers it")
            return code
        given, work = answer, None


def _begin(given: Input, coordinator: ConversationCoordinator) -> Awaitable[Conclusion]:
    return coordinator.run_input(given)


KEYS = "Enter sends your answer; an empty line leaves the question open"


class Asked(Struct):
    """Takes the command that answers out of a conclusion that asks `you`, and keeps it as the `hint`."""

    you: str | None
    hint: str | None = None

    def __call__(self, conclusion: Conclusion) -> Conclusion:
        self.hint = None
        if self.you is None or conclusion.waiting_for != self.you:
            return conclusion
        self.hint = conclusion.hint
        return replace(conclusion, hint=None)


def you_at_terminal(team: Team, speaker: str | None, show: ShownOptions) -> str | None:
    """Return the person who can be asked here; None in a script, a pipe, an agent's turn, and chat, which asks."""
    if not show.talks or KEYBOARD.get() or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    nobody_named = speaker is None and len(team.humans) > 1  # the end of the run says who is asked
    return None if nobody_named or calling() else person(team, speaker).name


def _answer(team: Team, db: Database, session: Session, you: str) -> Message | None:
    """Read the person's answer; None if they leave the question open. Only a paste has several lines."""
    state = fitted(load_state(db, session.id, rules_of(team)))
    question = state.answered_by(you)
    if question is None:  # answered elsewhere meanwhile
        return None
    note(KEYS)
    prompt = f"you → {visible(question.by)}   "
    while line := _typed(prompt):
        to, text, pasted = split_calls(line, team.members, ((0, len(line)),) if "\n" in line else ())
        answer = Message(text=text, typed=typed_spans(len(text), pasted), speaker=you, to=to)
        try:
            check_message(team, db, session, answer)
        except TeamchatError as error:
            print(f"teamchat: {printable(str(error))}", file=sys.stderr)
            continue
        _erase(prompt + line)
        return answer if len(team.humans) > 1 else replace(answer, speaker=None)
    return None


def _typed(prompt: str) -> str:
    """Read a typed line. A pasted text keeps its lines where the system's line editor can tell."""
    with contextlib.suppress(ImportError):
        import readline

        if os.environ.get("TERM") != "dumb":
            readline.parse_and_bind("set enable-bracketed-paste on")
    import termios

    sys.stderr.flush()
    with contextlib.suppress(termios.error):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before the question does not answer it
    try:
        return input(prompt).strip()
    except EOFError:
        print()
        return ""


def _erase(line: str) -> None:
    """Erase the typed text: the run shows it as a message. A line that may have been wrapped stays."""
    from teamchat.cli.output.terminal.look import look_of
    from teamchat.cli.output.terminal.wrap import cells

    if look_of(os.environ).styles and "\n" not in line and cells(line) < get_terminal_size().columns:
        print("\x1b[A\r\x1b[J", end="", flush=True)
