"""Getting an answer for a route: the member's turn, its retries, and those who answer in its place.

Every turn that is run is stored with a receipt of its own. The last one is handed back open, so that the coordinator
ends it together with the reply and the queue.
"""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from teamchat.assemblers.truncation import byte_length
from teamchat.core.context.build import BuiltPrompt
from teamchat.core.context.history import text_of
from teamchat.core.context.vendor_session import past_of
from teamchat.core.engine.actions import Paused
from teamchat.core.engine.events import Spent, TurnBegan
from teamchat.core.engine.state import Route
from teamchat.core.errors import (
    CODES,
    AgentMissing,
    BudgetUsedUp,
    DiskFull,
    ExitCode,
    GuardReached,
    Interrupted,
    NoRecording,
    StoreError,
    StoreGone,
    TeamchatError,
    UnknownName,
)
from teamchat.core.messages import ConversationMessage
from teamchat.core.store.images import images_of
from teamchat.core.store.texts import pack
from teamchat.core.store.turns import NewTurn, Trace, Turn, TurnStatus, begin_turn, end_turn, trace
from teamchat.core.team.job import SCRATCH
from teamchat.core.team.team import Member
from teamchat.core.turn.events import AgentSpoke, TurnFinished, TurnStarted, Warned
from teamchat.core.turn.execution import FinishedTurn, execute
from teamchat.core.turn.host import wait_to_start
from teamchat.core.turn.kept import free_output, keep_end
from teamchat.core.turn.plan import plan_reply
from teamchat.core.turn.ready import ReadyTurn
from teamchat.core.turn.run import Run
from teamchat.runners.events import AgentEvent, Failure, FailureKind, Usage

