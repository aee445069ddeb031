"""Getting an answer for a route: the member's turn, its retries, and its fallbacks.

Every turn that runs is stored with its own receipt. The last one is returned open, so that the coordinator ends it in
one transaction with the reply and the queue.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.truncation import byte_length
from teamchat.core.context.build import BuiltPrompt
from teamchat.core.context.vendor_session import LOST, past_of
from teamchat.core.engine.events import TurnBegan
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Kind
from teamchat.core.errors import (
    CODES,
    AgentMissing,
    BudgetUsedUp,
    ExitCode,
    GuardReached,
    Interrupted,
    NoRecording,
    TeamchatError,
    UnknownName,
)
from teamchat.core.messages import ConversationMessage
from teamchat.core.routing.markers import quoted_text
from teamchat.core.store.images import images_of
from teamchat.core.store.texts import pack
from teamchat.core.store.turns import NewTurn, Turn, begin_turn, request_of
from teamchat.core.team.programs import SCRATCH, environment_of
from teamchat.core.team.team import AgentSpec, Member
from teamchat.core.turn.ending import OpenTurn, close_failed
from teamchat.core.turn.execution import execute
from teamchat.core.turn.machine import ReadyTurn, wait_to_start
from teamchat.core.turn.plan import plan_reply
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import TriesAgain, TurnStarted, Warned
from teamchat.core.turn.watching import in_thread
from teamchat.core.worktrees import first_try
from teamchat.runners.agent_events import FailureKind

if TYPE_CHECKING:
    from teamchat.core.turn.hosting import HostPlace

RETRYABLE = (FailureKind.RATE_LIMIT, FailureKind.OVERLOADED)
FALLBACK_ON = (FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.LOGIN, FailureKind.MISSING)
# If there is a fallback, a CLI is ended after this many retries of its own.
PATIENCE = {FailureKind.RATE_LIMIT: 1, FailureKind.OVERLOADED: 3}
BACKOFF_S = 2.0
LONGEST_BACKOFF_S = 60.0


class Answer(OpenTurn, frozen=True):
    """The last turn of a route, which is still open. `member` may be a fallback of the route's target."""

    route: Route
    member: Member


class NoAnswer(Struct, frozen=True):
    """The reason why no turn ran: an error known before the start, or an interruption."""

    route: Route
    error: TeamchatError


