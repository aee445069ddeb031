"""The coordinator carries out the engine's decisions: it stores messages, runs turns and stores their replies.

It holds no rule of its own. Every step is one transaction: the message, the queue after it and the turn are written
together. A process that is killed between two steps leaves a conversation that `resume` can continue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from teamchat.core.check import Check
from teamchat.core.context.conversation_view import ContextManager
from teamchat.core.conversation.addressing import Addressed, address, address_task
from teamchat.core.conversation.conclusion import conclude, conclude_error, conclude_side_turn, conclusion
from teamchat.core.conversation.inputs import Input, Message, Resume
from teamchat.core.conversation.posting import Parsed, Posted, Posting, Teller
from teamchat.core.conversation.recovery import clean_turns, kept_turns, recover_checks, recover_turns, refuse_on_hosts
from teamchat.core.conversation.typed_ahead import Outgoing, TypedAhead
from teamchat.core.conversation.waiting import named_by, waiting_in
from teamchat.core.engine.decide import decide
from teamchat.core.engine.events import (
    Action,
    Deliver,
    GroupDelivered,
    GroupRan,
    Idle,
    MemberAnswered,
    Moved,
    Paused,
    PauseKind,
    Recovered,
    Resumed,
    ResumeMode,
    RunCheck,
    RunGroup,
    RunTurn,
    Spent,
    StopRequested,
    TurnEnded,
)
from teamchat.core.engine.guards import budget_guard
from teamchat.core.engine.state import Route, State
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.engine.workflow import Done, Process
from teamchat.core.errors import ExitCode, NoRecording, NothingToResume, StoreError, TeamchatError, UsageError
from teamchat.core.messages import well_formed
from teamchat.core.routing.requests import quoted
from teamchat.core.store.database import Database
from teamchat.core.store.turn_events import stored_events
from teamchat.core.store.turns import Turn, deliver_turn, get_turn, last_turn_of, partial_of, prompts_of, running_turns
from teamchat.core.store.unsent import handed_over_to, is_unsent, mark_sent, remove_unsent
from teamchat.core.store.usage import used_meanwhile
from teamchat.core.team.team import Member
from teamchat.core.text.commands import saying
from teamchat.core.turn.attempts import Answer, Attempts, NoAnswer
from teamchat.core.turn.ending import Written, close_turn
from teamchat.core.turn.execution import FinishedTurn
from teamchat.core.turn.run import NOBODY, RESUME, Apart, Run, TurnFailure
from teamchat.core.turn.run_events import Conclusion, Warned
from teamchat.core.turn.watching import in_thread
from teamchat.runners.agent_events import Question
from teamchat.runners.child.guardians import GUARDIANS

if TYPE_CHECKING:
    from teamchat.core.conversation.summary import Summariser

_Replied = tuple[Posted[TurnEnded], tuple[Action, ...]]
"""A stored reply, and the engine's next action."""