RETRYABLE = (FailureKind.RATE_LIMIT, FailureKind.OVERLOADED)
REPLACEABLE = (FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.LOGIN, FailureKind.MISSING)
# with somebody to answer in its place, a CLI that asks again by itself is waited for only so often
PATIENCE = {FailureKind.RATE_LIMIT: 1, FailureKind.OVERLOADED: 3}
BACKOFF_S = 2.0
LONGEST_BACKOFF_S = 60.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """The last turn of a route, which is still open. `member` may be another than the route's target.

    `scratch` is to be removed when the turn is closed.
    """

    route: Route
    member: Member
    turn: Turn
    finished: FinishedTurn
    scratch: Path | None  # None for that of a process that stays


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why nothing was run: known before anything was started, or interrupted by then."""

    route: Route
    error: TeamchatError


@dataclass(slots=True)
class Attempts:
    """Runs the turns of the routes of one run."""

    run: Run

    async def answer(self, route: Route) -> Answer | NoAnswer:
        """An answer to `route`, or the failure of the last turn that was tried."""
        try:
            target = self.run.team.member(route.target)
        except UnknownName as error:
            return NoAnswer(route, UnknownName(str(error), "teamchat resume --skip"))
        member, *others = self.order(target)
        if member is not target:
            self.run.emit(Warned(passed_over(target, member), route.number))
        while True:
            result = await self._tries(route, member, replaceable=not all(map(self._cools, others)))
            kind = _kind(result)
            if kind is FailureKind.RATE_LIMIT and self.run.cooldowns:
                self.run.cooldowns.start(self._vendor(member))
            if kind not in REPLACEABLE or _interrupted(result) or not others:
                return result
            if isinstance(result, Answer):
                self._end_failed(result)
            if paused := self.run.guard():
                return _no_more(result, paused)
            route = result.route
            member, *others = sorted(others, key=self._cools)
            self.run.emit(Warned(f"{_reason(result)}; {_instead(member, target)}", route.number))

    def order(self, target: Member) -> list[Member]:
        """The target and those who answer in its place, as they are asked: those whose vendor cools down last."""
        return sorted([target, *map(self.run.team.member, target.fallback)], key=self._cools)

    def _cools(self, member: Member) -> bool:
        """Whether the member's vendor asked to be left alone; then it is asked when all others could not answer."""
        return bool(self.run.cooldowns and self.run.cooldowns.left(self._vendor(member)))

    def _vendor(self, member: Member) -> str:
        return self.run.team.agent_of(member).name

    async def _tries(self, route: Route, member: Member, *, replaceable: bool) -> Answer | NoAnswer:
        """The member's turn, again as often as `retries` says after what may pass by itself.

        Once more, too, in a process of its own, where one that was to stay did not say how the turn went.
        """
        tries = 0
        while True:
            result = await self._turn(route, member, replaceable=replaceable)
            if isinstance(result, Answer) and _lost(result):
                self._end_failed(result)
                route = result.route  # after a turn that failed the next one is a fresh one
                self.run.emit(Warned(f"{_reason(result)}; begins a fresh one with the full context", route.number))
                continue
            again = isinstance(result, Answer) and _untold(result)
            if not again and (_kind(result) not in RETRYABLE or tries >= member.retries or _interrupted(result)):
                return result
            assert isinstance(result, Answer)
            self._end_failed(result)
            if paused := self.run.guard():
                return _no_more(result, paused)
            route = result.route
            if again:
                self.run.live.give_up(member)
                self.run.emit(Warned(f"{_reason(result)}; goes on with a process for each turn", route.number))
                continue
            pause = min(BACKOFF_S * 2**tries, LONGEST_BACKOFF_S)
            self.run.emit(Warned(f"{_reason(result)}; tries again in {pause:.0f} s", route.number))
            if self.run.host.live:
                await self.run.stopper.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311 (no secret)
            tries += 1

    def plan(self, route: Route, member: Member, scratch: Path = SCRATCH) -> ReadyTurn:
        """The turn of `member` for `route`; raises what `plan_reply` does."""
        run = self.run
        return plan_reply(
            run.team,
            route,
            run.manager,
            run.host,
            member=run.live.kept(member),
            past=past_of(run.db, run.session, member),
            collector=run.collector,
            scratch=scratch,
            budget_usd=run.budget(),
            images=partial(images_of, run.db, run.session),
        )

    async def _turn(self, route: Route, member: Member, *, replaceable: bool) -> Answer | NoAnswer:
        run = self.run
        interrupted = Interrupted(f"{member.name} was interrupted before its turn began")
        if run.stopped(member.name):
            return NoAnswer(route, interrupted)
        folder = run.folder / secrets.token_hex(8)
        scratch, answer = run.host.scratch(folder), None
        try:
            planned = self.plan(route, member, scratch)
            run.host.check(planned)
            planned, stays = await run.live.take(planned)
            await wait_to_start(planned, run.host, run.stopper)
            if run.stopper.asked:  # the prompt of a long conversation takes its time
                return NoAnswer(route, interrupted)
            turn = self._begin(route, planned, folder)

            def tell(event: AgentEvent) -> None:
                run.emit(AgentSpoke(member.name, turn.number, event))

            patience = PATIENCE if replaceable else {}
            finished = await execute(planned, turn.folder, run.host.launcher, run.stopper, tell, patience, stays)
            finished = run.live.give_back(stays, finished)
            begun = replace(route, attempt=route.attempt + 1, as_of=turn.shown_through)
            kept = stays is not None and stays.scratch == scratch
            answer = Answer(begun, member, turn, finished.with_questions(), None if kept else scratch)
            return answer  # noqa: TRY300 (its folders are removed once it is stored)
        except NoRecording:
            raise  # a replay ends here: there is nothing to resume
        except TeamchatError as error:
            return NoAnswer(route, error)
        finally:
            if answer is None:
                run.remove(scratch)

    def _begin(self, route: Route, planned: ReadyTurn, folder: Path) -> Turn:
        run = self.run
        new = new_turn(run.session, route.number, planned, folder)
        with run.transaction():
            run.decide(TurnBegan(run.host.now(), route.number, planned.prompt.answers.id))
            turn = begin_turn(run.db, new)
        run.emit(TurnStarted(turn, route))
        for warning in cut_warnings(turn, planned.prompt, run.manager.get_message(route.request)):
            run.emit(Warned(warning, route.number))
        return turn

    def _end_failed(self, answer: Answer) -> None:
        """A turn that failed and is followed by another for the same route."""
        left = trace_of(answer.finished)

        def write() -> None:
            with self.run.transaction():
                self.end(answer, left)

        self.store_end(answer, write)
        self.tell_end(answer)

    def store_end(self, answer: Answer, write: Callable[[], T]) -> T:
        """Store the end of a turn by `write`. What the store cannot take is kept beside it. Raises `StoreError`.

        On a full disk the turn's own output goes first, and it is tried once more.
        """
        folder = answer.turn.folder
        try:
            return write()
        except StoreGone as error:
            self.run.tally.text = answer.finished.text
            self.run.emit(Warned(f"what {answer.member.name} said is not stored: {error}\n{answer.finished.text}"))
            self.run.remove(
                answer.scratch, answer.turn.folder
            )  # no store is left that reminds the next command of them
            raise
        except StoreError as error:
            if not keep_end(folder, answer.finished):
                raise
            if isinstance(error, DiskFull):
                free_output(folder)
                with contextlib.suppress(StoreError):
                    return write()
            said = f"how turn {answer.turn.number} ({answer.member.name}) ended is kept, and the next command stores it"
            raise StoreError(f"{error}; {said}", error.hint) from error

    def end(self, answer: Answer, left: Trace, *, reply: str | None = None, kept: bool = False) -> None:
        """Complete the turn of an answer, in the caller's transaction; `kept` for a group that is not over."""
        outcome = answer.finished.outcome
        end_turn(self.run.db, answer.turn, turn_status(outcome.failure, kept=kept), replace(outcome, reply=reply), left)
        self.run.decide(spent(self.run.host.now(), outcome.usage))

    def tell_end(self, answer: Answer, reply: str | None = None) -> None:
        """Say that the turn is over, and remove its folders."""
        outcome = replace(answer.finished.outcome, reply=reply)
        self.run.tally.add(answer.turn, outcome)
        self.run.emit(TurnFinished(answer.turn, outcome, answer.finished.text if outcome.failure else ""))
        if outcome.marked:
            self.run.emit(Warned(f"{answer.turn.member} {outcome.marked_in_brief}", answer.turn.route))
        self.run.remove(answer.scratch, answer.turn.folder)