class Attempts(Struct):
    """Runner for the turns of the routes of one run."""

    run: Run

    async def answer(self, route: Route) -> Answer | NoAnswer:
        """Return an answer to `route`, or the failure of the last turn that was tried.

        After a failure that may pass by itself, a member's turn runs again up to `retries` times; then its fallbacks
        are asked. If a kept process ends without reporting the turn, that costs no retry: the turn runs again in its
        own process.
        """
        try:
            target = self.run.team.member(route.target)
        except UnknownName as error:
            return NoAnswer(route, UnknownName(str(error), "teamchat resume --skip"))
        (member, *others), tries = self.order(route, target), 0
        if member is not target:
            self.run.emit(Warned(passed_over(target, member), route.number))
        while True:
            result = await self._turn(route, member, has_fallback=not all(map(self._cools, others)))
            self._note_limit(result, member)
            why = _why_again(result, member, tries)
            if why is None and not self._falls_back(result, member, others):
                return result
            if isinstance(result, Answer):
                close_failed(self.run, result)
            if why is not Again.GONE and (paused := self.run.guard()):
                kind = BudgetUsedUp if CODES[paused.kind] is ExitCode.BUDGET else GuardReached
                return NoAnswer(result.route, kind(f"{_reason(result)}, and {paused.reason}"))
            route = result.route  # a turn after a failed one begins a fresh vendor session
            if why:
                tries += await self._before_again(why, result, member, tries)
                continue
            (member, *others), tries = sorted(others, key=self._cools), 0
            self.run.emit(Warned(f"{_reason(result)}; {_fallback(member, target)}", route.number))

    def _note_limit(self, result: Answer | NoAnswer, member: Member) -> None:
        """Keep the member's turns off a host that met a rate limit, until the host itself says how it stands."""
        host = result.turn.setup.host if isinstance(result, Answer) else None
        if host and self.run.machine.live and _kind(result) is FailureKind.RATE_LIMIT:
            self.run.hosting.limited(host, member.agent or "")

    def _falls_back(self, result: Answer | NoAnswer, member: Member, others: Sequence[Member]) -> bool:
        """Whether a fallback is asked. After a rate limit the member's agent cools down."""
        kind = _kind(result)
        if kind is FailureKind.RATE_LIMIT and self.run.cooldowns and not member.host:  # a host has its own
            self.run.cooldowns.start(self._agent(member))
        return bool(others) and kind in FALLBACK_ON and not _interrupted(result)

    async def _before_again(self, why: Again, result: Answer | NoAnswer, member: Member, tries: int) -> int:
        """Say why the turn of `member` runs again, and wait if needed. Return the number of retries that this costs."""
        reason, number = _reason(result), result.route.number
        if why is Again.UNREPORTED:
            self.run.live.give_up(member)
        if why is not Again.RETRY:
            self.run.emit(Warned(f"{reason}; {why.value}", number))
            return 0
        pause = min(BACKOFF_S * 2**tries, LONGEST_BACKOFF_S)
        delay = pause * (0.75 + os.urandom(1)[0] / 510) if self.run.machine.live else 0.0
        again = TriesAgain(tries + 1, member.retries, delay)
        self.run.emit(Warned(f"{reason}; tries again in {pause:.0f} s", number, again=again))
        if delay:
            await self.run.stopper.sleep(delay)
        return 1

    def order(self, route: Route, target: Member) -> list[Member]:
        """Put the target and its fallbacks in the order of asking: those whose agent cools down come last.

        Nobody replaces a member that works apart in a process. A process may allow other fallbacks.
        """
        fallback: Sequence[str] = target.fallback
        if route.part:
            fallback = () if route.part.apart else fallback if route.part.fallback is None else route.part.fallback
        return sorted([target, *map(self.run.team.member, fallback)], key=self._cools) if fallback else [target]

    def _cools(self, member: Member) -> bool:
        """Whether the member's agent cools down after a rate limit."""
        return bool(not member.host and self.run.cooldowns and self.run.cooldowns.left(self._agent(member)))

    def _agent(self, member: Member) -> str:
        """Name the agent that cools down: a rate limit belongs to a login, and each agent may have its own."""
        return self.run.team.agent_of(member).name

    def plan(
        self,
        route: Route,
        member: Member,
        scratch: Path = SCRATCH,
        place: HostPlace | None = None,
        folder: Path = SCRATCH,
    ) -> ReadyTurn:
        """Plan the turn of `member` for `route`. Raises what `plan_reply` does."""
        run = self.run
        agent = place.agent if place else run.team.agent_of(member)
        planned = plan_reply(
            run.team,
            replace(route, as_of=run.state.answers(route)),
            run.manager,
            run.machine,
            member=run.live.effective(_for_part(member, route)),
            past=past_of(run.db, run.session, member, agent, partial(self._rows, member, agent)),
            collector=run.collector,
            scratch=scratch,
            budget_usd=run.budget(),
            images=partial(images_of, run.db, run.session),
            request_of=partial(request_of, run.db),
            place=place,
            folder=folder,
        )
        return replace(planned, setup=replace(planned.setup, place=run.place_name(member, route)))

    def _rows(self, member: Member, agent: AgentSpec, session: str) -> Collection[str] | None:
        """Return the rows that the next turn of the member's vendor session continues, if its CLI tells them.

        A replay has no record, nor has this machine one of a host. A process that stays goes on with its own memory.
        """
        run, runner = self.run, agent.type.runner
        if not run.machine.live or member.host or not runner.sessions or run.live.keeps(member, session):
            return None
        env = environment_of(runner, run.machine.env, keep=member.env_keep, add=member.env)
        return runner.sessions.continues(env, member.cwd, session)

    async def _turn(self, route: Route, member: Member, *, has_fallback: bool) -> Answer | NoAnswer:
        run = self.run
        interrupted = Interrupted(f"{member.name} was interrupted before its turn began")
        if run.stopped(member.name):
            return NoAnswer(route, interrupted)
        folder = run.folder / os.urandom(8).hex()
        scratch, answer, place = run.machine.scratch(folder), None, None
        try:
            placed = await run.placed(member, route)
            place = await run.place(placed, route)
            if run.machine.live and route.part and route.part.shows_changes:
                await in_thread(partial(run.compared.look, route.part))
            planned = self.plan(route, placed, scratch, place, folder)
            run.machine.check(planned)
            planned, stays = await run.live.take(planned)
            waited = await wait_to_start(planned, run.machine, run.stopper)
            if waited or stays:  # it waited for others, or for the end of a kept process
                run.machine.check(planned)
            if run.stopper.asked:  # making the prompt of a long conversation takes a while
                return NoAnswer(route, interrupted)
            run.count_turn()
            process = stays.process.folder if stays and stays.process else folder
            planned, admission = run.admitted(planned, process)
            turn = self._begin(route, planned, folder, admission)
            tell = partial(run.speaks, member.name, turn.number)
            patience = PATIENCE if has_fallback else {}
            if planned.hosted:
                planned.hosted.limit(run.team.limits.reply, patience)
            in_line = route.part is not None and (route.part.kind == Kind.UNTIL or run.apart.gives_place(route))
            tree = await run.tree_before(turn, planned, in_line=in_line)
            longest = run.team.limits.reply
            with run.stopper_of(route) as stopper:
                finished = await execute(
                    planned, turn.folder, run.machine, stopper, tell, patience, stays, tree, longest
                )
            finished = run.live.give_back(stays, finished)
            begun = replace(route, attempt=route.attempt + 1, as_of=turn.setup.answers)
            scratch_stays = stays is not None and stays.scratch == scratch
            answer = Answer(turn, finished.with_questions(), None if scratch_stays else scratch, begun, member)
            return answer  # noqa: TRY300 (its folders are removed once it is stored)
        except NoRecording:
            raise  # a replay ends here: there is nothing to resume
        except TeamchatError as error:
            return NoAnswer(route, error)
        finally:
            run.ordered(place)
            if answer is None:
                run.remove(scratch)

    def _begin(self, route: Route, planned: ReadyTurn, folder: Path, admission: str | None) -> Turn:
        run = self.run
        new = replace(
            new_turn(run.session, route.number, planned, folder),
            before=run.state,
            group=self._group_of(route),
            admission=admission,
        )
        with run.transaction():
            run.decide(TurnBegan(run.machine.now(), route.number, planned.prompt.answers.id))
            turn = begin_turn(run.db, new)
        if place := turn.setup.place:
            run.tries[first_try(place)] += 1
        if len(run.state.mates(route)) > 1 and run.group is None:
            run.group = new.group or turn.id
        run.emit(TurnStarted(turn, route))
        for warning in cut_warnings(turn, planned.prompt, run.manager.get_message(route.request)):
            run.emit(Warned(warning, route.number))
        if lacks := planned.prompt.not_compared:
            run.emit(Warned(f"{turn.member} compares without {lacks}: there is no room", route.number, of_disk=True))
        return turn

    def _group_of(self, route: Route) -> int | None:
        """Return the turn that began from the same state: the group's first, or one whose reply is kept."""
        answer = next((mate.answer for mate in self.run.state.mates(route) if mate.answer is not None), None)
        return answer if answer is not None else self.run.group


