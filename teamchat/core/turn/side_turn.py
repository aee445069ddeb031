"""A turn of a member's CLI aside from the conversation: a real one, with a receipt, and its cost counts.

No message comes of it, nothing is routed, and its member does not remember it. Its end and what comes of it are stored
at once; until then, and whenever it fails, everything else is as it was.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from teamchat.core.context.build import BuiltPrompt
from teamchat.core.store.turns import Turn, begin_turn, end_turn
from teamchat.core.team.team import Member
from teamchat.core.turn.attempts import Attempts, new_turn, spent, trace_of, turn_status
from teamchat.core.turn.events import AgentSpoke, ConversationEvent, TurnFinished, TurnStarted, Warned
from teamchat.core.turn.execution import FinishedTurn, execute
from teamchat.core.turn.host import wait_to_start
from teamchat.core.turn.plan import plan_turn
from teamchat.core.turn.ready import ReadyTurn, TurnReason
from teamchat.core.turn.tally import TurnFailure
from teamchat.runners.blank import is_blank
from teamchat.runners.events import AgentEvent, Failure, FailureKind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SideTurn(Generic[T]):
    """What a member is asked aside, and what is done with its answer.

    `keep` reads the answer and gives what stores that, in the transaction that ends the turn; `tell` is the event of
    it. With `keeps_text` the receipt has the answer itself. `amiss` says what is wrong with an answer, if anything.
    """

    member: Member
    prompt: BuiltPrompt
    reason: TurnReason
    keep: Callable[[str], Callable[[Turn], T]]
    tell: Callable[[Turn, T], ConversationEvent]
    keeps_text: bool = False
    amiss: Callable[[str], str | None] = lambda _: None


def for_side_turn(member: Member) -> Member:
    """The member as it is asked aside: it may only read, and its session is a fresh one."""
    return replace(member, access="read", allow=(), memory="fresh")


async def run_side_turn(of: Attempts, aside: SideTurn[T]) -> T | TurnFailure:
    """What comes of the turn, or why it failed. Raises `TeamchatError` for what is known before it begins."""
    folder = of.folder / secrets.token_hex(8)
    scratch = of.host.scratch(folder)
    try:
        prepared = plan_turn(
            of.team, aside.member, aside.prompt, aside.reason, of.host, scratch=scratch, budget_usd=of.budget()
        )
        of.host.check(prepared)
        await wait_to_start(prepared, of.host, of.stopper)
        new = new_turn(of.session, None, prepared, folder)
        with of.transaction():
            turn = begin_turn(of.db, new)
        finished = await _run(of, aside, prepared, turn)
    except BaseException:
        of.remove(scratch)
        raise
    result = _end(of, aside, turn, finished)
    of.remove(scratch, folder)
    return result


async def _run(of: Attempts, aside: SideTurn[T], prepared: ReadyTurn, turn: Turn) -> FinishedTurn:
    of.emit(TurnStarted(turn, None))

    def tell(event: AgentEvent) -> None:
        of.emit(AgentSpoke(turn.member, turn.number, event))

    finished = await execute(prepared, turn.folder, of.host.launcher, of.stopper, tell)
    unanswered = "asked its user a question" if finished.questions and is_blank(finished.text) else None
    if finished.outcome.failure is None and (amiss := unanswered or aside.amiss(finished.text)):
        failure = Failure(FailureKind.AGENT, amiss)
        finished = replace(finished, outcome=replace(finished.outcome, failure=failure))
    return finished


def _end(of: Attempts, aside: SideTurn[T], turn: Turn, finished: FinishedTurn) -> T | TurnFailure:
    outcome, failure = finished.outcome, finished.outcome.failure
    left = trace_of(finished, with_text=aside.keeps_text)
    keep: Callable[[Turn], T | TurnFailure]
    if failure:
        failed = TurnFailure(outcome.code, f"{turn.member} {failure.reason}", failure.hint)
        keep = lambda _: failed  # noqa: E731
    else:
        keep = aside.keep(finished.text)
    with of.transaction():
        end_turn(of.db, turn, turn_status(failure), outcome, left)
        result = keep(turn)
        of.note(spent(of.host.now(), outcome.usage))
    of.tally.add(turn, outcome)
    if not isinstance(result, TurnFailure):
        of.emit(aside.tell(turn, result))
    of.emit(TurnFinished(turn, outcome, finished.text if failure else ""))
    if outcome.marked:
        of.emit(Warned(f"{turn.member} {outcome.marked_in_brief}"))
    return result
