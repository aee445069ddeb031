"""The coordinator performs what the engine decides: it stores messages, has turns run and stores what came of them.

It holds no rule of its own. Every step is one transaction: the message, the queue after it and the turn are written
together, so a process that is killed between two steps leaves a conversation that `resume` can go on with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from teamchat.core.context.context_manager import TASK_CUT, manager_of
from teamchat.core.context.layers.sources import collector_of
from teamchat.core.conversation.addressing import Addressed, address
from teamchat.core.conversation.conclusion import conclude, conclude_error
from teamchat.core.conversation.grouping import run_together
from teamchat.core.conversation.lessons import find_lessons, learner_of
from teamchat.core.conversation.posting import Posted, Posting
from teamchat.core.conversation.recovery import clean_turns, kept_turns, recover_turns
from teamchat.core.conversation.rules import rules_of
from teamchat.core.conversation.summary import Summariser, summariser_of
from teamchat.core.engine.actions import (
    Action,
    Deliver,
    Dropped,
    NotDropped,
    Paused,
    Queued,
    Refused,
    RunGroup,
    RunTurn,
)
from teamchat.core.engine.decide import decide
from teamchat.core.engine.events import (
    Event,
    GroupDelivered,
    GroupRan,
    MemberAnswered,
    Recovered,
    Resumed,
    ResumeMode,
    StopRequested,
    TurnEnded,
)
from teamchat.core.engine.guards import budget_guard, guard
from teamchat.core.engine.state import Route, RouteStatus, State
from teamchat.core.errors import ExitCode, NoRecording, NothingToResume, StoreError, TeamchatError, UsageError
from teamchat.core.messages import well_formed
from teamchat.core.routing.todos import Noted
from teamchat.core.store.database import Database
from teamchat.core.store.image_values import Image
from teamchat.core.store.routes import load_state, save_state
from teamchat.core.store.turns import Turn, deliver_turn, events_of, get_turn, partial_of
from teamchat.core.team.team import Member, Team
from teamchat.core.text.commands import saying
from teamchat.core.turn.attempts import Answer, Attempts, NoAnswer, trace_of
from teamchat.core.turn.events import (
    Conclusion,
    ConversationEvent,
    MessageStored,
    Replied,
    RouteDropped,
    RouteQueued,
    RouteRefused,
    TodoChanged,
    Warned,
)
from teamchat.core.turn.host import REAL, Host
from teamchat.core.turn.live_pool import LivePool
from teamchat.core.turn.tally import Tally, TurnFailure
from teamchat.core.turn.vendor_limits import Cooldowns
from teamchat.runners.events import Question
from teamchat.runners.process.supervisor import Stopper


class ConversationCoordinator:
    """Runs one session. The caller holds the session's lock, and calls `recover` first.

    `folder` is where running turns keep their output; `emit` is told of everything as it happens. When its `manager` is
    cleared or takes over a snapshot, it goes over to the new session. What waits in the old one stays there, and
    `close` ends the old one's processes too. From then on the caller needs the new session's lock.
    """

    def __init__(
        self,
        team: Team,
        db: Database,
        session: int,
        *,
        folder: Path,
        stopper: Stopper,
        emit: Callable[[ConversationEvent], None],
        host: Host = REAL,
        cooldowns: Cooldowns | None = None,
    ) -> None:
        self.team, self.db, self.stopper, self.emit = team, db, stopper, emit
        self.host, self._folder, self._cooldowns = host, folder, cooldowns
        self.manager = manager_of(team, db, session, self._open)
        self.tally = Tally()
        self._living: list[LivePool] = []
        self._open(session)

    def _open(self, session: int) -> None:
        """Go on with that session, in which the manager is already."""
        self.session = session
        self.collector = self.host.collected(collector_of(self.team, self.db, session))
        self.saying = Posting(self.team, self.db, session, self.manager, self.emit, self.host.now)
        self.state: State = load_state(self.db, session, rules_of(self.team))
        self.answering = Attempts(
            self.team,
            self.db,
            session,
            self.manager,
            self.collector,
            self._folder,
            self.stopper,
            self.emit,
            self.host,
            transaction=self._transaction,
            note=self._decide,
            tally=self.tally,
            budget=self._budget,
            guard=self._guard,
            cooldowns=self._cooldowns,
        )
        self._living.append(self.answering.living)
        self.compacting = Summariser(self.answering)

    def recover(self) -> None:
        """Close what a killed process has left open. Nobody else may be running the session."""
        self._take_in()
        notes = clean_turns(self.db, self.session, self.answering.folder)
        for note in (*recover_turns(self.db, self.session, self.answering.folder), *notes):
            self.emit(Warned(note))
        for action in self._step(Recovered(self.host.now())):
            self._tell(action)

    def _take_in(self) -> None:
        """Store how turns have ended where an earlier command could not, each as if it had just ended."""
        for turn, finished in kept_turns(self.db, self.session, self.answering.folder):
            route = next((route for route in self.state.queue if route.number == turn.route), None)
            if route is None:
                continue
            self.emit(Warned(f"turn {turn.number} ({turn.member}) had ended, and is stored now"))
            answer = Answer(route, self._speaker(turn), turn, finished, self.host.scratch(turn.folder))
            if len(self.state.mates(route)) > 1:
                self._end_of_member(answer)
            else:
                self._end_turn(answer)

    async def send(
        self,
        text: str,
        *,
        speaker: str | None = None,
        to: str | None = None,
        images: Sequence[Image] = (),
        typed: int = 0,
    ) -> Conclusion:
        """Store a person's message and follow the routing until nobody is left to speak, or something stops it.

        `speaker` and `to` are as for `address`, whose errors are raised before anything is stored. The person typed
        the first `typed` characters.
        """
        addressed = self.address(text, speaker=speaker, to=to)
        for problem in addressed.problems:
            self.emit(Warned(problem))
        actions = self.store(addressed, images, len(well_formed(text[:typed])))
        return await self._follow(actions)

    def address(self, text: str, *, speaker: str | None = None, to: str | None = None, typed: int = 0) -> Addressed:
        """What a person's message would ask for here; nothing is stored."""
        opens = self.manager.get_current_message() is None
        return address(text, self.team, self.state, speaker=speaker, to=to, opens=opens, typed=typed)

    def store(self, addressed: Addressed, images: Sequence[Image] = (), typed: int = 0) -> tuple[Action, ...]:
        """Store a person's message and queue what it asks for."""
        with self._transaction():
            said = self.saying.person(addressed, images, typed)
            actions = self._decide(said.event)
        if addressed.task is not None and self.manager.get_team_task() != addressed.task:
            self.emit(Warned(TASK_CUT))
        self.emit(MessageStored(said.message))
        self._tell_todos(said.noted)
        return actions

    def _tell_todos(self, noted: Noted, who: str = "") -> None:
        for change in noted.changes:
            self.emit(TodoChanged(change))
        for problem in noted.problems:
            self.emit(Warned(f"{who}{problem}"))

    async def resume(self, mode: ResumeMode) -> Conclusion:
        """Go on with what was held. Raises `NothingToResume` when the queue is empty."""
        if self.tally.turns and not self.state.queue:  # all there was to do was to store it
            return self.tally.conclusion(self.state, ExitCode.DONE)
        if not self.state.queue:
            raise NothingToResume("nothing waits in this conversation", saying())
        return await self._follow(self._step(Resumed(self.host.now(), mode)))

    async def compact(self, name: str | None = None) -> Conclusion:
        """Have a member, the team's `compactor` where none is named, sum up what was said before the newest message.

        Raises `UsageError` where there is nobody or nothing to sum up, and `UnknownName`.
        """
        member = summariser_of(self.team, name)
        if not self.compacting.left():
            raise UsageError("there is nothing to sum up: the newest message is quoted as it is", "teamchat log")
        while self.compacting.left():
            result = await self.compacting.sum_up(member)
            if isinstance(result, TurnFailure):
                return self.tally.conclusion(self.state, result.code, result.reason, result.hint)
            self.tally.text = result.text
        return self.tally.conclusion(self.state, ExitCode.DONE)

    async def learn(self, name: str | None = None, keep_as: str | None = None) -> Conclusion:
        """Have a member, the `lead` where none is named, look for lessons; `find_lessons` says what `keep_as` is.

        Raises `UsageError` where there is nobody to ask or nothing to ask about, and `UnknownName`.
        """
        result = await find_lessons(self.answering, learner_of(self.team, name), keep_as)
        if isinstance(result, TurnFailure):
            return self.tally.conclusion(self.state, result.code, result.reason, result.hint)
        self.tally.text = "\n".join(result.found)
        return self.tally.conclusion(self.state, ExitCode.DONE)

    async def close(self) -> None:
        """End the processes that have stayed for further turns."""
        for living in self._living:
            for problem in await living.close():
                self.emit(Warned(problem))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, of what is stored and of `state`."""
        before = self.state
        try:
            with self.db.transaction():
                yield
        except BaseException:
            self.state = before
            raise

    def _step(self, event: Event) -> tuple[Action, ...]:
        with self._transaction():
            return self._decide(event)

    def _decide(self, event: Event) -> tuple[Action, ...]:
        """Let the engine decide, and save the state that it comes to; part of the caller's transaction."""
        old = self.state
        self.state, actions = decide(old, event)
        dropped = [action.route for action in actions if isinstance(action, Dropped)]
        save_state(self.db, self.session, old, self.state, dropped)
        return actions

    async def _follow(self, actions: tuple[Action, ...]) -> Conclusion:
        """Perform action after action until one says that it ends here."""
        while True:
            for action in actions[:-1]:
                self._tell(action)
            last = actions[-1]
            if not isinstance(last, RunTurn | RunGroup | Deliver):
                return conclude(self.tally, self.state, last, len(self.team.humans))
            try:
                stopped = self.answering.stopped() and not isinstance(last, Deliver)
                actions = self._step(StopRequested(self.host.now())) if stopped else await self._perform(last)
            except NoRecording:
                raise  # there is nothing to resume in a replay
            except TeamchatError as error:  # the store failed, or the team has changed: what ran is held
                self._hold_all(stored=not isinstance(error, StoreError))
                return conclude_error(self.tally, self.state, error)

    def _hold_all(self, *, stored: bool) -> None:
        """Where the store cannot be written, the next process finds what ran, and holds it in the same way."""
        stopped = StopRequested(self.host.now())
        if stored:
            self._step(stopped)
        else:
            self.state = decide(self.state, stopped)[0]

    async def _perform(self, action: RunTurn | RunGroup | Deliver) -> tuple[Action, ...]:
        match action:
            case RunTurn(route=route):
                paused = await self._sum_up(route.as_of)
                return (paused,) if paused else await self._turn(route)
            case RunGroup(routes=routes):
                paused = await self._sum_up(routes[0].as_of)
                return (paused,) if paused else await self._group(routes)
            case Deliver(routes=routes):
                return self._deliver(routes)

    async def _sum_up(self, up_to: str | None) -> Paused | None:
        """Summarise before the prompt if the history is too long.

        Returns the budget guard if that used the budget up; the queue is then on hold.
        """
        await self.compacting.when_due(up_to)
        paused = budget_guard(self.state)
        if paused:
            self._step(StopRequested(self.host.now()))
        return paused

    def _tell(self, action: Action) -> None:
        match action:
            case Queued(route=route):
                self.emit(RouteQueued(route))
            case Dropped(route=route, left=left):
                if left:
                    self.emit(Warned(f"{route.target}, whom {route.by} asked, is no longer in the team"))
                self.emit(RouteDropped(route))
            case NotDropped(route=route, agent=agent):
                self.emit(Warned(f"{agent} cannot drop {route.target}, whom {route.by} called in {route.parent}"))
            case Refused(route=route, limit=limit):
                self.emit(RouteRefused(route, limit))
            case _:
                pass

    async def _turn(self, route: Route) -> tuple[Action, ...]:
        """One member's turn: its reply, its receipt, its route and the new queue are stored all at once."""
        answer = await self.answering.answer(route)
        if isinstance(answer, NoAnswer):
            self.tally.fail(route, answer.error)
            return self._step(TurnEnded(self.host.now(), route.number, None))
        return self._end_turn(answer)

    def _end_turn(self, answer: Answer) -> tuple[Action, ...]:
        finished, left = answer.finished, trace_of(answer.finished)

        def write() -> tuple[Posted[TurnEnded] | None, tuple[Action, ...]]:
            heard = None if finished.outcome.failure else self.saying.hear((answer.member, finished.text))[0]
            with self._transaction():
                asked = bool(finished.questions)
                reply = self.saying.reply(heard, answer.turn, answer.route, asked=asked) if heard else None
                self.answering.end(answer, left, reply=reply.message.id if reply else None)
                ended = reply.event if reply else TurnEnded(self.host.now(), answer.route.number, None)
                return reply, self._decide(ended)

        reply, actions = self.answering.stored(answer, write)
        if reply:
            self._tell_reply(answer.turn, reply)
        self.answering.told(answer, reply.message.id if reply else None)
        return actions

    def _budget(self) -> float | None:
        """What each that runs may use of it, in US dollars: never nothing, which no CLI takes for a limit."""
        limit = self.team.limits.cost_usd
        running = sum(route.status is RouteStatus.RUNNING for route in self.state.queue)
        return None if limit is None else max((limit - self.state.cost_usd) / max(running, 1), 0.0001)

    def _guard(self) -> Paused | None:
        """The limit that lets no further turn begin, nor one be tried again, of those that the engine has begun."""
        return guard(self.state, self.host.now())

    async def _group(self, routes: tuple[Route, ...]) -> tuple[Action, ...]:
        """The turns of a group at the same time; each is stored when it is over, the replies once all are."""
        failed = await run_together(self.team, routes, self._member_of_group, self.emit, lambda: self._guard() is None)
        return self._step(GroupRan(self.host.now(), failed))

    async def _member_of_group(self, route: Route) -> bool:
        """Whether the member has its reply, which its turn keeps."""
        answer = await self.answering.answer(route)
        if isinstance(answer, NoAnswer):
            self.tally.fail(route, answer.error)
            return False
        return self._end_of_member(answer)

    def _end_of_member(self, answer: Answer) -> bool:
        failed, left = answer.finished.outcome.failure is not None, trace_of(answer.finished, with_text=True)

        def write() -> None:
            with self._transaction():
                self.answering.end(answer, left, kept=not failed)
                if not failed:
                    self._decide(MemberAnswered(self.host.now(), answer.route.number, answer.turn.id))

        self.answering.stored(answer, write)
        self.answering.told(answer)
        return not failed

    def _deliver(self, routes: tuple[Route, ...]) -> tuple[Action, ...]:
        """The replies that a group's turns have kept become messages, in the order in which the members were named."""
        replies: list[tuple[Turn, Posted[TurnEnded]]] = []
        turns = [get_turn(self.db, route.answer) for route in routes if route.answer is not None]
        heard = self.saying.hear(*((self._speaker(turn), partial_of(self.db, turn)) for turn in turns))
        asked = {turn.id for turn in turns if _asked_its_user(self.db, turn)}
        with self._transaction():
            for route, turn, one in zip(routes, turns, heard, strict=True):
                reply = self.saying.reply(one, turn, route, asked=turn.id in asked)
                deliver_turn(self.db, turn, reply.message.id)
                replies.append((turn, reply))
            actions = self._decide(GroupDelivered(self.host.now(), tuple(reply.event for _, reply in replies)))
        for turn, reply in replies:
            self._tell_reply(turn, reply)
        return actions

    def _speaker(self, turn: Turn) -> Member:
        """The agent that has had the turn; it may have left the team since, or have become a person."""
        there = (member for member in self.team.ai_members if member.name == turn.member)
        return next(there, Member(turn.member, "ai", self.team.root))

    def _tell_reply(self, turn: Turn, reply: Posted[TurnEnded]) -> None:
        self.tally.said(reply.message)
        self.emit(Replied(turn, reply.message))
        self._tell_todos(reply.noted, f"{reply.message.speaker.role_name}: ")


def _asked_its_user(db: Database, turn: Turn) -> bool:
    return any(event.type == Question.__name__ for event in events_of(db, turn))
