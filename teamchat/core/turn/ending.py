"""The end of a turn, whatever the turn was for: stored in one transaction, told, and its folders removed.

What the store cannot take is kept beside it until the next command, since the answer was paid for.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.engine.events import Spent
from teamchat.core.errors import DiskFull, StoreError, StoreGone
from teamchat.core.files.whole_files import put_in_place, write_private
from teamchat.core.receipt import Child, Outcome
from teamchat.core.store.rows import dump, load, load_outcome
from teamchat.core.store.sessions import name_of
from teamchat.core.store.turn_events import TimedEvent
from teamchat.core.store.turns import Turn, TurnStatus, end_turn, trace
from teamchat.core.store.usage import children_of
from teamchat.core.turn.events import TurnFinished, Warned
from teamchat.core.turn.execution import FinishedTurn
from teamchat.core.turn.run import Run
from teamchat.runners.child.running import MAX_OUTPUT_BYTES
from teamchat.runners.events import AgentEvent, Failure, FailureKind, Usage
from teamchat.runners.untrusted.regular_files import read_regular

# The end of a turn that cannot be stored is kept beside the store, until the next command stores it.
#
# A store may be locked, full, read-only or damaged when an agent has just answered. The answer was paid for, and is
# not asked for twice.

NAME = "ended.json.z"
STREAMS = ("stdout", "stderr")
LARGEST = 2 * MAX_OUTPUT_BYTES
LARGEST_WRITTEN = 4 * MAX_OUTPUT_BYTES
EVENTS = {kind.__name__: kind for kind in get_args(AgentEvent)}


def keep_end(folder: Path, turn: FinishedTurn) -> bool:
    """Write the end of a turn into its folder. True when that was possible.

    On a full disk the agent's own output is freed: everything that counts of it is in `turn`.
    """
    content = zlib.compress(_written(turn), 1)  # it must fit into the space of the output
    for make_room in (False, True):
        if make_room:
            free_output(folder)
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = folder / f"{NAME}.new"
            new.unlink(missing_ok=True)
            write_private(new, content)
            put_in_place(new, folder / NAME)
            return True
    return False


def free_output(folder: Path) -> None:
    """Free the space of the turn's output."""
    for stream in STREAMS:
        with contextlib.suppress(OSError):
            os.close(os.open(folder / stream, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK))


def has_end(folder: Path) -> bool:
    """Whether the end of a turn is kept in its folder, as far as can be told without reading it."""
    return (folder / NAME).is_file()


def read_end(folder: Path) -> FinishedTurn | None:
    """The end of a turn that is kept in its folder; None if there is none, or it is damaged."""
    try:
        found = json.loads(_inflated(read_regular(folder / NAME, LARGEST)))
        events = tuple(TimedEvent(float(at), load(EVENTS[kind], fields)) for at, kind, fields in found["events"])
        outcome = load_outcome(found["outcome"])
        session = found["vendor_session"]
        return FinishedTurn(
            outcome,
            str(found["text"]),
            interrupted=bool(found["interrupted"]),
            vendor_session=None if session is None else str(session),
            events=events,
        )
    except (OSError, ValueError, TypeError, LookupError, RecursionError, zlib.error):
        return None


def _inflated(data: bytes) -> bytes:
    """The decompressed content. Raises `ValueError` when it is larger than any turn: an agent can write there."""
    inflate = zlib.decompressobj()
    content = inflate.decompress(data, LARGEST_WRITTEN)
    if not inflate.eof:
        raise ValueError("it is incomplete, or larger than any turn")
    return content


def _written(turn: FinishedTurn) -> bytes:
    events = ", ".join(
        f"[{timed.at:.3f}, {json.dumps(type(timed.event).__name__)}, {dump(timed.event)}]" for timed in turn.events
    )
    rest = json.dumps({"text": turn.text, "interrupted": turn.interrupted, "vendor_session": turn.vendor_session})
    return f'{rest[:-1]}, "outcome": {dump(turn.outcome)}, "events": [{events}]}}'.encode()


