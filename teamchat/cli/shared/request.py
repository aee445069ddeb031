"""What a person asks for with `send` or `run`: checked, stored, and followed until nobody is left to speak."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Awaitable
from contextlib import nullcontext
from functools import partial
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from teamchat.cli.output.lines import note, plural
from teamchat.cli.shared.conversation import Work, converse
from teamchat.cli.shared.keyboard import KEYBOARD
from teamchat.cli.shared.options import RunOutput, Shown
from teamchat.cli.shared.piped import PersonMessage
from teamchat.cli.shared.typed import saying_what_to_type
from teamchat.cli.shared.workspace import (
    begun,
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
from teamchat.core.conversation.entry import check_entry
from teamchat.core.engine.decide import fitted
from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.state import UNBOUNDED, Bounds
from teamchat.core.errors import ExitCode, TeamchatError
from teamchat.core.messages import Span
from teamchat.core.routing.at_names import split_calls
from teamchat.core.store.database import Database
from teamchat.core.store.routes import load_state
from teamchat.core.store.sessions import Session, last_session
from teamchat.core.store.unsent import handed_over_to, keep_unsent
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable, visible
from teamchat.core.turn.events import Conclusion
from teamchat.core.turn.run import rules_of

if TYPE_CHECKING:
    from teamchat.cli.shared.recorder import WriteInput
    from teamchat.core.cassette.writer import CassetteWriter, Cooling
    from teamchat.core.engine.process import Process


class Request(Struct, frozen=True, kw_only=True):
    """A person's message to a team, and where it goes. With a `process` it is the task of that.

    `session`, `new` and `title` choose the session, `speaker` is `--as`, `to` is `--to`. A message that may be `cut`
    does not have to fit into a prompt as a whole. With `expand` its `@paths` count as typed, also those of piped text.
    With `anyway` it is sent even if it looks like a call and calls nobody.
    """

    team: Team
    message: PersonMessage
    bounds: Bounds
    session: str | None
    new: bool
    title: str | None
    speaker: str | None
    to: str | None = None
    cut: bool = False
    expand: bool = False
    anyway: bool = False
    process: Process | None = None

    @property
    def sent(self) -> PersonMessage:
        """The message as it is stored."""
        return replace(self.message, typed=len(self.message.text)) if self.expand else self.message

    @property
    def typed(self) -> int:
        """How many characters must not look like a call that calls nobody."""
        return 0 if self.anyway else self.message.typed

    def check(self, db: Database, session: Session | None) -> None:
        """Raise the reason to refuse it in that session, or in a new one (None): see `check_entry`, `check_task`."""
        message, caller = self.message, calling()
        if self.process is None:
            check_entry(
                self.team,
                db,
                session,
                message.text,
                speaker=self.speaker,
                to=self.to,
                typed=self.typed,
                cut=self.cut,
                images=message.images,
                caller=caller,
            )
            return
        from teamchat.core.conversation.processes import check_task  # only `teamchat run` needs the processes

        check_task(
            self.team,
            db,
            session,
            message.text,
            self.process,
            speaker=self.speaker,
            cut=self.cut,
            images=message.images,
            caller=caller,
        )

    def carry_out(
        self,
        show: RunOutput,
        *,
        wait: bool,
        ask: bool,
        notes: tuple[str, ...] = (),
        own_run: bool = True,
        follow: bool = False,
    ) -> ExitCode:
        """Store it and follow the conversation. The keywords are as for `Answering`; `notes` are told before.

        While another process runs the session, that sends a message that needs no `own_run`. At a terminal the command
        does not wait for the replies then, unless it is to `follow` them.
        """
        with open_store(self.team.root) as db, saying_what_to_type(self.message):
            self.check(db, None if self.new else continued_session(db, self.session))
            if not show.quiet and last_session(db) is None:
                note_moved(self.team.root)
            session, begins = choose_session(db, self.team, self.session, new=self.new, title=self.title)
            if not show.quiet:
                note(f"session {session.name} " + ("begins" if begins else "continues (--new starts another)"))
            for line in notes:
                note(line)
            answering = Answering(
                team=self.team,
                db=db,
                session=session,
                show=show,
                bounds=self.bounds,
                wait=wait,
                speaker=self.speaker,
                ask=ask,
            )
            shared = not (own_run or self.message.images or calling())
            if wait and shared and is_held(self.team.root, session.id):
                from teamchat.cli.shared.handing_over import hand_over_to_run, sent_there

                hand = partial(hand_over_to_run, self.team, db, session, self.sent, self.speaker, self.to)
                run = partial(answering.run, write_input=self._recorded())
                if (code := sent_there(hand, run, show, show.verdicts, follow=follow)) is not None:
                    return code
            with begun(db, session) if begins else nullcontext():
                return answering.run(self._work(db, session, shared=shared), self._recorded())

    def _work(self, db: Database, session: Session, *, shared: bool) -> Work:
        """Send the message, after a note on what is still on hold.

        What was handed over and is not sent yet goes out before a message that may be `shared`.
        """
        sent = self.sent

        async def work(coordinator: ConversationCoordinator) -> Conclusion:
            if held := coordinator.state.held:
                waiting = ", ".join(route.target for route in held)
                named = self.team.typed + session_typed(db, session)
                note(f"still on hold: {waiting} (teamchat resume{named} continues with them)")
            if shared and (before := handed_over_to(db, session.id)):
                note(f"{plural(len(before), 'message')} that waited {'goes' if len(before) == 1 else 'go'} out first")
                own = keep_unsent(db, session.id, sent.text, self.speaker, self.to, typed=sent.typed, handed_over=True)
                return await coordinator.send_unsent(own=own.id)
            if self.process:
                return await coordinator.run_process(
                    sent.text, self.process, speaker=self.speaker, images=sent.images, typed=sent.typed
                )
            return await coordinator.send(
                sent.text, speaker=self.speaker, to=self.to, images=sent.images, typed=sent.typed
            )

        return work

    def _recorded(self) -> WriteInput:
        sent = self.sent

        def write(writer: CassetteWriter, cooling: Cooling) -> None:
            writer.human(sent.text, self.speaker, self.to, cooling, sent.images, sent.typed, self.bounds, self.process)

        return write


if TYPE_CHECKING:
    from teamchat.cli.shared.recorder import WriteInput

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


def you_at_terminal(team: Team, speaker: str | None, show: Shown) -> str | None:
    """The person who can be asked here; None in a script, a pipe, an agent's turn and chat, which asks by itself."""
    if not show.talks or KEYBOARD.get() or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    nobody_named = speaker is None and len(team.humans) > 1  # the end of the run says who is asked
    return None if nobody_named or calling() else person(team, speaker).name


