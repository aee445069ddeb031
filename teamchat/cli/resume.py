from __future__ import annotations

import sys
import time
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.output.lines import note
from teamchat.cli.running.request import run_input
from teamchat.cli.startup.options import Asking, OptionGroup, PlaceOptions, RunOutput, SendLimits
from teamchat.cli.startup.workspace import (
    begin_run,
    is_held,
    need_person,
    open_store,
    session_to_continue,
    team_or_nobody,
    team_with_session,
)
from teamchat.core.conversation.inputs import Resume
from teamchat.core.conversation.waiting import Waiting, named_by, waiting_in
from teamchat.core.engine.events import ResumeMode
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, touch_session
from teamchat.core.text.clean import printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Mode(OptionGroup, frozen=True):
    """The treatment of a failed turn."""

    retry: Annotated[bool, typer.Option("--retry", help="Run the failed turn again (the default).")] = False
    skip: Annotated[
        bool, typer.Option("--skip", help="Continue without the failed turn, or without the awaited answer.")
    ] = False
    drop: Annotated[bool, typer.Option("--drop", help="Drop everything that is waiting.")] = False

    def __post_init__(self) -> None:
        if self.retry + self.skip + self.drop > 1:
            raise UsageError("--retry, --skip and --drop exclude each other")


def resume(
    message: Annotated[
        str | None,
        typer.Argument(
            metavar="MESSAGE", show_default=False, help="Run, or --drop, only what this message called, such as msg-3."
        ),
    ] = None,
    *,
    mode: Mode,
    place: PlaceOptions,
    output: RunOutput,
    limits: SendLimits,
    asking: Asking,
) -> int:
    """Continue a conversation that failed, was paused or was killed.

    At a terminal, and without one of these options, it shows what waits if that is more than one thing, and asks.
    """
    if message is not None and mode.skip:
        raise UsageError("--skip takes no message", "teamchat resume --skip")
    if mode.drop:
        need_person("what waits is dropped")
        team = team_or_nobody(place.team, place.session)
    else:
        team = team_with_session(place.team, place.session, limits.timeout)
    begin_run(team, record=output.record, trust=limits.trust, runs=not mode.drop)

    with open_store(team.root) as db:
        session = session_to_continue(db, place.session)
        if message is not None:
            named_by(waiting_in(db, session.id), message)  # it raises before anything is printed
        touch_session(db, session.id)
        chosen = ResumeMode.SKIP if mode.skip else ResumeMode.DROP if mode.drop else ResumeMode.RETRY
        given: Resume | None = Resume(chosen, message=message)
        if output.talks and not (message or mode.retry or mode.skip or mode.drop):
            given = picked(db, session, team.root)
        if given is None:
            note("nothing was run")
            return ExitCode.DONE
        wait, bounds = not limits.no_wait, limits.bounds
        return run_input(team, db, session, given, output, bounds=bounds, wait=wait, ask=asking.ask)


def picked(db: Database, session: Session, root: Path) -> Resume | None:
    """Ask the person at the terminal which of several waiting messages to run; None for nothing.

    Without a terminal everything on hold runs.
    """
    waiting = waiting_in(db, session.id)
    alone = len(waiting) == 1 and not waiting[0].aside
    at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if not waiting or alone or not at_terminal or is_held(root, session.id):
        return Resume()
    print_waiting(waiting)
    return asked(waiting)


def print_waiting(waiting: Sequence[Waiting]) -> None:
    """Print a line for each message: its number, id and first words, who waits, and since when."""
    from teamchat.cli.output.listing import age, fitted

    now, width = time.time(), get_terminal_size().columns
    for number, entry in enumerate(waiting, 1):
        when = age(entry.since, now) if entry.since else ""
        facts = ", ".join(filter(None, (" then ".join(entry.members), "set aside" if entry.aside else "on hold", when)))
        first = printable(f"  {number}  {entry.message} {entry.words}")
        lines = [f"{first}  {facts}"] if len(first) + len(facts) + 2 < width else [first, f"     {facts}"]
        for line in lines:
            print(fitted(line, width - 1), file=sys.stderr)


def asked(waiting: Sequence[Waiting]) -> Resume | None:
    """Ask the person at the terminal until an answer can be read, and return its meaning; None for nothing."""
    everything = "" if all(entry.aside for entry in waiting) else ", a: all on hold"
    while True:
        how = f"Run which? (1 2: these{everything}, d 1: drop, d all, Enter: none) "
        print(how, end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if not answer.endswith("\n"):  # Ctrl-D
            print(file=sys.stderr)
            return None
        words = answer.replace(",", " ").lower().split()
        if not words or words[0] in ("n", "no", "q", "quit") or "\x1b" in answer:  # Esc, too
            return None
        if given := meant(words, waiting):
            return given
        note(f"{printable(answer.strip())} is none of these answers; nothing was done with it")


def meant(words: Sequence[str], waiting: Sequence[Waiting]) -> Resume | None:
    """Interpret the words of an answer: `a`, `1 2`, `d 1`, `d all`; None if they mean nothing."""
    drops = words[0] in ("d", "drop")
    named = words[1:] if drops else words
    if tuple(named) in (("a",), ("all",)):
        on_hold = tuple(number for entry in waiting if drops or not entry.aside for number in entry.numbers)
        everything = Resume(ResumeMode.DROP) if drops else Resume()
        return everything if on_hold else None
    if not named or not all(word.isdecimal() and 1 <= int(word) <= len(waiting) for word in named):
        return None
    numbers = tuple(number for word in named for number in waiting[int(word) - 1].numbers)
    return Resume(ResumeMode.DROP if drops else ResumeMode.RETRY, only=numbers)