T = TypeVar("T")


class OpenTurn(Struct, frozen=True):
    """A turn whose process is over and whose end is not stored yet. `scratch` is None for that of a process that stays.

    Its folders are removed when its end is stored.
    """

    turn: Turn
    finished: FinishedTurn
    scratch: Path | None

    @property
    def failed(self) -> bool:
        return self.finished.outcome.failure is not None


class Written(Struct, Generic[T], frozen=True):
    """What was written along with the end of a turn, and the id of the message that the turn became, if any."""

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
    """Store the end of a turn and what else `prepare` has to write, tell it, and remove the turn's folders.

    `prepare` reads and parses what takes long, and returns the function that writes in the transaction. `tell` is given
    its result when it is stored. The receipt keeps the text of a failed turn, and with `keep_text` that of any.

    Raises `StoreError`.
    """
    kept = trace(
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
            end_turn(run.db, ended.turn, status, whole, kept)
            return written.result, whole

    result, whole = _stored(run, ended, write)
    if run.caller:
        run.caller.spend(name_of(run.db, run.session), run.db.path, outcome.usage or Usage())
    tell(result)
    _tell_end(run, ended, whole)
    if ended.turn.setup.host:
        run.hosting.forget(ended.turn.folder.name)
    run.remove(ended.scratch, ended.turn.folder)
    return result


def close_failed(run: Run, ended: OpenTurn) -> None:
    """Store the end of a turn that another turn for the same route follows. Raises `StoreError`."""
    close_turn(run, ended, lambda: lambda: Written(None))


def _stored(run: Run, ended: OpenTurn, write: Callable[[], T]) -> T:
    """What `write` returns. An end that cannot be stored is kept beside the store. Raises `StoreError`.

    On a full disk the turn's own output is freed, and `write` is tried once more. The end of a side turn is not kept:
    it is no part of the conversation, and the next command asks again.
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
        kept = f"the end of turn {turn.number} ({turn.member}) is kept, and the next command stores it"
        raise StoreError(f"{error}; {kept}", error.hint) from error


def _tell_lost(run: Run, ended: OpenTurn, error: StoreError) -> None:
    """Tell the text of a turn that nothing has kept."""
    run.tally.end_with(ended.finished.text)
    run.emit(Warned(f"what {ended.turn.member} said is not stored: {error}\n{ended.finished.text}"))


def _tell_end(run: Run, ended: OpenTurn, outcome: Outcome) -> None:
    run.tally.add(ended.turn, outcome)
    run.emit(TurnFinished(ended.turn, outcome, ended.finished.text if ended.failed else ""))
    for warning in file_warnings(ended.turn, outcome):
        run.emit(warning)


def file_warnings(turn: Turn, outcome: Outcome) -> Iterator[Warned]:
    """What a person should know of the files that changed during a turn."""
    if broken := outcome.broken_access(turn.setup.access):
        undo = f"(by it or by somebody else): teamchat diff {turn.number}, teamchat undo {turn.number}"
        yield Warned(f"{turn.member} {broken} {undo}", turn.route)
    if outcome.marked:
        yield Warned(f"{turn.member} {outcome.marked_in_brief}", turn.route)
    for child in outcome.children:
        yield Warned(f"{turn.member} ran the conversation {child.session} in its turn: {child.used}", turn.route)


def turn_status(failure: Failure) -> TurnStatus:
    return "interrupted" if failure.kind is FailureKind.INTERRUPTED else "failed"


def spent(now: float, usage: Usage | None, children: Iterable[Child] = ()) -> Spent:
    """The engine's event for what a turn has used, and what the agent's own conversations have used in it."""
    used = usage or Usage()
    event = Spent(now, (used.input_tokens or 0) + (used.output_tokens or 0), used.cost_usd or 0.0)
    for child in children:
        event = Spent(now, event.tokens + child.tokens, event.cost_usd + child.cost_usd, event.turns + child.turns)
    return event