class Answer(Struct, frozen=True):
    """What a person typed, whom they call by `@`, and the `pasted` parts."""

    to: str | None
    text: str
    pasted: tuple[Span, ...]


class Answering(Struct, frozen=True, kw_only=True):
    """Runs a conversation whose questions the person at the terminal answers, if they `ask` for that.

    `record` is the cassette that each run is added to, `speaker` the name that the person gave. `bounds`, `wait` and
    `verdict` are as for `converse`.
    """

    team: Team
    db: Database
    session: Session
    show: RunOutput
    bounds: Bounds
    wait: bool
    speaker: str | None = None
    ask: bool = False

    def run(self, work: Work, write_input: WriteInput) -> ExitCode:
        """Let `work` run the conversation, and then the answer to each question. Returns the last exit code."""
        asked = Asked(you_at_terminal(self.team, self.speaker, self.show) if self.ask else None)
        code = self._once(work, write_input, asked)
        while asked.hint is not None:
            hint, you = asked.hint, person(self.team, asked.you).name
            answer = self._answer(you)
            if answer is None:
                note(f"the question is open; {hint} answers it")
                break
            speaker = you if len(self.team.humans) > 1 else None
            code = self._once(_sending(answer, speaker), _said(answer, speaker, self.bounds), asked)
        return code

    def _once(self, work: Work, write_input: WriteInput, asked: Asked) -> ExitCode:
        recording = None
        if self.show.record is not None:
            from teamchat.cli.shared.recorder import recorded

            recording = partial(recorded, self.show.record, write_input)
        return converse(
            self.team,
            self.db,
            self.session,
            self.show,
            work,
            wait=self.wait,
            record=recording,
            bounds=self.bounds,
            at_end=asked,
            verdict=self.show.verdicts,
            notify=self.show.notify,
        )

    def _answer(self, you: str) -> Answer | None:
        """What the person types; None if they leave the question open. Only a paste has several lines."""
        state = fitted(load_state(self.db, self.session.id, rules_of(self.team)))
        question = state.answered_by(you)
        if question is None:  # answered elsewhere meanwhile
            return None
        note(KEYS)
        prompt = f"you → {visible(question.by)}   "
        while line := _typed(prompt):
            to, text, pasted = split_calls(line, self.team.members, ((0, len(line)),) if "\n" in line else ())
            try:
                check_entry(self.team, self.db, self.session, text, speaker=you, to=to, typed=len(text), pasted=pasted)
            except TeamchatError as error:
                print(f"teamchat: {printable(str(error))}", file=sys.stderr)
                continue
            _erase(prompt + line)
            return Answer(to, text, pasted)
        return None


def _said(said: Answer, speaker: str | None, bounds: Bounds) -> WriteInput:
    text = said.text
    return lambda writer, cooling: writer.human(
        text, speaker, said.to, cooling, (), len(text), bounds, pasted=said.pasted
    )


def _sending(said: Answer, speaker: str | None) -> Work:
    def work(coordinator: ConversationCoordinator) -> Awaitable[Conclusion]:
        text = said.text
        return coordinator.send(text, speaker=speaker, to=said.to, typed=len(text), pasted=said.pasted)

    return work


def _typed(prompt: str) -> str:
    """A line that was typed. A pasted text keeps its lines where the system's line editor can tell."""
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
    """Erase what was typed, which the run shows as a message. A line that may have been wrapped stays."""
    from teamchat.cli.output.terminal.look import look_of
    from teamchat.cli.output.terminal.wrap import cells

    if look_of(os.environ).styles and "\n" not in line and cells(line) < get_terminal_size().columns:
        print("\x1b[A\r\x1b[J", end="", flush=True)


if TYPE_CHECKING:
    from teamchat.core.cassette.writer import CassetteWriter, Cooling


def resume_session(
    team: Team,
    db: Database,
    session: Session,
    mode: ResumeMode,
    show: RunOutput,
    *,
    wait: bool,
    only: tuple[int, ...] | None = None,
    bounds: Bounds = UNBOUNDED,
    ask: bool = False,
) -> ExitCode:
    """Run what is held in the session, or `only` the routes of these numbers. Returns the exit code.

    `bounds` and `verdict` are as for `converse`. With `ask` the person at the terminal answers questions
    there.
    """
    if not show.quiet:
        note(f"session {session.name} continues")

    def work(coordinator: ConversationCoordinator) -> Awaitable[Conclusion]:
        return coordinator.resume(mode, only)

    def write_input(writer: CassetteWriter, cooling: Cooling) -> None:
        writer.resume(mode, cooling, bounds)

    answering = Answering(
        team=team,
        db=db,
        session=session,
        show=show,
        bounds=bounds,
        wait=wait,
        ask=ask,
    )
    return answering.run(work, write_input)
