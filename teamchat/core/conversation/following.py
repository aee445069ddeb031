"""Follows a conversation that another process runs: the same events, read from the store and from the agents' output.

The reader holds no lock, writes nothing and delays nobody. What a run only says and does not store is missing: why it
waits before it tries again, and the comparison of a group's worktrees.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.conversation.conclusion import conclude, conclude_checks, conclusion
from teamchat.core.conversation.lessons import lessons_in
from teamchat.core.conversation.recovery import how_left, output_folder
from teamchat.core.conversation.turn_output import TurnOutput
from teamchat.core.engine.events import CheckNotRun, GroupFailed, HumanAsked, Idle, Paused, PauseKind, TurnFailed
from teamchat.core.engine.guards import guard
from teamchat.core.engine.state import OPEN, Route, RouteStatus, State
from teamchat.core.errors import ExitCode
from teamchat.core.files.session_lock import holder_of
from teamchat.core.messages import ConversationMessage
from teamchat.core.receipt import KILLED
from teamchat.core.routing.todos import Change
from teamchat.core.store.checks import CheckRecord, checks_of, find_check, ran_before, running_checks
from teamchat.core.store.database import Database
from teamchat.core.store.lessons import newest_lessons
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import all_routes, find_route, load_state, part_of, routes_after
from teamchat.core.store.sessions import Session, check_there
from teamchat.core.store.summaries import Summary, summary_of
from teamchat.core.store.todos import changes_after, last_change
from teamchat.core.store.turn_events import agent_events
from teamchat.core.store.turns import (
    LARGEST,
    Turn,
    begun_after,
    find_turn,
    partial_of,
    running_turns,
    turn_of_session,
    turns_after,
)
from teamchat.core.store.undos import Undo, undos_in
from teamchat.core.team.team import Team
from teamchat.core.turn.ending import file_warnings
from teamchat.core.turn.machine import steady_now
from teamchat.core.turn.run import RESUME, Tally, rules_of
from teamchat.core.turn.run_events import (
    AgentSpoke,
    CheckFinished,
    CheckStarted,
    Conclusion,
    ConversationEvent,
    LessonsFound,
    MessageStored,
    ProcessMoved,
    Replied,
    RouteDropped,
    RouteQueued,
    SummaryStored,
    TodoChanged,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.agent_events import AgentEvent

LOOK_S = 0.02  # between two looks while a member works
IDLE_LOOK_S = 0.05  # and while nobody does
LOCK_LOOK_S = 1.0  # between two looks whether the process that runs the conversation is alive
STILL_S = 1.0  # without anything to do, after which the run of a process that keeps its lock is over
SAID, TODO, REPLIED, QUEUED, TURNS = range(5)  # the order of what happens after one message is stored
NOBODY_RUNS = "nobody runs what is waiting"

CHECK = 2  # among what follows a turn: its beginning, its end, the checks behind it

_Part = tuple[tuple[float, ...], Iterable[ConversationEvent]]
"""A part of what has happened, and its place in the order."""


class _Open(Struct):
    """A turn that runs. `after` is the place of the message after which it began."""

    turn: Turn
    after: float
    output: TurnOutput | None
    told: bool = False  # its output is told to the end


class _Seen(Struct, frozen=True):
    """What the store has at one moment that it did not have before, and the state by now.

    `running` has the numbers of turns, and those of checks below 0. `checks` have begun, and `checked` are over.
    """

    state: State
    running: frozenset[int] = frozenset()
    checks: list[CheckRecord] = field(default_factory=list)
    checked: list[CheckRecord] = field(default_factory=list)
    place: int = 0
    messages: dict[int, ConversationMessage] = field(default_factory=dict)
    begun: list[tuple[Turn, int | None]] = field(default_factory=list)
    ended: list[Turn] = field(default_factory=list)
    queued: list[Route] = field(default_factory=list)
    todos: dict[int, Change] = field(default_factory=dict)
    undos: list[Undo] = field(default_factory=list)


class Follower:
    """Follows one session from the message at the place `after` on, and from the beginning of the turns that run.

    `lock` is the file of the session's lock. Call `look` again and again, with `pause` seconds in between. After
    `follow_only` only a person's message and what it leads to is followed.
    """

    def __init__(self, db: Database, session: Session, team: Team, lock: Path, after: int) -> None:
        self.db, self.session, self.team, self.lock = db, session, team, lock
        self.tally = Tally()
        self._request: str | None = None
        self._log = SqliteLog(db, session.id)
        self._open: dict[int, _Open] = {}
        self._place = after
        with db.snapshot():
            check_there(db, session)
            self._version = db.changes() - 1
            self.state = load_state(db, session.id, rules_of(team))
            running = running_turns(db, session.id)
            last = find_turn(db, session.id)
            checks = running_checks(db, session.id)
            newest = find_check(db, session.id)
            self._check = min((check.number for check in checks), default=newest.number + 1 if newest else 1) - 1
            self._turn = min((turn.number for turn in running), default=last.number + 1 if last else 1) - 1
            self._route = self.state.next_route - 1
            self._todo = last_change(db, session.id)
            self._undos = {undo.id: undo.status for undo in undos_in(db, session.id)}
        self._running = frozenset((*(turn.number for turn in running), *(-check.number for check in checks)))
        self._open_checks: dict[int, float] = {}  # the numbers of those that run, with the place of the message before
        self._by_hand: list[CheckRecord] = []  # of this run, those that are over
        self._not_run: CheckRecord | None = None  # the last one of this run, if it was not run
        self._first = [
            route for route in self.state.queue if route.status in (RouteStatus.WAITING, RouteStatus.RUNNING)
        ]
        there = self.state.process
        self._process = there if there and there.over else None  # as it was told last
        self._process_stopped = False  # since it was told
        self._ran = False
        self._looked_at_lock = -math.inf
        self._still_since = math.inf
        self._dead: object = None  # the state in which its process has died
        self._held_before: frozenset[int] = frozenset()
        if last and last.outcome and not running:
            self.tally.fail_turn(last, last.outcome)

    def follow_only(self, request: str) -> None:
        """Follow nothing but the message `request` and what it leads to. No `look` may have been before."""
        self._request, self._first, self.tally = request, [], Tally()
        self.state, self._running = self._narrowed(self.state), frozenset()

    @property
    def pause(self) -> float:
        return LOOK_S if self.active else IDLE_LOOK_S

    @property
    def active(self) -> bool:
        """True until the conclusion of a run is told."""
        return self._ran or self._works

    @property
    def _works(self) -> bool:
        """True while somebody speaks or is about to, as far as the store and the lock tell."""
        return _goes_on(self.state, self._running) and self._dead != (self.state.queue, self._running)

    def look(self) -> Iterator[ConversationEvent | Conclusion]:
        """What has happened since the last look. The end of a run is told as its conclusion.

        Raises `UnknownName` once the session is deleted, and `StoreError`.
        """
        self.db.check_there()
        if (version := self.db.changes()) != self._version:
            self._version = version
            yield from self._told(self._seen())
        for open_turn in list(self._open.values()):
            if open_turn.output and self._works:
                yield from self._spoken(open_turn.turn, open_turn.output.read())
        now = time.monotonic()
        if self._works and now - self._looked_at_lock >= LOCK_LOOK_S:
            # Notice that the process that ran the conversation is dead. A process that is alive keeps its lock.
            self._looked_at_lock = now
            if holder_of(self.lock) is None and self.db.changes() == self._version:
                self._dead = (self.state.queue, self._running)
        if self._works:
            self._ran, self._still_since = True, math.inf
        elif self._ran and self._over():
            self._ran, self._still_since = False, math.inf
            yield self.conclusion()
            self._process_stopped = True
            self.tally, self._held_before = Tally(), frozenset(route.number for route in self.state.held)
            self._by_hand, self._not_run = [], None

    def close(self) -> None:
        for open_turn in self._open.values():
            if open_turn.output:
                open_turn.output.close()

    def event_of(self, message: ConversationMessage) -> MessageStored | Replied:
        """The event that told of a stored message."""
        turn = turn_of_session(self.db, self.session.id, message.turn_id) if message.turn_id else None
        return Replied(turn, message, part_of(self.db, turn.id)) if turn else MessageStored(message)

    def _over(self) -> bool:
        """True if the run is over: its process may store more at once, and `chat` keeps the lock between two runs."""
        now = time.monotonic()
        self._still_since = min(self._still_since, now)
        return now - self._still_since > STILL_S or holder_of(self.lock) is None

    def _seen(self) -> _Seen:
        db, session, log = self.db, self.session.id, self._log
        with db.snapshot():
            check_there(db, self.session)
            now = {number: turn_of_session(db, session, open_turn.turn.id) for number, open_turn in self._open.items()}
            begun = [turn for turn in turns_after(db, session, self._turn) if self._follows(turn)]
            messages = {
                place: message for place, message in log.placed_after(self._place).items() if self._follows(message)
            }
            said = {message.id for message in messages.values()}
            checks = [check for check in checks_of(db, session, self._check) if self._follows(check)]
            open_ = (find_check(db, session, number) for number in self._open_checks)
            running = [turn.number for turn in running_turns(db, session) if self._follows(turn)]
            running += [-check.number for check in running_checks(db, session) if self._follows(check)]
            return _Seen(
                state=self._narrowed(load_state(db, session, rules_of(self.team))),
                running=frozenset(running),
                checks=checks,
                checked=[check for check in (*open_, *checks) if check and check.status != "running"],
                place=max(self._place, log.last_place()),
                messages=messages,
                begun=[(turn, begun_after(db, turn)) for turn in begun],
                ended=[turn for turn in (*now.values(), *begun) if turn and turn.status != "running"],
                queued=[
                    route for route in routes_after(db, session, self._route) if self._request in (None, route.request)
                ],
                todos={
                    number: change
                    for number, change in changes_after(db, session, self._todo).items()
                    if self._request is None or change.message in said
                },
                undos=[undo for undo in undos_in(db, session) if self._undos.get(undo.id) != undo.status],
            )

    def _narrowed(self, state: State) -> State:
        """The state as far as it is followed."""
        if self._request is None:
            return state
        return replace(
            state, queue=tuple(route for route in state.queue if route.request == self._request), process=None
        )

    def _follows(self, one: Turn | CheckRecord | ConversationMessage) -> bool:
        if self._request is None:
            return True
        if isinstance(one, ConversationMessage):
            turn = turn_of_session(self.db, self.session.id, one.turn_id) if one.turn_id else None
            return one.id == self._request or (turn is not None and self._follows(turn))
        route = find_route(self.db, self.session.id, one.route) if one.route is not None else None
        return route is not None and route.request == self._request

    def _told(self, seen: _Seen) -> Iterator[ConversationEvent]:
        """The events of what was seen, in the order in which a run tells them."""
        before, self.state, self._running = self.state, seen.state, seen.running
        checks, ended = self._checks(seen)
        parts = [*self._messages(seen, ended), *self._queue(seen, before), *self._turns(seen), *checks]
        calls = tuple(route for route in seen.state.queue if route.part)
        runs = any(route.status in _TRIED for route in calls)
        self.tally.process = self.tally.process or runs
        if (now := seen.state.process) and (now != self._process or (runs and self._process_stopped)):
            self._process, self._process_stopped, self.tally.process = now, False, True
            moved = max(((seen.place, QUEUED, math.inf), *((*place, math.inf) for place in ended.values())))
            parts.append((moved, (ProcessMoved(now, calls),)))
        self._place = seen.place
        self._turn = max((self._turn, *(turn.number for turn, _ in seen.begun)))
        self._check = max((self._check, *(check.number for check in seen.checks)))
        self._route = max((self._route, *(route.number for route in seen.queued)))
        self._todo = max((self._todo, *seen.todos))
        self._undos |= {undo.id: undo.status for undo in seen.undos}
        self._ran = self._ran or bool(seen.messages or seen.begun or seen.ended or seen.checks or seen.checked)
        for _, events in sorted(parts, key=itemgetter(0)):
            yield from events
        for undo in seen.undos:
            whole = f"turn {undo.turn} and all later ones were undone"
            if undo.status == "done":
                yield Warned(f"{whole}{', their files alone' * (undo.scope == 'files')}: teamchat log --all")
            elif undo.status == "redone":
                yield Warned(f"the undo of turn {undo.turn} was reverted")

    def _messages(self, seen: _Seen, checked: Mapping[int, tuple[float, ...]]) -> Iterator[_Part]:
        places = {message.id: place for place, message in seen.messages.items()}
        for place, message in seen.messages.items():
            yield (place, SAID), self._said(message)
        for number, change in seen.todos.items():
            yield (places.get(change.message or "", seen.place), TODO, number), (TodoChanged(change),)
        for route in seen.queued:
            if route.status is not RouteStatus.DROPPED:
                queued = replace(route, status=RouteStatus.WAITING, attempt=0, as_of=None, answer=None)
                called = (places.get(route.parent, self._place), QUEUED)
                yield (*self._place_of_step(route, seen, checked, called), route.number), (RouteQueued(queued),)

    def _place_of_step(
        self, route: Route, seen: _Seen, checked: Mapping[int, tuple[float, ...]], called: tuple[float, ...]
    ) -> tuple[float, ...]:
        """Where a route is queued: with the message that calls it, or in a process with checks behind its last step.

        There a step is called by the end of the one before it, and every route has the task as its parent.
        """
        if route.part is None or route.part.kind != "until":
            return called
        first = min(queued.number for queued in seen.queued if queued == route or _called_together(queued, route))
        ends = {number: place for number, place in checked.items() if number < first}
        for place, message in seen.messages.items():
            turn = turn_of_session(self.db, self.session.id, message.turn_id) if message.turn_id else None
            if turn and turn.route is not None and turn.route < first:
                ends[turn.route] = (place, QUEUED)
        return ends[max(ends)] if ends else called

    def _checks(self, seen: _Seen) -> tuple[list[_Part], dict[int, tuple[float, ...]]]:
        """What is told of checks, and the places behind the ends of those that a route has called, by its number."""
        parts: list[_Part] = []
        ended: dict[int, tuple[float, ...]] = {}
        for check in seen.checks:
            place = self._open_checks[check.number] = self._before_check(check, seen)
            begun = replace(check, status="running", result=None, changes=None, output_key=None, undone=None)
            parts.append(((place, TURNS, check.after, CHECK, check.number, 0), (CheckStarted(begun),)))
        for check in seen.checked:
            behind = (self._open_checks.pop(check.number), TURNS, check.after, CHECK, check.number)
            parts.append(((*behind, 1), self._ends_check(check)))
            if check.route is not None:
                ended[check.route] = (*behind, 2)
        return parts, ended

    def _before_check(self, check: CheckRecord, seen: _Seen) -> float:
        """The place of the last message before the check."""
        before: float = self._place
        for place, message in seen.messages.items():
            turn = turn_of_session(self.db, self.session.id, message.turn_id) if message.turn_id else None
            if ran_before(check, turn.number if turn else None, message.timestamp):
                break
            before = place
        return before

    def _ends_check(self, check: CheckRecord) -> Iterator[ConversationEvent]:
        result = check.result
        if check.route is None:
            self._by_hand.append(check)
        self._not_run = check if result and result.not_run else None
        yield CheckFinished(check)

    def _queue(self, seen: _Seen, before: State) -> Iterator[_Part]:
        for route in self._first:
            yield (-math.inf, QUEUED, route.number), (RouteQueued(route),)
        self._first = []
        there = {route.number for route in seen.state.queue}
        for number in sorted(route.number for route in before.queue if route.number not in there):
            gone = find_route(self.db, self.session.id, number)
            if gone and gone.status in (RouteStatus.DROPPED, RouteStatus.JOINED):
                yield (math.inf, QUEUED, number), (RouteDropped(gone),)

    def _turns(self, seen: _Seen) -> Iterator[_Part]:
        replies = {message.turn_id: place for place, message in seen.messages.items()}
        after: dict[int, float] = {number: open_turn.after for number, open_turn in self._open.items()}
        follows: float = seen.place
        for turn, place in reversed(seen.begun):  # a side turn comes before the turn that follows it
            after[turn.number] = follows = follows if place is None else place
        for turn, _ in seen.begun:
            yield (after[turn.number], TURNS, turn.number, 0), self._begins(turn, after[turn.number])
        for turn in seen.ended:
            place = replies.get(turn.id)
            if place is not None and not self._of_group(turn):
                yield (place, REPLIED), self._ends(turn)
            else:
                yield (after[turn.number], TURNS, turn.number, 1), self._ends(turn)

    def _of_group(self, turn: Turn) -> bool:
        """True if the reply comes when all turns of a group are over."""
        route = find_route(self.db, self.session.id, turn.route) if turn.route is not None else None
        return route is not None and route.group is not None

    def _said(self, message: ConversationMessage) -> Iterator[ConversationEvent]:
        event = self.event_of(message)
        if isinstance(event, Replied):
            yield from self._rest(event.turn)
            self.tally.add_reply(message)
        yield event

    def _begins(self, turn: Turn, after: float) -> Iterator[ConversationEvent]:
        folder = output_folder(self.db, turn)
        output = TurnOutput(turn, folder) if folder else None
        if output:
            output.open()  # the files of a turn that has just ended may be removed at any moment
        self._open[turn.number] = _Open(turn, after, output)
        yield TurnStarted(turn, find_route(self.db, self.session.id, turn.route) if turn.route is not None else None)

    def _spoken(self, turn: Turn, events: Iterable[AgentEvent]) -> Iterator[AgentSpoke]:
        return (AgentSpoke(turn.member, turn.number, event) for event in events)

    def _rest(self, turn: Turn) -> Iterator[ConversationEvent]:
        """What is still to be told of the output of a turn that is over."""
        open_turn = self._open.get(turn.number)
        if open_turn is None or open_turn.told:
            return
        open_turn.told = True
        if open_turn.output and open_turn.output.open():
            if not self._was_dead(turn):
                yield from self._spoken(turn, open_turn.output.rest())
        else:
            yield from self._spoken(turn, agent_events(self.db, turn.id))
        if open_turn.output:
            open_turn.output.close()

    def _was_dead(self, turn: Turn) -> bool:
        """True if its process was found dead, and the conclusion that said so was told."""
        return isinstance(self._dead, tuple) and turn.number in self._dead[1]

    def _ends(self, turn: Turn) -> Iterator[ConversationEvent]:
        assert turn.outcome is not None, turn
        yield from self._rest(turn)
        self._open.pop(turn.number, None)
        yield from self._made(turn)
        outcome = replace(turn.outcome, reply=None) if self._of_group(turn) else turn.outcome
        self.tally.add(turn, outcome)
        failure = outcome.failure
        yield TurnFinished(turn, outcome, partial_of(self.db, turn) if failure else "")
        yield from file_warnings(turn, outcome)
        if failure and any(route.number == turn.route for route in self.state.queue if route.status in _TRIED):
            yield Warned(f"{turn.member} {failure.reason}", turn.route)

    def _made(self, turn: Turn) -> Iterator[ConversationEvent]:
        """What a side turn has made."""
        if turn.status != "done":
            return
        if (text := summary_of(self.db, turn)) is not None:
            yield SummaryStored(turn, Summary(turn.member, turn.shown_through, (), text))
        elif turn.setup.purpose == "lessons":
            lessons = newest_lessons(self.db, LARGEST)
            known = [lesson.text for lesson in lessons if lesson.learned_at < turn.started_at]
            texts = lessons_in(partial_of(self.db, turn), known)
            learned = [lesson for lesson in lessons if lesson.session == self.session.name and lesson.text in texts]
            yield LessonsFound(
                turn, texts, tuple(lesson for lesson in reversed(learned) if lesson.learned_at >= turn.started_at)
            )

    @property
    def session_id(self) -> int:
        """The number of the session in the store."""
        return self.session.id

    def conclusion(self) -> Conclusion:
        """How the run has ended, and how it can continue, as the process that ran it told it."""
        state = self.state
        if self._dead == (state.queue, self._running):
            why = self._how_left() if self._running or _has(state, RouteStatus.RUNNING) else NOBODY_RUNS
            on_host = any(open_turn.turn.setup.host for open_turn in self._open.values())
            paused = PauseKind.INTERRUPTED if on_host else None
            return conclusion(self, ExitCode.INTERRUPTED, f"{self._who()}{why}", RESUME, paused=paused)
        failed = tuple(route for route in state.held if route.number in self.tally.failures)
        if failed:
            mates = [route for route in all_routes(self.db, self.session.id) if _mates(route, failed[0])]
            delivered = any(mate.status is RouteStatus.DONE for mate in mates)
            return conclude(self, GroupFailed(failed, not delivered) if len(mates) > 1 else TurnFailed(failed[0]))
        if state.asked:
            return conclude(self, HumanAsked(state.asked))
        return conclude_checks(self, self._by_hand) if self._by_hand else self._of_held()

    def _of_held(self) -> Conclusion:
        """The same for a run in which no member failed."""
        state = self.state
        if {route.number for route in state.held} <= self._held_before:
            return conclude(self, Idle())
        stopped = self._not_run and self._check_not_run(self._not_run)
        if paused := stopped or guard(state, steady_now()):
            return conclude(self, paused)
        return conclusion(
            self, ExitCode.MEMBER_FAILED, "the next turn did not begin (why is said where it runs)", RESUME
        )

    def _check_not_run(self, check: CheckRecord) -> Paused | CheckNotRun | None:
        """Why a check was not run that is on hold, as the engine says it."""
        route = next((route for route in self.state.held if route.number == check.route), None)
        if route is None or check.result is None or check.result.not_run is None:
            return None
        if check.result.not_run == "interrupted":
            return Paused(PauseKind.INTERRUPTED, "interrupted")
        return CheckNotRun(route, f"{route.target} was not run: {check.result.reason}", check.result.not_run)

    def _how_left(self) -> str:
        left = {how_left(self.db, open_turn.turn) for open_turn in self._open.values()}
        return left.pop() if len(left) == 1 else KILLED

    def _who(self) -> str:
        names = [
            *(open_turn.turn.member for open_turn in self._open.values()),
            *map("check-{}".format, self._open_checks),
        ]
        return f"{', '.join(names)} " if names else ""


_TRIED = (RouteStatus.RUNNING, RouteStatus.WAITING)


def _goes_on(state: State, running: frozenset[int]) -> bool:
    """True if the engine would have somebody speak, or somebody speaks."""
    head = next((route for route in state.queue if route.status in OPEN), None)
    waits = head is not None and head.status is not RouteStatus.ASKED
    return bool(running) or waits or _has(state, RouteStatus.RUNNING)


def _has(state: State, status: RouteStatus) -> bool:
    return any(route.status is status for route in state.queue)


def _mates(one: Route, other: Route) -> bool:
    return other.group is not None and (one.parent, one.group) == (other.parent, other.group)


def _called_together(one: Route, other: Route) -> bool:
    """Whether the end of one step of a process has called both."""
    rounds = {part.number if part else None for part in (one.part, other.part)}
    return _mates(one, other) and len(rounds) == 1
