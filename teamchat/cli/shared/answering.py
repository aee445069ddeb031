"""A member's question to the person at the terminal, answered in place with `--ask`. An empty line leaves it open."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Awaitable
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from teamchat.cli.output.lines import note
from teamchat.cli.shared.conversation import Work, converse
from teamchat.cli.shared.keyboard import KEYBOARD
from teamchat.cli.shared.showing import OutputOptions
from teamchat.cli.shared.workspace import calling
from teamchat.core.conversation.addressing import person
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.entry import check_entry
from teamchat.core.engine.decide import fitted
from teamchat.core.engine.state import Bounds
from teamchat.core.errors import ExitCode, TeamchatError
from teamchat.core.messages import Span
from teamchat.core.routing.at_names import split_calls
from teamchat.core.store.database import Database
from teamchat.core.store.routes import load_state
from teamchat.core.store.sessions import Session
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable, visible
from teamchat.core.turn.events import Conclusion
from teamchat.core.turn.run import rules_of

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


def you_at_terminal(team: Team, speaker: str | None, show: OutputOptions) -> str | None:
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
    show: OutputOptions
    bounds: Bounds
    wait: bool
    record: Path | None
    speaker: str | None = None
    ask: bool = False
    verdict: tuple[str, ...] = ()

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
        if self.record is not None:
            from teamchat.cli.shared.recorder import recorded

            recording = partial(recorded, self.record, write_input)
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
            verdict=self.verdict,
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
