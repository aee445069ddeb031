"""The coordinator performs what the engine decides: it stores messages, has turns run and stores what came of them.

It holds no rule of its own. Every step is one transaction: the message, the queue after it and the turn are written
together, so a process that is killed between two steps leaves a conversation that `resume` can go on with.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from teamchat.assemblers.truncation import TruncationPolicy
from teamchat.core.actions import (
    Action,
    Asked,
    Deliver,
    Dropped,
    GroupFailed,
    Paused,
    Queued,
    Refused,
    RunGroup,
    RunTurn,
    TurnFailed,
)
from teamchat.core.addressing import Addressed, address, address_reply
from teamchat.core.answering import Answering, NoAnswer
from teamchat.core.compacting import Compacting, compactor_of
from teamchat.core.conclusion import Failed, Tally, conclude_error, conclude_failures, conclude_pause, conclude_waiting
from teamchat.core.context_manager import TASK_CUT, ContextManager
from teamchat.core.cooldowns import Cooldowns
from teamchat.core.engine import decide
from teamchat.core.engine_events import (
    Event,
    GroupDelivered,
    GroupRan,
    HumanSpoke,
    MemberAnswered,
    Recovered,
    Resumed,
    ResumeMode,
    Stopped,
    TurnEnded,
)
from teamchat.core.engine_state import Rules, State
from teamchat.core.errors import ExitCode, NoRecording, NothingToResume, StoreError, TeamchatError, UsageError
from teamchat.core.events import (
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
from teamchat.core.grouping import run_together
from teamchat.core.history import Summarised, no_summaries
from teamchat.core.layers.sources import collector_of
from teamchat.core.member_turn import REAL, Outside
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.novelty import says_nothing_new
from teamchat.core.recovery import clean_turns, recover_turns
from teamchat.core.route import Route
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import load_state, save_state
from teamchat.core.store.sessions import fence_key
from teamchat.core.store.summaries import summary_before
from teamchat.core.store.todos import note_todos
from teamchat.core.store.turns import Turn, deliver_turn, get_turn, partial_of
from teamchat.core.team import Member, Team
from teamchat.core.todos import Noted
from teamchat.runners.turn import Stopper

LOOK_BACK = 24  # messages in which a speaker's own last reply is looked for


def rules_of(team: Team) -> Rules:
    return Rules(
        ai=tuple(member.name for member in team.ai_members),
        humans=tuple(member.name for member in team.humans),
        lead=team.lead,
        max_turns=team.limits.turns,
        max_seconds=team.limits.minutes * 60,
        max_tokens=team.limits.tokens,
        max_cost_usd=team.limits.cost_usd,
        max_stale=2 * team.limits.rounds,
    )


def manager_of(team: Team, db: Database, session: int) -> ContextManager:
    def summarised(before: str) -> Summarised | None:
        summary = summary_before(db, session, before)
        return Summarised(summary.through, summary.kept) if summary else None

    return ContextManager(
        SqliteLog(db, session),
        context_window_size=team.context_window,
        max_bytes=team.max_bytes,
        target_bytes=TruncationPolicy(team.max_prompt_tokens, "tokens").byte_budget,
        per_message=TruncationPolicy(team.max_message_tokens, "tokens"),
        fence_key=fence_key(db, session) if team.fence else None,
        summaries=summarised if team.share_context else no_summaries,
    )


@dataclass(frozen=True, slots=True)
class _Reply:
    """What is stored of a turn's answer: the message, what it asks of the engine, and what it noted to do."""

    turn: Turn
    message: ConversationMessage
    ended: TurnEnded
    noted: Noted