class ConversationCoordinator:
    """Runs one session of a team. The caller holds the session's lock and calls `recover` before anything else.

    `close` ends the processes of members with the memory "live"; call it in a `finally`.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self._lost: str | None = None  # why a turn has no end that went on at a host
        self._answered: list[Done] = []  # members of the running group that answered, where a quorum may be enough
        self.posting, self.attempts = Posting(run), Attempts(run)
        self.teller = Teller(run)
        self.typed_ahead = TypedAhead(run, self._store_unsent, partial(self.teller.waits, "on hold"))

    @cached_property
    def summariser(self) -> Summariser:
        """Has members summarise the conversation."""
        from teamchat.core.conversation.summary import Summariser

        return Summariser(self.run)

    @property
    def manager(self) -> ContextManager:
        """Reads the messages and the task."""
        return self.run.manager

    @property
    def session(self) -> int:
        """The number of the session in the store."""
        return self.run.session

    @property
    def state(self) -> State:
        """The queue and the counters, as they are stored."""
        return self.run.state

    async def rejoin(self) -> None:
        """Follow turns on hosts that went on without this program to their ends. Call `recover` after it.

        Raises `HostUnavailable` where they cannot be asked, unless the run lets go of them.
        """
        if self._on_hosts():
            from teamchat.core.conversation.rejoining import rejoin

            self._store_kept_turns()
            self._lost = await rejoin(self.run, self._end_late)

    def _on_hosts(self) -> list[Turn]:
        """List the turns that run on hosts, as far as the store knows."""
        return [turn for turn in running_turns(self.run.db, self.run.session) if turn.setup.host]

    def recover(self, *, rejoined: bool = False) -> None:
        """Close turns that a killed process left open. No other process may run the session.

        Raises `SessionBusy` for a turn that may go on at a host, unless those were `rejoined`.
        """
        run = self.run
        self._store_kept_turns()
        if not rejoined:
            refuse_on_hosts(run.db, run.session)
        lost = used_meanwhile(run.db, run.session)  # tokens of killed turns
        if lost.turns:
            run.step(Spent(run.machine.now(), lost.tokens, lost.cost_usd, lost.turns))
        notes = clean_turns(run.db, run.session, run.folder)
        checks = recover_checks(run.db, run.session, run.folder, run.trees)
        for note in (*recover_turns(run.db, run.session, run.folder, run.trees), *checks, *notes):
            run.emit(Warned(note))
        for action in run.step(Recovered(run.machine.now())):
            self.teller.action(action)

    def _store_kept_turns(self) -> None:
        """Store the ends of turns that an earlier command could not store, each as if it had just ended."""
        run = self.run
        for turn, finished in kept_turns(run.db, run.session, run.folder):
            route = next((route for route in run.state.queue if route.number == turn.route), None)
            if route is None:
                continue
            failure = finished.outcome.failure
            had = f"had failed ({failure.reason})" if failure else "had finished"
            run.emit(Warned(f"turn {turn.number} ({turn.member}) {had} and is stored now"))
            self._end_late(turn, finished)

    def _end_late(self, turn: Turn, finished: FinishedTurn) -> None:
        """End a turn that another process began, as if it had just ended."""
        run = self.run
        route = next(route for route in run.state.queue if route.number == turn.route)
        run.tally.process = run.tally.process or route.part is not None
        answer = Answer(turn, finished, run.machine.scratch(turn.folder), route, self._speaker(turn))
        if len(run.state.mates(route)) > 1:
            self._end_of_member(answer)
        else:
            self._end_turn(answer)

    def run_input(self, given: Input) -> Coroutine[Any, Any, Conclusion]:
        """Store a person's message, or continue what is on hold; then follow the routing until something stops it.

        Raises what `address` does, for the task of a process also what `check_process` and `need_worktrees` do, and
        `NothingToResume`, before anything is stored.
        """
        if isinstance(given, Resume):
            return self._resume(given)
        return self._begin(given, given.process) if given.process else self._follow(self._say(given))

    async def _begin(self, message: Message, process: Process) -> Conclusion:
        """Begin a process with its task."""
        from teamchat.core.conversation.processes import check_process, need_no_mapreduce, need_one_tree, need_worktrees

        run = self.run
        check_process(run.state, process)
        need_no_mapreduce(run.db, run.caller, process)
        if run.machine.live:  # a replay has no worktrees
            await in_thread(partial(need_worktrees, run.team, run.trees.folder, run.session, process))
            await in_thread(partial(need_one_tree, run.team, run.trees.folder, process))
        return await self._follow(self._say(message))

    def _say(self, message: Message) -> tuple[Action, ...]:
        run, addressed = self.run, self.address(message, refuse=False)
        for problem in addressed.problems:
            run.emit(Warned(problem))
        question = run.state.answered_by(addressed.speaker.role_name)
        run.tally.process = bool(message.process or (question and question.part))
        return self.store(addressed, message)

    def address(self, message: Message, *, refuse: bool = True) -> Addressed:
        """Address a person's message in this session, as `address` does. Nothing is stored."""
        run = self.run
        if message.process:
            return address_task(message.text, run.team, speaker=message.speaker, caller=run.speaker)
        return address(
            message.text,
            run.team,
            run.state,
            speaker=message.speaker,
            to=message.to,
            opens=run.manager.get_current_message() is None,
            typed=message.typed_through,
            pasted=message.pasted,
            refuse=refuse,
            caller=run.speaker,
        )

    async def send_unsent(self, own: int | None = None) -> Conclusion:
        """Send what people typed and no run has sent yet, in order, and follow the routing as `send` does.

        `own` is the number of a message that was handed over, and that this process itself is to send. Raises the
        reason why it cannot be sent, as `send` does.
        """
        self.typed_ahead.own = own
        ended = await self._follow((Idle(),))
        if own is not None and (error := self.typed_ahead.refused.get(own)) and remove_unsent(self.run.db, own):
            raise error
        return ended

    def store(self, addressed: Addressed, message: Message) -> tuple[Action, ...]:
        """Store a person's message and queue what it asks for, or what the process that it begins asks for."""
        run, typed = self.run, len(well_formed(message.text[: message.typed_through]))
        with run.transaction():
            posted = self.posting.message(addressed, message.images, typed, process=message.process)
            actions = run.decide(posted.event)
        self.teller.stored(addressed, posted)
        self.teller.heard(posted.message.id)
        return actions

    def _store_unsent(self, out: Outgoing) -> tuple[Action, ...]:
        """Store a kept message and remove it from the kept ones in one step; return () if the person has removed it."""
        run, addressed, unsent = self.run, out.addressed, out.unsent
        with run.transaction():
            if not is_unsent(run.db, unsent.id):
                return ()
            typed = len(well_formed(unsent.text[: unsent.typed]))
            posted = self.posting.message(addressed, out.images, typed, answers=out.answers)
            mark_sent(run.db, unsent, posted.message.id)
            aside = run.hand.replaced_by(run.session, unsent.id, unsent.at) if run.hand else ()
            actions = run.decide(replace(posted.event, aside=aside, goes_on=run.tally.process))
        for problem in addressed.problems:
            run.emit(Warned(problem))
        by_others = unsent.handed_over and unsent.id != self.typed_ahead.own
        self.teller.stored(addressed, posted, by_others=by_others)
        self.teller.heard(posted.message.id)
        self.teller.aside(actions)
        return actions

    async def _resume(self, given: Resume) -> Conclusion:
        run, mode, only = self.run, given.mode, given.only
        if given.message is not None:
            only = named_by(waiting_in(run.db, run.session), given.message)
        if run.tally.turns and not run.state.queue:  # the only thing left was to store a kept turn
            return conclusion(run, ExitCode.DONE)
        waiting = handed_over_to(run.db, run.session) if run.takes_over else ()
        if mode is ResumeMode.DROP and only is None:
            for unsent in waiting:
                if remove_unsent(run.db, unsent.id):
                    run.emit(Warned(f"dropped before it was sent: {quoted(unsent.text)}"))
        if self._lost and mode is ResumeMode.RETRY and only is None:
            return conclusion(run, ExitCode.INTERRUPTED, self._lost, RESUME, paused=PauseKind.INTERRUPTED)
        if not run.state.queue and waiting:
            return await self.send_unsent() if mode is not ResumeMode.DROP else conclusion(run, ExitCode.DONE)
        if not run.state.queue:
            raise NothingToResume("nothing is waiting in this conversation", saying())
        if mode is not ResumeMode.DROP and only is None and run.state.aside == run.state.queue:
            aside = waiting_in(run.db, run.session)
            hints = f"{RESUME} {aside[0].message}\n{RESUME} --drop"
            raise NothingToResume(f"nothing is on hold; set aside: {', '.join(map(str, aside))}", hints)
        calls = tuple(route for route in run.state.queue if route.part)
        run.tally.process = run.tally.process or bool(calls)
        if calls and run.state.process:
            run.emit(Moved(run.state.process, calls))
        return await self._follow(run.step(Resumed(run.machine.now(), mode, only)))

    async def summarise(self, name: str | None = None) -> Conclusion:
        """Have a member summarise the conversation before the newest message: by default the team's `compactor`.

        Raises `UnknownName`, and `UsageError` when there is nobody to ask or nothing to summarise.
        """
        from teamchat.core.conversation.summary import summariser_of

        member = summariser_of(self.run.team, name)
        if not self.summariser.pending():
            raise UsageError("there is nothing to summarise: prompts quote the newest message as it is", "teamchat log")
        while self.summariser.pending():
            result = await self.summariser.summarise(member)
            if isinstance(result, TurnFailure):
                return conclude_side_turn(self.run, result)
            self.run.tally.end_with(result.text)
        return conclusion(self.run, ExitCode.DONE)

    async def learn(self, name: str | None = None, keep_as: str | None = None) -> Conclusion:
        """Have a member, by default the `lead`, look for lessons; `keep_as` is as for `find_lessons`.

        Raises `UnknownName`, and `UsageError` when there is nobody to ask or nothing to ask about.
        """
        from teamchat.core.conversation.lessons import find_lessons, learner_of

        result = await find_lessons(self.run, learner_of(self.run.team, name), keep_as)
        if isinstance(result, TurnFailure):
            return conclude_side_turn(self.run, result)
        self.run.tally.end_with("\n".join(result.found))
        return conclusion(self.run, ExitCode.DONE)

    async def check(self, checks: Sequence[Check]) -> Conclusion:
        """Run checks by hand, without any turn."""
        from teamchat.core.conversation.checking import run_by_hand

        return await run_by_hand(self.run, checks)

    async def close(self) -> None:
        """End the processes that were kept for further turns, and remove old checkpoints."""
        run = self.run
        for problem in await run.live.close():
            run.emit(Warned(problem))
        if "hosting" in vars(run):
            await run.hosting.close()
        if run.trees.seen:
            for problem in await in_thread(partial(run.trees.prune, run.team.keep_checkpoints_s)):
                run.emit(Warned(problem))

    async def _follow(self, actions: tuple[Action, ...]) -> Conclusion:
        """Perform the engine's actions until one ends the run."""
        run, before = self.run, self.run.state
        with self.typed_ahead.taking():
            while True:
                for action in actions[:-1]:
                    self.teller.action(action)
                last = actions[-1]
                try:
                    if changed := self.typed_ahead.between_turns(last, before):
                        actions = changed
                        continue
                    if not isinstance(last, RunTurn | RunCheck | RunGroup | Deliver):
                        if self.typed_ahead.may_end(last):
                            await self.teller.to_merge()
                            return conclude(run, last)
                        actions = (last,)
                        continue
                    before = run.state
                    stopped = run.stopped() and not isinstance(last, Deliver)
                    actions = run.step(StopRequested(run.machine.now())) if stopped else await self._performance(last)
                except NoRecording:
                    raise  # there is nothing to resume in a replay
                except TeamchatError as error:  # the store failed, or the team has changed
                    stop = StopRequested(run.machine.now())
                    if isinstance(error, StoreError):  # the next process finds what ran and holds it in the same way
                        run.state = decide(run.state, stop)[0]
                    else:
                        run.step(stop)
                    return conclude_error(run, error)

    def _performance(self, action: RunTurn | RunCheck | RunGroup | Deliver) -> Awaitable[tuple[Action, ...]]:
        match action:
            case RunTurn(route=route):
                return self._turn(route)
            case RunCheck(route=route):
                from teamchat.core.conversation.checking import run_check  # only `teamchat run until` has checks

                return run_check(self.run, route)
            case RunGroup(routes=routes, jobs=jobs):
                return self._group(routes, jobs)
            case Deliver(routes=routes):
                return self._deliver(routes)

    async def _summarise_if_due(self, up_to: str | None) -> Paused | None:
        """Summarise before the prompt if the history is too long.

        Returns the budget guard if that used the budget up; the queue is then on hold.
        """
        if self.run.team.compactor is not None:
            await self.summariser.summarise_if_due(up_to)
        paused = budget_guard(self.run.state)
        if paused:
            self.run.step(StopRequested(self.run.machine.now()))
        return paused

    async def _turn(self, route: Route) -> tuple[Action, ...]:
        """Run one member's turn. Its reply, receipt, route and the new queue are stored in one transaction."""
        run = self.run
        if paused := await self._summarise_if_due(route.as_of):
            return (paused,)
        if route.part and (route.group is not None or route.part.place):  # works where it would with its group
            run.apart = await self._apart((route,))
        try:
            answer = await self.attempts.answer(route)
        finally:
            run.apart = NOBODY
        if isinstance(answer, NoAnswer):
            run.tally.fail(route, answer.error)
            return run.step(TurnEnded(run.machine.now(), route.number, None, stopped=run.stopped()))
        self.teller.not_followed(answer)
        actions = self._end_turn(answer)
        if route.part is None:  # else the end of the process tells it
            await self.teller.not_merged(answer.turn)
        return actions

    def _end_turn(self, answer: Answer) -> tuple[Action, ...]:
        run, route = self.run, answer.route

        def fail() -> Written[tuple[Action, ...]]:
            return Written(run.decide(TurnEnded(run.machine.now(), route.number, None, stopped=run.stopped())))

        def prepare() -> Callable[[], Written[_Replied]]:
            prompts = partial(prompts_of, run.db, answer.turn)
            [parsed] = self.posting.parse((answer.member, answer.finished.text, route.part, prompts))
            parsed = self.posting.worked(parsed, route, answer.turn, answer.finished.outcome)
            return lambda: reply(parsed)

        def reply(parsed: Parsed) -> Written[_Replied]:
            posted = self.posting.reply(parsed, answer.turn, route, asked=bool(answer.finished.questions))
            return Written((posted, run.decide(posted.event)), posted.message.id)

        if answer.failed:
            return close_turn(run, answer, lambda: fail)
        return close_turn(run, answer, prepare, lambda ended: self.teller.reply(answer.turn, ended[0], route))[1]

    async def _group(self, routes: tuple[Route, ...], jobs: int | None) -> tuple[Action, ...]:
        """Run the turns of a group at the same time, at most `jobs`.

        Each is stored when it ends, the replies when all have ended.
        """
        from teamchat.core.conversation.grouping import in_lines, run_together
        from teamchat.core.conversation.side_by_side import side_by_side

        run = self.run
        if paused := await self._summarise_if_due(routes[0].as_of):
            return (paused,)
        run.group = None
        run.apart = await self._apart(routes)
        try:
            lines = in_lines(run.team, routes, run.apart)
            run.at_once = min(len(lines), jobs or len(lines))
            GUARDIANS.expect(len(routes))
            most = jobs if run.machine.live else None  # a replay has the order of the recorded run
            failed = await run_together(lines, self._member_of_group, run.emit, self._may_begin, most)
            if compared := await in_thread(partial(side_by_side, run, routes)):
                run.emit(compared)
            elif not any(route.part for route in routes):
                names = dict.fromkeys(route.target for route in routes)
                last = (last_turn_of(run.db, run.session, name) for name in names)
                await self.teller.not_merged(*filter(None, last))
        finally:
            run.group, run.apart, run.at_once = None, NOBODY, None
            self._answered.clear()
            enough, run.enough = run.enough and not run.stopped(), False
        return run.step(GroupRan(run.machine.now(), failed, stopped=run.stopped(), enough=enough))

    async def _apart(self, routes: tuple[Route, ...]) -> Apart:
        """Find members that get worktrees because others of their group may write, too, and members that get places."""
        from teamchat.core.conversation.side_by_side import apart_in

        return await in_thread(partial(apart_in, self.run, routes))

    def _may_begin(self, route: Route) -> bool:
        """Whether a turn of a group that has waited for another one may still begin."""
        return self.run.guard() is None and not self.run.enough and not self.run.stopped(route.target)

    async def _member_of_group(self, route: Route) -> bool:
        """Return whether the member has replied: run its turn, and keep the reply with the turn."""
        answer = await self.attempts.answer(route)
        if isinstance(answer, NoAnswer):
            self.run.tally.fail(route, answer.error)
            return False
        self.teller.not_followed(answer)
        ended = self._end_of_member(answer)
        if ended and self._is_enough(answer):
            self.run.stop_the_rest()
        return ended

    def _is_enough(self, last: Answer) -> bool:
        """Whether the answers so far, the `last` one included, decide the process of a group."""
        process = self.run.state.process
        if process is None or process.quorum is None or last.route.part is None:
            return False
        strategy, part = strategy_of(process.kind), last.route.part
        finding = strategy.read(process, part, last.finished.text, ())
        self._answered.append(Done(part, last.member.name, "", finding))
        return strategy.decided(replace(process, done=(*process.done, *self._answered)))

    def _end_of_member(self, answer: Answer) -> bool:
        run = self.run

        def keep() -> Written[None]:
            if not answer.failed:
                run.decide(MemberAnswered(run.machine.now(), answer.route.number, answer.turn.id))
            return Written(None)

        close_turn(run, answer, lambda: keep, success="answered", keep_text=True)
        return not answer.failed

    async def _deliver(self, routes: tuple[Route, ...]) -> tuple[Action, ...]:
        """Turn the kept replies of a group into messages, in the order of the members' names in the call."""
        run = self.run
        replies: list[tuple[Turn, Posted[TurnEnded]]] = []
        turns = [get_turn(run.db, route.answer) for route in routes if route.answer is not None]
        replied = zip(routes, turns, strict=True)
        parsed = self.posting.parse(
            *(
                (self._speaker(turn), partial_of(run.db, turn), route.part, partial(prompts_of, run.db, turn))
                for route, turn in replied
            )
        )
        heard = zip(parsed, routes, turns, strict=True)
        parsed = [self.posting.worked(addressed, route, turn, turn.outcome) for addressed, route, turn in heard]
        asked = {turn.id for turn in turns if _asked_its_user(run.db, turn)}
        with run.transaction():
            for route, turn, addressed in zip(routes, turns, parsed, strict=True):
                reply = self.posting.reply(addressed, turn, route, asked=turn.id in asked)
                deliver_turn(run.db, turn, reply.message.id)
                replies.append((turn, reply))
            actions = run.decide(GroupDelivered(run.machine.now(), tuple(reply.event for _, reply in replies)))
        for (turn, reply), route in zip(replies, routes, strict=True):
            self.teller.reply(turn, reply, route)
        return actions

    def _speaker(self, turn: Turn) -> Member:
        """Find the agent that had the turn, even if it has left the team since or has become a person."""
        team = self.run.team
        there = (member for member in team.ai_members if member.name == turn.member)
        return next(there, Member(turn.member, "ai", team.root))


def _asked_its_user(db: Database, turn: Turn) -> bool:
    return any(event.type == Question.__name__ for event in stored_events(db, turn.id))