def cut_warnings(turn: Turn, prompt: BuiltPrompt, request: ConversationMessage) -> Iterator[str]:
    """What a turn is not told of the message that it answers, and of the one that it serves; a command that is text."""
    trimmed = turn.setup.trimmed
    if prompt.slash and prompt.slash.refused:
        yield f"{turn.member} gets it as text: {turn.setup.slash}"
    if prompt.unseen:
        yield f"{turn.member}'s CLI takes no images: it is told the name of {', '.join(prompt.unseen)} alone"
    for message, gone in ((prompt.answers, trimmed.message_bytes), (request, trimmed.request_bytes)):
        if gone:
            whose = f"{message.speaker.role_name}'s message {message.id}"
            if gone < byte_length(text_of(message).strip()):
                yield f"{turn.member} is told {whose} without {gone:,} bytes of its middle (max_bytes)"
            else:
                yield f"{turn.member} is told nothing of {whose}: its {gone:,} bytes are left out (max_bytes)"


def new_turn(session: int, route: int | None, prepared: ReadyTurn, folder: Path) -> NewTurn:
    """The row of a turn that starts now; `route` is None for one aside from the conversation."""
    return NewTurn(
        session=session,
        route=route,
        member=prepared.member.name,
        agent=prepared.agent.name,
        like=prepared.agent.like,
        system_text=pack(system.encode()) if (system := prepared.prompt.system_text) else None,
        prompt=pack(prepared.prompt.prepared.stdin),
        shown_through=prepared.prompt.answers.id,
        setup=prepared.setup,
        folder=folder,
    )


def trace_of(finished: FinishedTurn, *, with_text: bool = False) -> Trace:
    """What a turn leaves; the text of one that failed, and `with_text` any."""
    text = finished.text if with_text or finished.outcome.failure else ""
    return trace(text, finished.vendor_session, finished.events)


def turn_status(failure: Failure | None, *, kept: bool = False) -> TurnStatus:
    if failure is None:
        return "answered" if kept else "done"
    return "interrupted" if failure.kind is FailureKind.INTERRUPTED else "failed"


def spent(now: float, usage: Usage | None) -> Spent:
    used = usage or Usage()
    return Spent(now, (used.input_tokens or 0) + (used.output_tokens or 0), used.cost_usd or 0.0)


def _kind(result: Answer | NoAnswer) -> FailureKind | None:
    if isinstance(result, NoAnswer):
        return FailureKind.MISSING if isinstance(result.error, AgentMissing) else None
    failure = result.finished.outcome.failure
    return failure.kind if failure else None


def passed_over(target: Member, member: Member) -> str:
    """Why the target is not asked first."""
    return f"{target.name}'s vendor cools down after a rate limit; {_instead(member, target)}"


def _no_more(result: Answer | NoAnswer, paused: Paused) -> NoAnswer:
    """The failure of a turn that a guard lets nobody try again."""
    error = BudgetUsedUp if CODES[paused.kind] is ExitCode.BUDGET else GuardReached
    return NoAnswer(result.route, error(f"{_reason(result)}, and {paused.reason}"))


def _instead(member: Member, target: Member) -> str:
    return f"{member.name} {'is asked all the same' if member is target else 'answers in its place'}"


def _lost(answer: Answer) -> bool:
    """Whether the turn was to go on with a vendor session that is not there."""
    return _kind(answer) is FailureKind.GONE and answer.turn.setup.resumes is not None


def _untold(answer: Answer) -> bool:
    """Whether a process that was to stay has ended without a word on how the turn went."""
    return answer.finished.untold and _kind(answer) is FailureKind.AGENT


def _interrupted(result: Answer | NoAnswer) -> bool:
    """Whether a person has ended the turn: it is neither tried again nor replaced."""
    return isinstance(result, Answer) and result.finished.interrupted


def _reason(result: Answer | NoAnswer) -> str:
    if isinstance(result, NoAnswer):
        return str(result.error)
    failure = result.finished.outcome.failure
    return f"{result.member.name} {failure.reason if failure else ''}"