def _for_part(member: Member, route: Route) -> Member:
    """Adapt the member to the part of a route: a fresh vendor session, unless the part continues the last one."""
    return replace(member, memory="fresh") if route.part and not route.part.continues else member


def cut_warnings(turn: Turn, prompt: BuiltPrompt, request: ConversationMessage) -> Iterator[str]:
    """List the messages and images that a turn's prompt lacks, and say why a custom command stays text."""
    trimmed = turn.setup.trimmed
    if (turn.setup.fresh_because or "").startswith(LOST):
        yield f"{turn.member} begins a fresh session: {turn.setup.fresh_because}"
    if turn.setup.lost:
        lost = f"{turn.member}'s session has lost its {turn.setup.lost_in_words}, beside which somebody continued it"
        yield f"{lost}; it is shown the messages again (teamchat open {turn.member} continues it without loss)"
    if prompt.slash and prompt.slash.refused:
        yield f"{turn.member} gets it as text: {turn.setup.slash}"
    if prompt.left_out:
        yield f"{turn.member} gets nothing of {', '.join(prompt.left_out)}: there is no room (max_bytes)"
    if prompt.unseen:
        none = "host gets no images" if turn.setup.host else "CLI takes no images"
        yield f"{turn.member}'s {none}: it gets only the name of {', '.join(prompt.unseen)}"
    for message, gone in ((prompt.answers, trimmed.message_bytes), (request, trimmed.request_bytes)):
        if gone:
            whose = f"{message.speaker.role_name}'s message {message.id}"
            if gone < byte_length(quoted_text(message).strip()):
                yield f"{turn.member} gets {whose} without {gone:,} bytes of its middle (max_bytes)"
            else:
                yield f"{turn.member} gets nothing of {whose}: its {gone:,} bytes are left out (max_bytes)"


