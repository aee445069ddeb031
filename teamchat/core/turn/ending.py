"""The end of a turn, whatever the turn was for: stored in one transaction, told, and its folders removed.

An end that the store cannot take is kept beside it until the next command, since the answer was paid for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.engine.events import Spent
from teamchat.core.errors import DiskFull, StoreError, StoreGone
from teamchat.core.receipt import Child, Outcome
from teamchat.core.store.sessions import name_of
from teamchat.core.store.turns import Turn, TurnStatus, end_turn, trace
from teamchat.core.store.usage import children_of
from teamchat.core.turn.execution import FinishedTurn
from teamchat.core.turn.kept_end import free_output, keep_end
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import TurnFinished, Warned
from teamchat.runners.agent_events import Failure, FailureKind, Usage

T = TypeVar("T")


class OpenTurn(Struct, frozen=True):
    """A turn whose process is over and whose end is not stored yet.

    Its folders are removed once its end is stored. `scratch` is None for a process that stays.
    """

    turn: Turn
    finished: FinishedTurn
    scratch: Path | None

    @property
    def failed(self) -> bool:
        return self.finished.outcome.failure is not None


class Written(Struct, Generic[T], frozen=True):
    """The result of writing the end of a turn, and the id of the message that the turn became, if any."""

    result: T
    reply: str | None = None


def close_turn(
    run: Run,
    ended: OpenTurn,
    prepare: Callable[[], Callable[[], Written[T]]],
    tell: Callable[[T], None] = lambda _: None,
    *,
    success: TurnStatus = "done",
    keep_text: bool = False,
) -> T:
    """Store the end of a turn with what `prepare` writes, tell it, and remove the turn's folders.

    `prepare` does the slow reading and parsing, and returns the function that writes in the transaction. `tell` gets
    its result once it is stored. The receipt keeps the text of a failed turn, and with `keep_text` that of any turn.
    Raises `StoreError`.
    """
    turn_trace = trace(
        ended.finished.text if keep_text or ended.failed else "", ended.finished.vendor_session, ended.finished.events
    )
    outcome, prepared = ended.finished.outcome, cache(prepare)  # a second try warns no second time of what is wrong

    def write() -> tuple[T, Outcome]:
        put = prepared()
        with run.transaction():
            children = children_of(run.db, run.session, ended.turn.id)
            run.decide(spent(run.machine.now(), outcome.usage, children))
            written = put()
            status = turn_status(outcome.failure) if outcome.failure else success
            whole = replace(outcome, reply=written.reply, children=children)
            end_turn(run.db, ended.turn, status, whole, turn_trace)
            return written.result, whole

    result, whole = _stored(run, ended, write)
    if run.caller:
        run.caller.spend(name_of(run.db, run.session), run.db.path, outcome.usage or Usage())
    tell(result)
    run.tally.add(ended.turn, whole)
    run.emit(TurnFinished(ended.turn, whole, ended.finished.text if ended.failed else ""))
    for warning in file_warnings(ended.turn, whole):
        run.emit(warning)
    if ended.turn.setup.host:
        run.hosting.forget(ended.turn.folder.name)
    run.remove(ended.scratch, ended.turn.folder)
    return result


def close_failed(run: Run, ended: OpenTurn) -> None:
    """Store the end of a turn that is followed by another turn for its route. Raises `StoreError`."""
    close_turn(run, ended, lambda: lambda: Written(None))


def _stored(run: Run, ended: OpenTurn, write: Callable[[], T]) -> T:
    """Return the result of `write`. Keep an end that cannot be stored beside the store. Raises `StoreError`.

    On a full disk it frees the turn's own output and tries `write` once more. It does not keep the end of a side turn,
    which is not part of the conversation: the next command asks again.
    """
    turn, finished = ended.turn, ended.finished
    try:
        return write()
    except StoreError as error:
        if turn.route is None:
            raise
        if isinstance(error, StoreGone):
            _tell_lost(run, ended, error)
            run.remove(ended.scratch, turn.folder)  # no later command can find them without a store
            raise

        if not keep_end(turn.folder, finished):
            _tell_lost(run, ended, error)
            raise
        if isinstance(error, DiskFull):
            free_output(turn.folder)
            with contextlib.suppress(StoreError):
                return write()
        sentence = f"the end of turn {turn.number} ({turn.member}) is kept, and the next command stores it"
        raise StoreError(f"{error}; {sentence}", error.hint) from error


def _tell_lost(run: Run, ended: OpenTurn, error: StoreError) -> None:
    """Tell the text of a turn that is kept nowhere."""
    run.tally.end_with(ended.finished.text)
    run.emit(Warned(f"what {ended.turn.member} said is not stored: {error}\n{ended.finished.text}"))


def file_warnings(turn: Turn, outcome: Outcome) -> Iterator[Warned]:
    """Warn of changes to files during a turn, and of conversations that its agent ran."""
    if broken := outcome.broken_access(turn.setup.access):
        undo = f"(by it or by somebody else): teamchat diff {turn.number}, teamchat undo {turn.number}"
        yield Warned(f"{turn.member} {broken} {undo}", turn.route)
    if outcome.marked:
        yield Warned(f"{turn.member} {outcome.marked_in_brief}", turn.route)
    for child in outcome.children:
        yield Warned(f"{turn.member} ran the conversation {child.session} in its turn: {child.used}", turn.route)


def turn_status(failure: Failure) -> TurnStatus:
    match failure.kind:
        case FailureKind.INTERRUPTED:
            return "interrupted"
        case FailureKind.STOPPED:
            return "stopped"
        case _:
            return "failed"


def spent(now: float, usage: Usage | None, children: Iterable[Child] = ()) -> Spent:
    """Build the engine's event for the usage of a turn, with that of the agent's own conversations."""
    used = usage or Usage()
    event = Spent(now, (used.input_tokens or 0) + (used.output_tokens or 0), used.cost_usd or 0.0)
    for child in children:
        event = Spent(now, event.tokens + child.tokens, event.cost_usd + child.cost_usd, event.turns + child.turns)
    return event
