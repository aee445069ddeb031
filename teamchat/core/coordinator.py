"""The coordinator performs what the engine decides: it stores messages, runs turns and stores what came of them.

It holds no rule of its own. Every step is one transaction: the message, the queue after it and the turn are written
together, so a process that is killed between two steps leaves a conversation that `resume` can go on with.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from teamchat.assemblers.truncation import BYTES_PER_TOKEN
from teamchat.core.actions import Action, Asked, Dropped, Paused, PauseKind, Queued, RunTurn, TurnFailed
from teamchat.core.addressing import Addressed, address, address_reply
from teamchat.core.conclusion import Tally, conclude_failure, conclude_pause, conclude_waiting
from teamchat.core.context_manager import TASK_CUT, ContextManager
from teamchat.core.engine import Rules, State, decide
from teamchat.core.engine_events import Event, HumanSpoke, Recovered, Resumed, ResumeMode, Stopped, TurnBegan, TurnEnded
from teamchat.core.errors import ExitCode, NoRecording, NothingToResume, TeamchatError
from teamchat.core.events import (
    AgentSpoke,
    Conclusion,
    ConversationEvent,
    MessageStored,
    RouteDropped,
    RouteQueued,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.core.member_turn import REAL, FinishedTurn, Outside, ReadyTurn, new_scratch, ready, run
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.receipt import Outcome
from teamchat.core.recovery import recover_turns
from teamchat.core.route import Route
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import load_state, save_state
from teamchat.core.store.turns import NewTurn, Turn, TurnStatus, begin_turn, end_turn
from teamchat.core.team import Member, Team
from teamchat.runners.base import FailureKind
from teamchat.runners.turn import Stopper


def rules_of(team: Team) -> Rules:
    return Rules(
        ai=tuple(member.name for member in team.ai_members),
        humans=tuple(member.name for member in team.humans),
        lead=team.lead,
        max_turns=team.limits.turns,
        max_seconds=team.limits.minutes * 60,
    )


def manager_of(team: Team, db: Database, session: int) -> ContextManager:
    return ContextManager(
        SqliteLog(db, session),
        context_window_size=team.context_window,
        max_bytes=team.max_bytes,
        target_bytes=team.max_prompt_tokens * BYTES_PER_TOKEN,
    )


def _status(outcome: Outcome) -> TurnStatus:
    if outcome.failure is None:
        return "done"
    return "interrupted" if outcome.failure.kind is FailureKind.INTERRUPTED else "failed"


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
    ) -> None:
        self.team, self.db, self.session = team, db, session
        self.folder, self.stopper, self.emit, self.outside = folder, stopper, emit, outside
        self.manager = manager_of(team, db, session)
        self.tally = Tally()
        self.state: State = load_state(db, session, rules_of(team))

    def recover(self) -> None:
        """Close what a killed process has left open. Nobody else may be running the session."""
        for note in recover_turns(self.db, self.session):
            self.emit(Warned(note))
        self._step(Recovered(time.time()))

    async def send(self, text: str, *, speaker: str | None = None, to: str | None = None) -> Conclusion:
        """Store a person's message and follow the routing until nobody is left to speak, or something stops it.

        `speaker` and `to` are as for `address`, whose errors are raised before anything is stored.
        """
        addressed = address(text, self.team, self.state, speaker=speaker, to=to)
        for problem in addressed.problems:
            self.emit(Warned(problem))
        actions = self.store(addressed)
        return await self._follow(actions)

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
            spoke = HumanSpoke(time.time(), message.id, addressed.speaker.name, addressed.requests, addressed.drops)
            actions = self._decide(spoke)
        self.emit(MessageStored(message))
        return actions

    def _set_task(self, task: str) -> None:
        self.manager.set_team_task(task)
        if self.manager.get_team_task() != task:
            self.emit(Warned(TASK_CUT))

    async def resume(self, mode: ResumeMode) -> Conclusion:
        """Go on with what was held. Raises `NothingToResume` when the queue is empty."""
        if not self.state.queue:
            raise NothingToResume("nothing waits in this conversation", 'teamchat send "..."')
        return await self._follow(self._step(Resumed(time.time(), mode)))

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
        """Let the engine decide, and save the state it comes to; part of the caller's transaction."""
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
            if not isinstance(last, RunTurn):
                return self._conclude(last)
            if self.stopper.asked:
                actions = self._step(Stopped(time.time()))
                continue
            try:
                actions = await self._turn(last.route)
            except NoRecording:
                raise  # there is nothing to resume in a replay
            except TeamchatError as error:  # known before anything was started: the route waits for a resume
                self._step(TurnEnded(time.time(), last.route.number, None))
                return conclude_failure(self.tally, self.state, error.code, str(error), error.hint)

    def _conclude(self, action: Action) -> Conclusion:
        match action:
            case TurnFailed(route=route):
                return self._failed(route)
            case Asked(route=route):
                return conclude_waiting(self.tally, self.state, route, len(self.team.humans))
            case Paused(kind=kind, reason=reason):
                return conclude_pause(self.tally, self.state, kind, reason)
            case _:
                return self.tally.conclusion(self.state, ExitCode.DONE)

    def _tell(self, action: Action) -> None:
        if isinstance(action, Queued):
            self.emit(RouteQueued(action.route))
        elif isinstance(action, Dropped):
            self.emit(RouteDropped(action.route))

    async def _turn(self, route: Route) -> tuple[Action, ...]:
        scratch = new_scratch()
        try:
            prepared = ready(self.team, route, self.manager, self.outside, scratch=scratch)
            self.outside.check(prepared)
            turn = self._begin(prepared)
            self.emit(TurnStarted(turn, route))
            finished = await run(
                prepared,
                turn.folder,
                self.outside.launcher,
                self.stopper,
                lambda event: self.emit(AgentSpoke(route.target, turn.number, event)),
            )
        finally:
            shutil.rmtree(scratch, ignore_errors=True)  # the guardian does, but there may be none
        actions = self._finish(prepared, turn, finished)
        shutil.rmtree(turn.folder, ignore_errors=True)
        return actions

    def _begin(self, prepared: ReadyTurn) -> Turn:
        with self._transaction():
            self._decide(TurnBegan(time.time(), prepared.route.number, prepared.prompt.answers.id))
            return begin_turn(
                self.db,
                NewTurn(
                    session=self.session,
                    route=prepared.route.number,
                    member=prepared.member.name,
                    agent=prepared.agent.name,
                    like=prepared.agent.like,
                    system_text=prepared.prompt.system_text,
                    prompt=prepared.prompt.prepared.stdin,
                    shown_through=prepared.prompt.answers.id,
                    setup=prepared.setup,
                    folder=self.folder / secrets.token_hex(8),
                ),
            )

    def _finish(self, prepared: ReadyTurn, turn: Turn, finished: FinishedTurn) -> tuple[Action, ...]:
        """Store what came of a turn, all of it or nothing: the reply, the receipt, the route and the new queue."""
        outcome, route = finished.outcome, prepared.route
        reply: ConversationMessage | None = None
        with self._transaction():
            if outcome.failure is None:
                reply, ended = self._store_reply(prepared.member, turn, finished.text, route)
                outcome = replace(outcome, reply=reply.id)
            else:
                ended = TurnEnded(time.time(), route.number, None)
            end_turn(
                self.db,
                turn,
                _status(outcome),
                outcome,
                partial=finished.text if outcome.failure else "",
                vendor_session=finished.vendor_session,
                events=finished.events,
            )
            actions = self._decide(ended)
        self.tally.add(outcome, reply)
        self.emit(TurnFinished(turn, outcome, reply, finished.text if outcome.failure else ""))
        return actions

    def _store_reply(
        self, member: Member, turn: Turn, text: str, route: Route
    ) -> tuple[ConversationMessage, TurnEnded]:
        reply = address_reply(text, self.team, member)
        for problem in reply.problems:
            self.emit(Warned(problem))
        message = self.manager.add_message(
            NewMessage(
                text,
                Speaker(member.name, member.name, member.title, type="ai"),
                Routing(reply.names, reply.markers),
                turn_id=turn.id,
            )
        )
        return message, TurnEnded(time.time(), route.number, message.id, reply.requests, reply.drops)

    def _failed(self, route: Route) -> Conclusion:
        outcome = self.tally.last
        assert outcome is not None
        assert outcome.failure is not None
        if outcome.failure.kind is FailureKind.INTERRUPTED:
            return conclude_pause(self.tally, self.state, PauseKind.INTERRUPTED, f"{route.target} was interrupted")
        reason = f"{route.target} {outcome.failure.reason}"
        return conclude_failure(self.tally, self.state, outcome.code, reason, outcome.failure.hint)