class ConversationCoordinator:
    """Runs one session. The caller holds the session's lock, and calls `recover` first.

    `folder` is where running turns keep their output; `emit` is told of everything as it happens.
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
        outside: Outside = REAL,
        cooldowns: Cooldowns | None = None,
    ) -> None:
        self.team, self.db, self.session, self.stopper, self.emit = team, db, session, stopper, emit
        self.outside = outside
        self.manager = manager_of(team, db, session)
        self.collector = outside.collected(collector_of(team, db, session))
        self.tally = Tally()
        self.state: State = load_state(db, session, rules_of(team))
        self.answering = Answering(
            team,
            db,
            session,
            self.manager,
            self.collector,
            folder,
            stopper,
            emit,
            outside,
            transaction=self._transaction,
            note=self._decide,
            tally=self.tally,
            budget=self._budget,
            cooldowns=cooldowns,
        )
        self.compacting = Compacting(self.answering)

    def recover(self) -> None:
        """Close what a killed process has left open. Nobody else may be running the session."""
        for note in recover_turns(self.db, self.session):
            self.emit(Warned(note))
        clean_turns(self.db, self.answering.folder)
        self._step(Recovered(time.time()))

    async def send(self, text: str, *, speaker: str | None = None, to: str | None = None) -> Conclusion:
        """Store a person's message and follow the routing until nobody is left to speak, or something stops it.

        `speaker` and `to` are as for `address`, whose errors are raised before anything is stored.
        """
        addressed = self.address(text, speaker=speaker, to=to)
        for problem in addressed.problems:
            self.emit(Warned(problem))
        actions = self.store(addressed)
        return await self._follow(actions)

    def address(self, text: str, *, speaker: str | None = None, to: str | None = None) -> Addressed:
        """What a person's message would ask for here; nothing is stored."""
        opens = self.manager.get_current_message() is None
        return address(text, self.team, self.state, speaker=speaker, to=to, opens=opens)

    def store(self, addressed: Addressed) -> tuple[Action, ...]:
        """Store a person's message and queue what it asks for."""
        with self._transaction():
            message = self.manager.add_message(
                NewMessage(
                    addressed.text,
                    Speaker(addressed.speaker.name, addressed.speaker.name, addressed.speaker.title, type="human"),
                    Routing(addressed.names, addressed.markers),
                )
            )
            if addressed.task is not None:
                self._set_task(addressed.task)
            noted = note_todos(self.db, self.session, addressed.todos, addressed.speaker.name, message.id)
            spoke = HumanSpoke(
                time.time(),
                message.id,
                addressed.speaker.name,
                addressed.requests,
                addressed.drops,
                wordless=addressed.wordless,
            )
            actions = self._decide(spoke)
        self.emit(MessageStored(message))
        self._tell_todos(noted)
        return actions

    def _set_task(self, task: str) -> None:
        self.manager.set_team_task(task)
        if self.manager.get_team_task() != task:
            self.emit(Warned(TASK_CUT))

    def _tell_todos(self, noted: Noted, who: str = "") -> None:
        for change in noted.changes:
            self.emit(TodoChanged(change))
        for problem in noted.problems:
            self.emit(Warned(f"{who}{problem}"))

    async def resume(self, mode: ResumeMode) -> Conclusion:
        """Go on with what was held. Raises `NothingToResume` when the queue is empty."""
        if not self.state.queue:
            raise NothingToResume("nothing waits in this conversation", 'teamchat send "..."')
        return await self._follow(self._step(Resumed(time.time(), mode)))

    async def compact(self, name: str | None = None) -> Conclusion:
        """Have a member, the team's `compactor` where none is named, sum up what was said before the newest message.

        Raises `UsageError` where there is nobody or nothing to sum up, and `UnknownName`.
        """
        member = compactor_of(self.team, name)
        if not self.compacting.left():
            raise UsageError("there is nothing to sum up: the newest message is quoted as it is", "teamchat log")
        while self.compacting.left():
            result = await self.compacting.sum_up(member)
            if isinstance(result, Failed):
                return self.tally.conclusion(self.state, result.code, result.reason, result.hint)
            self.tally.text = result.text
        return self.tally.conclusion(self.state, ExitCode.DONE)

    async def close(self) -> None:
        """End the processes that have stayed for further turns."""
        await self.answering.living.close()

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
                return self._conclude(last)
            try:
                stopped = self.stopper.asked and not isinstance(last, Deliver)
                actions = self._step(Stopped(time.time())) if stopped else await self._perform(last)
            except NoRecording:
                raise  # there is nothing to resume in a replay
            except TeamchatError as error:  # the store failed, or the team has changed: what ran is held
                self._hold_all()
                return conclude_error(self.tally, self.state, error)

    def _hold_all(self) -> None:
        """Where the store can not be written, the next process finds what ran, and holds it in the same way."""
        stopped = Stopped(time.time())
        try:
            self._step(stopped)
        except StoreError:
            self.state = decide(self.state, stopped)[0]

    async def _perform(self, action: RunTurn | RunGroup | Deliver) -> tuple[Action, ...]:
        match action:
            case RunTurn(route=route):
                await self.compacting.when_due(route.as_of)
                return await self._turn(route)
            case RunGroup(routes=routes):
                await self.compacting.when_due(routes[0].as_of)
                return await self._group(routes)
            case Deliver(routes=routes):
                return self._deliver(routes)

    def _conclude(self, action: Action) -> Conclusion:
        match action:
            case TurnFailed(route=route):
                return conclude_failures(self.tally, self.state, (route,), alone=True)
            case GroupFailed(routes=routes, all_of_it=all_of_it):
                return conclude_failures(self.tally, self.state, routes, alone=False, all_of_it=all_of_it)
            case Asked(route=route):
                return conclude_waiting(self.tally, self.state, route, len(self.team.humans))
            case Paused(kind=kind, reason=reason):
                return conclude_pause(self.tally, self.state, kind, reason)
            case _:
                return self.tally.conclusion(self.state, ExitCode.DONE)

    def _tell(self, action: Action) -> None:
        match action:
            case Queued(route=route):
                self.emit(RouteQueued(route))
            case Dropped(route=route):
                self.emit(RouteDropped(route))
            case Refused(route=route, limit=limit):
                self.emit(RouteRefused(route, limit))
            case _:
                pass

    async def _turn(self, route: Route) -> tuple[Action, ...]:
        """One member's turn: its reply, its receipt, its route and the new queue are stored all at once."""
        answer = await self.answering.answer(route)
        if isinstance(answer, NoAnswer):
            self.tally.fail(route, answer.error)
            return self._step(TurnEnded(time.time(), route.number, None))
        reply: _Reply | None = None
        ended = TurnEnded(time.time(), route.number, None)
        with self._transaction():
            if answer.finished.outcome.failure is None:
                reply = self._store_reply(answer.member, answer.turn, answer.finished.text, route)
                ended = reply.ended
            said = reply.message.id if reply else None
            self.answering.end(answer, reply=said)
            actions = self._decide(ended)
        if reply:
            self._tell_reply(reply)
        self.answering.told(answer, said)
        return actions

    def _budget(self) -> float | None:
        """What is left of it in US dollars: never nothing, which no CLI takes for a limit."""
        limit = self.team.limits.cost_usd
        return None if limit is None else max(limit - self.state.cost_usd, 0.0001)

    async def _group(self, routes: tuple[Route, ...]) -> tuple[Action, ...]:
        """The turns of a group at the same time; each is stored when it is over, the replies once all are."""
        failed = await run_together(self.team, routes, self._member_of_group, self.stopper, self.emit)
        return self._step(GroupRan(time.time(), failed))

    async def _member_of_group(self, route: Route) -> bool:
        """Whether the member has its reply, which its turn keeps."""
        answer = await self.answering.answer(route)
        if isinstance(answer, NoAnswer):
            self.tally.fail(route, answer.error)
            return False
        failed = answer.finished.outcome.failure is not None
        with self._transaction():
            self.answering.end(answer, kept=not failed)
            if not failed:
                self._decide(MemberAnswered(time.time(), route.number, answer.turn.id))
        self.answering.told(answer)
        return not failed

    def _deliver(self, routes: tuple[Route, ...]) -> tuple[Action, ...]:
        """The replies that a group's turns have kept become messages, in the order in which the members were named."""
        replies: list[_Reply] = []
        with self._transaction():
            for route in routes:
                assert route.answer is not None, route
                turn = get_turn(self.db, route.answer)
                reply = self._store_reply(self.team.member(turn.member), turn, partial_of(self.db, turn), route)
                deliver_turn(self.db, turn, reply.message.id)
                replies.append(reply)
            actions = self._decide(GroupDelivered(time.time(), tuple(reply.ended for reply in replies)))
        for reply in replies:
            self._tell_reply(reply)
        return actions

    def _tell_reply(self, reply: _Reply) -> None:
        self.tally.said(reply.message)
        self.emit(Replied(reply.turn, reply.message))
        self._tell_todos(reply.noted, f"{reply.message.speaker.role_name}: ")

    def _store_reply(self, member: Member, turn: Turn, text: str, route: Route) -> _Reply:
        reply = address_reply(text, self.team, member)
        for problem in reply.problems:
            self.emit(Warned(problem))
        new = not says_nothing_new(text, self._said_since(), member.name, self.team.limits.similarity)
        message = self.manager.add_message(
            NewMessage(
                text,
                Speaker(member.name, member.name, member.title, type="ai"),
                Routing(reply.names, reply.markers),
                turn_id=turn.id,
                stands_for=None if member.name == route.target else route.target,
            )
        )
        ended = TurnEnded(
            time.time(), route.number, message.id, reply.requests, reply.drops, speaker=member.name, new=new
        )
        return _Reply(turn, message, ended, note_todos(self.db, self.session, reply.todos, member.name, message.id))

    def _said_since(self) -> list[tuple[str, str]]:
        """What agents said since the last human message, newest first."""
        said: list[tuple[str, str]] = []
        for message in reversed(self.manager.get_latest_messages(LOOK_BACK)):
            if message.speaker.type == "human":
                break
            said.append((message.speaker.role_name, message.content))
        return said