def new_turn(session: int, route: int | None, planned: ReadyTurn, folder: Path) -> NewTurn:
    """Build the row of a turn that starts now. `route` is None for a side turn."""
    return NewTurn(
        session=session,
        route=route,
        member=planned.member.name,
        agent=planned.agent.name,
        protocol=planned.agent.protocol,
        system_text=pack(system.encode()) if (system := planned.prompt.system_text) else None,
        prompt=pack(planned.prompt.prepared.stdin),
        shown_through=planned.prompt.shown_through,
        setup=planned.setup,
        folder=folder,
    )


def _kind(result: Answer | NoAnswer) -> FailureKind | None:
    if isinstance(result, NoAnswer):
        return FailureKind.MISSING if isinstance(result.error, AgentMissing) else None
    failure = result.finished.outcome.failure
    return failure.kind if failure else None


def passed_over(target: Member, member: Member) -> str:
    """Say why a fallback is asked before the target."""
    return f"{target.name}'s agent cools down after a rate limit; {_fallback(member, target)}"


def _fallback(member: Member, target: Member) -> str:
    return f"{member.name} {'is asked anyway' if member is target else 'answers as its fallback'}"


class Again(Enum):
    """How the member's turn runs again, in words."""

    GONE = "begins a fresh session with the full context"  # the vendor session that it resumes is gone
    UNREPORTED = "each further turn gets its own process"  # the kept process ended without reporting the turn
    ELSEWHERE = "another host is asked"  # the host did not begin the turn because of a rate limit
    RETRY = "tries again"  # the failure may pass by itself


def _why_again(result: Answer | NoAnswer, member: Member, tries: int) -> Again | None:
    if isinstance(result, NoAnswer):
        return None
    if _session_gone(result):
        return Again.GONE
    if _unreported(result):
        return Again.UNREPORTED
    if _limited(result):
        return Again.ELSEWHERE
    if _lost(result) and member.rerun:
        return Again.RETRY if tries < max(1, member.retries) else None
    passes = _kind(result) in RETRYABLE and not result.finished.interrupted
    return Again.RETRY if passes and tries < member.retries else None


def _session_gone(answer: Answer) -> bool:
    """Whether the vendor session that the turn resumes is gone."""
    setup = answer.turn.setup
    return _kind(answer) is FailureKind.GONE and (setup.resumes or setup.adopted) is not None


def _lost(answer: Answer) -> bool:
    """Whether the turn's host disappeared during the turn."""
    ran = answer.finished.outcome.ran
    return ran is not None and ran.gone != ""


def _limited(answer: Answer) -> bool:
    """Whether a host did not begin the turn because it had met a rate limit before."""
    ran = answer.finished.outcome.ran
    return _kind(answer) is FailureKind.RATE_LIMIT and ran is not None and not ran.executor


def _unreported(answer: Answer) -> bool:
    """Whether a kept process ended without reporting the end of the turn."""
    return answer.finished.unreported and _kind(answer) is FailureKind.AGENT


def _interrupted(result: Answer | NoAnswer) -> bool:
    """Whether the turn was stopped from outside: it then gets neither a retry nor a fallback."""
    return isinstance(result, Answer) and result.finished.interrupted


def _reason(result: Answer | NoAnswer) -> str:
    if isinstance(result, NoAnswer):
        return str(result.error)
    failure = result.finished.outcome.failure
    return f"{result.member.name} {failure.reason if failure else ''}"
