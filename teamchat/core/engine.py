"""The rules of a conversation, as one pure function: `decide(state, event) -> (state, actions)`.

Every rule of who speaks next, what waits, what a failure holds back and what pauses lives here and nowhere else
(design section 5). The coordinator performs the actions and stores the state; replay, resume and undo rest on the same
function. Nothing here reads a clock, a file or a store: events carry the time.

The queue is one tuple in the order of speaking, the route that runs at its head. A route that waits for a person stays
at its place as ASKED; what a failure, a guard, Ctrl-C or a crash left behind is HELD and moves only by `Resumed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from teamchat.core.actions import Action, Asked, Dropped, Idle, Paused, PauseKind, Queued, RunTurn, TurnFailed
from teamchat.core.engine_events import Event, HumanSpoke, Recovered, Resumed, ResumeMode, Stopped, TurnBegan, TurnEnded
from teamchat.core.route import OPEN, Route, Status
from teamchat.core.routing import RouteRequest


@dataclass(frozen=True, slots=True)
class Rules:
    """What the team file says about speaking: the AI members in order, the lead, the people, the guards."""

    ai: tuple[str, ...]
    humans: tuple[str, ...]
    lead: str | None = None
    max_turns: int = 12
    max_seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class State:
    """A conversation between two events. `turns` and `since` count from the last human message or resume."""

    rules: Rules
    queue: tuple[Route, ...] = ()
    next_route: int = 1
    turns: int = 0
    since: float = 0.0
    last_ai: str | None = None

    @property
    def waiting(self) -> tuple[Route, ...]:
        return tuple(route for route in self.queue if route.status is Status.WAITING)

    @property
    def held(self) -> tuple[Route, ...]:
        return tuple(route for route in self.queue if route.status is Status.HELD)

    @property
    def asked(self) -> Route | None:
        """The route of the person the queue waits for."""
        return next((route for route in self.queue if route.status is Status.ASKED), None)


@dataclass(slots=True)
class _Draft:
    """A state being changed, and the actions on the way. `ended` collects routes that leave the queue."""

    state: State
    now: float
    actions: list[Action] = field(default_factory=list)

    def put(self, queue: Iterable[Route]) -> None:
        self.state = replace(self.state, queue=tuple(queue))

    def drop(self, routes: tuple[Route, ...]) -> None:
        self.put(route for route in self.state.queue if route not in routes)
        self.actions += [Dropped(route) for route in routes]

    def hold_all(self) -> None:
        """Nothing of what is queued runs by itself any more."""
        self.put(
            replace(route, status=Status.HELD) if route.status in (Status.WAITING, Status.RUNNING) else route
            for route in self.state.queue
        )

    def enqueue(self, requests: tuple[RouteRequest, ...], like: Route, *, ahead: bool) -> None:
        """Queue what a message asks for: ahead of what waits (a person's) or behind it (an agent's), per priority."""
        number = self.state.next_route
        new = [
            replace(like, number=number + index, target=wish.target, priority=wish.priority, group=wish.group)
            for index, wish in enumerate(requests)
        ]
        self.state = replace(self.state, next_route=number + len(new))
        queue = self.state.queue
        # sorted() is stable: within a priority the order of the list is the order of speaking
        self.put(sorted((*new, *queue) if ahead else (*queue, *new), key=lambda route: route.priority))
        self.actions += [Queued(route) for route in new]


def decide(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """The state after `event`, and what is to be done now. The last action says how it goes on."""
    draft = _Draft(state, event.now)
    match event:
        case HumanSpoke():
            _human_spoke(draft, event)
        case TurnBegan():
            draft.put(
                replace(route, as_of=event.as_of, attempt=route.attempt + 1) if route.number == event.route else route
                for route in state.queue
            )
            return draft.state, ()
        case TurnEnded():
            _turn_ended(draft, event)
        case Resumed():
            _resumed(draft, event.mode)
        case Stopped():
            draft.hold_all()
            draft.actions.append(Paused(PauseKind.INTERRUPTED, "interrupted"))
        case Recovered():
            _recovered(draft)
    if not (draft.actions and draft.actions[-1].final):
        _next(draft)
    return draft.state, tuple(draft.actions)


def _human_spoke(draft: _Draft, event: HumanSpoke) -> None:
    if answered := _answered(draft.state, event.speaker):
        draft.put(route for route in draft.state.queue if route is not answered)
    _drop_named(draft, event.drops)
    draft.state = replace(draft.state, turns=0, since=event.now)
    draft.enqueue(event.requests, Route(parent=event.message, by=event.speaker, request=event.message), ahead=True)


def _answered(state: State, speaker: str) -> Route | None:
    """The question that this person answers by speaking; somebody else may have been asked since."""
    asked = (route for route in state.queue if route.status is Status.ASKED)
    return next((route for route in asked if route.target == speaker), None)


def default_target(state: State, speaker: str) -> str | None:
    """Who answers a human message that names nobody: whoever asked, the lead, the last AI, the first (section 5)."""
    answered = _answered(state, speaker)
    candidates = (answered.by if answered else None, state.rules.lead, state.last_ai, *state.rules.ai)
    return next((name for name in candidates if name in state.rules.ai), None)  # the team may have changed since


def _turn_ended(draft: _Draft, event: TurnEnded) -> None:
    ended = next(route for route in draft.state.queue if route.number == event.route)
    if event.reply is None:
        draft.hold_all()
        draft.actions.append(TurnFailed(ended))
        return
    draft.put(route for route in draft.state.queue if route is not ended)
    draft.state = replace(draft.state, turns=draft.state.turns + 1, last_ai=ended.target)
    _drop_named(draft, event.drops)
    draft.enqueue(event.requests, Route(parent=event.reply, by=ended.target, request=ended.request), ahead=False)


def _drop_named(draft: _Draft, names: tuple[str, ...] | None) -> None:
    """`None` is DROP: ALL. A route that runs right now is not taken out."""
    if names == ():
        return
    draft.drop(
        tuple(
            route
            for route in draft.state.queue
            if route.status is not Status.RUNNING and (names is None or route.target in names)
        )
    )


def _resumed(draft: _Draft, mode: ResumeMode) -> None:
    held = draft.state.held
    if mode is ResumeMode.DROP:
        draft.drop(held)
    elif mode is ResumeMode.SKIP:
        draft.drop(held[:1])
    draft.put(
        replace(route, status=Status.WAITING) if route.status is Status.HELD else route for route in draft.state.queue
    )
    draft.state = replace(draft.state, turns=0, since=draft.now)


def _recovered(draft: _Draft) -> None:
    """The process before this one died. While a person is asked, the queue behind the question is as it should be."""
    if draft.state.asked is None or any(route.status is Status.RUNNING for route in draft.state.queue):
        draft.hold_all()
    draft.actions.append(Idle())


def _next(draft: _Draft) -> None:
    """What happens now: the head of the queue speaks or is asked, a guard pauses, or nobody is left."""
    state = draft.state
    head = next((route for route in state.queue if route.status in OPEN), None)
    if head is None:
        draft.actions.append(Idle())
    elif head.target in state.rules.humans:
        draft.put(replace(route, status=Status.ASKED) if route is head else route for route in state.queue)
        draft.actions.append(Asked(replace(head, status=Status.ASKED)))
    elif guard := _guard(draft):
        draft.hold_all()
        draft.actions.append(guard)
    else:
        running = replace(head, status=Status.RUNNING)
        draft.put((running, *(route for route in state.queue if route is not head)))
        draft.actions.append(RunTurn(running))


def _guard(draft: _Draft) -> Paused | None:
    rules, state = draft.state.rules, draft.state
    if state.turns >= rules.max_turns:
        return Paused(PauseKind.TURNS, f"{state.turns} turns since the last human message (limits.turns)")
    if draft.now - state.since > rules.max_seconds:
        return Paused(
            PauseKind.TIME, f"{rules.max_seconds / 60:g} minutes since the last human message (limits.minutes)"
        )
    return None
