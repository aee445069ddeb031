"""A side turn: a turn of a member's CLI outside the conversation. It has a receipt, and its cost counts.

It makes no message, routes nothing, and its member does not remember it. Its end and its result are stored in one
transaction. Until then, and whenever it fails, everything else stays unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.context.build import BuiltPrompt
from teamchat.core.store.turns import Turn, begin_turn
from teamchat.core.team.programs import job_of
from teamchat.core.team.team import Member
from teamchat.core.turn.attempts import new_turn
from teamchat.core.turn.ending import OpenTurn, Written, close_failed, close_turn
from teamchat.core.turn.execution import FinishedTurn, execute
from teamchat.core.turn.machine import ReadyTurn, TurnReason, wait_to_start
from teamchat.core.turn.plan import plan_hosted, plan_turn
from teamchat.core.turn.run import Run, TurnFailure
from teamchat.core.turn.run_events import ConversationEvent, TurnStarted
from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.failures import is_blank

T = TypeVar("T")


class SideTurn(Struct, Generic[T], frozen=True):
    """The question to a member in a side turn, and the use of its answer.

    `read` reads the answer and returns the function that stores its result, in the transaction that ends the turn.
    `event` makes the event that tells the result. With `keeps_text` the receipt keeps the answer itself. `fault` names
    the fault of an answer, if there is one.
    """

    member: Member
    prompt: BuiltPrompt
    reason: TurnReason
    read: Callable[[str], Callable[[Turn], T]]
    event: Callable[[Turn, T], ConversationEvent]
    keeps_text: bool = False
    fault: Callable[[str], str | None] = lambda _: None


def for_side_turn(member: Member) -> Member:
    """Adapt the member to a side turn: it may only read, in a fresh vendor session."""
    return replace(member, access="read", allow=(), memory="fresh")


async def run_side_turn(run: Run, side: SideTurn[T]) -> T | TurnFailure:
    """Return the result of the turn, or why it failed. Raises `TeamchatError` for errors known before it begins."""
    folder = run.folder / os.urandom(8).hex()
    scratch, place = run.machine.scratch(folder), None
    try:
        if place := await run.place(side.member):
            member = place.on(run.team, side.member)[1]
            planned = plan_hosted(
                member, place.agent, side.prompt, side.reason, place, folder, scratch, budget_usd=run.budget()
            )
        else:
            agent = run.team.agent_of(side.member)
            job = job_of(side.member, agent, run.machine.env, scratch)
            planned = plan_turn(side.member, agent, job, side.prompt, side.reason, run.machine, budget_usd=run.budget())
        run.machine.check(planned)
        if await wait_to_start(planned, run.machine, run.stopper):
            run.machine.check(planned)
        planned, admission = run.admitted(planned, folder)
        new = replace(new_turn(run.session, None, planned, folder), admission=admission)
        run.count_turn()
        with run.transaction():
            turn = begin_turn(run.db, new)
        finished = await _execute(run, side, planned, turn)
    except BaseException:
        run.remove(scratch)
        raise
    finally:
        run.ordered(place)
    return _end(run, side, OpenTurn(turn, finished, scratch))


async def _execute(run: Run, side: SideTurn[T], planned: ReadyTurn, turn: Turn) -> FinishedTurn:
    run.emit(TurnStarted(turn, None))
    tell = partial(run.speaks, turn.member, turn.number)
    tree = await run.tree_before(turn, planned)
    finished = await execute(
        planned, turn.folder, run.machine, run.stopper, tell, tree=tree, longest=run.team.limits.reply
    )
    unanswered = "asked its user a question" if finished.questions and is_blank(finished.text) else None
    if finished.outcome.failure is None and (fault := unanswered or side.fault(finished.text)):
        failure = Failure(FailureKind.AGENT, fault)
        finished = replace(finished, outcome=replace(finished.outcome, failure=failure))
    return finished


def _end(run: Run, side: SideTurn[T], ended: OpenTurn) -> T | TurnFailure:
    turn, outcome = ended.turn, ended.finished.outcome
    if failure := outcome.failure:
        close_failed(run, ended)
        return TurnFailure(outcome.code, f"{turn.member} {failure.reason}", failure.hint)

    def prepare() -> Callable[[], Written[T]]:
        store = side.read(ended.finished.text)
        return lambda: Written(store(turn))

    return close_turn(run, ended, prepare, lambda result: run.emit(side.event(turn, result)), keep_text=side.keeps_text)
