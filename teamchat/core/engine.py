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
from typing import Any

from teamchat.core.actions import (
    Action,
    Asked,
    Deliver,
    Dropped,
    GroupFailed,
    Idle,
    Paused,
    PauseKind,
    Queued,
    Refused,
    RunGroup,
    RunTurn,
    TurnFailed,
)
from teamchat.core.engine_events import (
    Event,
    GroupDelivered,
    GroupRan,
    HumanSpoke,
    MemberAnswered,
    Recovered,
    Resumed,
    ResumeMode,
    Spent,
    Stopped,
    TurnBegan,
    TurnEnded,
)
from teamchat.core.route import OPEN, Route, Status
from teamchat.core.routing import RouteRequest

MAX_WAITING = 50
LIMIT_NAMES = {
    PauseKind.TURNS: "limits.turns",
    PauseKind.TIME: "limits.minutes",
    PauseKind.TOKENS: "limits.tokens",
    PauseKind.COST: "limits.cost_usd",
    PauseKind.LOOP: "limits.rounds",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """What the team file says about speaking: the AI members in order, the lead, the people, the guards.

    `max_stale` is how many replies in a row may say nothing new.
    """

    ai: tuple[str, ...]
    humans: tuple[str, ...]
    lead: str | None = None
    max_turns: int = 12
    max_seconds: float = 3600.0
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_stale: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A conversation between two events.

    `turns`, `since` and `stale` count from the last human message or resume, `tokens` and `cost_usd` from the session's
    beginning or the last resume after a budget guard. `stale` is how many replies in a row said nothing new; those of a
    group count as one.
    """

    rules: Rules
    queue: tuple[Route, ...] = ()
    next_route: int = 1
    turns: int = 0
    since: float = 0.0
    last_ai: str | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    stale: int = 0

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
            replace(route, status=Status.HELD) if route.status is not Status.ASKED else route
            for route in self.state.queue
        )

    def change(self, number: int, **changes: Any) -> None:
        self.put(replace(route, **changes) if route.number == number else route for route in self.state.queue)

    def enqueue(self, requests: tuple[RouteRequest, ...], like: Route, *, ahead: bool) -> None:
        """Queue what a message asks for: ahead of what waits (a person's) or behind it (an agent's), per priority.

        One that waits for the same message already is not queued again, and one that finds no room is refused.
        """
        number, queue = self.state.next_route, self.state.queue
        there = {route.target for route in queue if route.parent == like.parent}
        new = [
            replace(like, number=number + index, target=wish.target, priority=wish.priority, group=wish.group)
            for index, wish in enumerate(wish for wish in requests if wish.target not in there)
        ]
        room = max(MAX_WAITING - sum(route.status is not Status.RUNNING for route in queue), 0)
        kept, refused = new[:room], new[room:]
        self.state = replace(self.state, next_route=number + len(new))
        # sorted() is stable: within a priority the order of the list is the order of speaking
        self.put(sorted((*kept, *queue) if ahead else (*queue, *kept), key=lambda route: route.priority))
        self.actions += [Queued(route) for route in kept] + [Refused(route, MAX_WAITING) for route in refused]


def decide(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """The state after `event`, and what is to be done now. The last action says how it goes on."""
    draft = _Draft(state, event.now)
    match event:
        case TurnBegan() | Spent() | MemberAnswered():
            _note(draft, event)
            return draft.state, ()
        case HumanSpoke():
            _human_spoke(draft, event)
        case TurnEnded():
            _turn_ended(draft, event)
        case GroupRan(failed=failed):
            _group_ran(draft, failed)
        case GroupDelivered(ends=ends):
            _group_delivered(draft, ends)
        case Resumed(mode=mode):
            _resumed(draft, mode)
        case Stopped():
            draft.hold_all()
            draft.actions.append(Paused(PauseKind.INTERRUPTED, "interrupted"))
        case Recovered():
            _recovered(draft)
    if not (draft.actions and draft.actions[-1].final):
        _next(draft)
    return draft.state, tuple(draft.actions)


def _note(draft: _Draft, event: TurnBegan | Spent | MemberAnswered) -> None:
    """What only has to be remembered: nothing follows from it yet."""
    state = draft.state
    match event:
        case TurnBegan(route=number, as_of=as_of):
            began = next(route for route in state.queue if route.number == number)
            draft.change(number, attempt=began.attempt + 1)
            for mate in _mates(state, began):  # one that begins only after a pause answers the same message
                draft.change(mate.number, as_of=mate.as_of or as_of)
        case Spent(tokens=tokens, cost_usd=cost):
            draft.state = replace(state, tokens=state.tokens + tokens, cost_usd=state.cost_usd + cost)
        case MemberAnswered(route=number, answer=answer):
            draft.state = replace(state, turns=state.turns + 1)
            draft.change(number, status=Status.ANSWERED, answer=answer)


def _human_spoke(draft: _Draft, event: HumanSpoke) -> None:
    if answered := _answered(draft.state, event.speaker):
        draft.put(route for route in draft.state.queue if route is not answered)
    _drop_named(draft, event.drops)
    draft.state = replace(draft.state, turns=0, since=event.now, stale=0)
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
    if event.reply is None:
        ended = next(route for route in draft.state.queue if route.number == event.route)
        draft.hold_all()
        draft.actions.append(TurnFailed(ended))
        return
    draft.state = replace(draft.state, turns=draft.state.turns + 1)
    _said(draft, new=event.new)
    _replied(draft, event)


def _said(draft: _Draft, *, new: bool) -> None:
    draft.state = replace(draft.state, stale=0 if new else draft.state.stale + 1)


def _replied(draft: _Draft, event: TurnEnded) -> None:
    """A reply was stored: its route is done, and what it asks for is queued."""
    done = next(route for route in draft.state.queue if route.number == event.route)
    speaker = event.speaker or done.target
    draft.put(route for route in draft.state.queue if route is not done)
    draft.state = replace(draft.state, last_ai=speaker)
    _drop_named(draft, event.drops)
    assert event.reply is not None
    draft.enqueue(event.requests, Route(parent=event.reply, by=speaker, request=done.request), ahead=False)


def _group_ran(draft: _Draft, failed: tuple[int, ...]) -> None:
    """Members without a reply are held; the others' replies are delivered once nobody of the group waits any more."""
    for number in failed:
        draft.change(number, status=Status.HELD)
    if failed and not any(route.status is Status.ANSWERED for route in draft.state.queue):
        draft.hold_all()
        routes = tuple(route for route in draft.state.queue if route.number in failed)
        draft.actions.append(GroupFailed(routes, all_of_it=True))


def _group_delivered(draft: _Draft, ends: tuple[TurnEnded, ...]) -> None:
    first = next(route for route in draft.state.queue if route.number == ends[0].route)
    failed = tuple(route for route in _mates(draft.state, first) if route.status is Status.HELD)
    _said(draft, new=any(end.new for end in ends))
    for end in ends:
        _replied(draft, end)
    if failed:  # told even if a mate's reply has dropped it
        draft.hold_all()
        draft.actions.append(GroupFailed(failed, all_of_it=False))


def _mates(state: State, route: Route) -> tuple[Route, ...]:
    """The routes of the same group that are still there, the route itself included; people are asked one by one."""
    return tuple(
        mate
        for mate in state.queue
        if mate is route
        or (
            (route.group is not None and (mate.parent, mate.group) == (route.parent, route.group))
            and mate.target not in state.rules.humans
        )
    )


def _drop_named(draft: _Draft, names: tuple[str, ...] | None) -> None:
    """`None` is DROP: ALL. A route that runs right now, or has its reply already, is not taken out."""
    if names == ():
        return
    draft.drop(
        tuple(
            route
            for route in draft.state.queue
            if route.status not in (Status.RUNNING, Status.ANSWERED) and (names is None or route.target in names)
        )
    )


def _resumed(draft: _Draft, mode: ResumeMode) -> None:
    held = draft.state.held
    if mode is ResumeMode.DROP:
        draft.drop(held)
    elif mode is ResumeMode.SKIP:
        draft.drop(tuple(route for route in held if route.answer is None)[:1])
    draft.put(
        replace(route, status=Status.WAITING if route.answer is None else Status.ANSWERED)
        if route.status is Status.HELD
        else route
        for route in draft.state.queue
    )
    state = draft.state
    draft.state = replace(
        state,
        turns=0,
        since=draft.now,
        stale=0,
        # a budget that is used up is granted once more
        tokens=0 if _reached(state.tokens, state.rules.max_tokens) else state.tokens,
        cost_usd=0.0 if _reached(state.cost_usd, state.rules.max_cost_usd) else state.cost_usd,
    )


def _reached(value: float, limit: float | None) -> bool:
    return limit is not None and value >= limit


def _recovered(draft: _Draft) -> None:
    """The process before this one died. While a person is asked, the queue behind the question is as it should be."""
    stopped_short = any(route.status in (Status.RUNNING, Status.ANSWERED) for route in draft.state.queue)
    if draft.state.asked is None or stopped_short:
        draft.hold_all()
    draft.actions.append(Idle())


def _next(draft: _Draft) -> None:
    """What happens now: the head of the queue speaks or is asked, a guard pauses, or nobody is left."""
    state = draft.state
    head = next((route for route in state.queue if route.status in OPEN), None)
    if head is None:
        draft.actions.append(Idle())
    elif head.target in state.rules.humans:
        draft.change(head.number, status=Status.ASKED)
        draft.actions.append(Asked(replace(head, status=Status.ASKED)))
    else:
        _speak(draft, head)


def _speak(draft: _Draft, head: Route) -> None:
    """The member at the head speaks, with its group; a group of which all have spoken is delivered."""
    mates = _mates(draft.state, head)
    waiting = tuple(route for route in mates if route.status is Status.WAITING)
    if not waiting:
        answered = (route for route in mates if route.status is Status.ANSWERED)
        draft.actions.append(Deliver(tuple(sorted(answered, key=lambda route: route.number))))
    elif guard := _guard(draft):
        draft.hold_all()
        draft.actions.append(guard)
    else:
        allowed = waiting[: draft.state.rules.max_turns - draft.state.turns]
        running = tuple(replace(route, status=Status.RUNNING) for route in allowed)
        draft.put((*running, *(route for route in draft.state.queue if route not in allowed)))
        draft.actions.append(RunGroup(running) if len(mates) > 1 else RunTurn(running[0]))


def _minutes(rules: Rules) -> str:
    return f"{rules.max_seconds / 60:g} minutes since the last human message"


def _guard(draft: _Draft) -> Paused | None:
    rules, state = draft.state.rules, draft.state
    reached = (
        (state.turns >= rules.max_turns, PauseKind.TURNS, f"{state.turns} turns since the last human message"),
        (
            draft.now - state.since > rules.max_seconds,
            PauseKind.TIME,
            _minutes(rules),
        ),
        (_reached(state.tokens, rules.max_tokens), PauseKind.TOKENS, f"{state.tokens:,} tokens are spent"),
        (_reached(state.cost_usd, rules.max_cost_usd), PauseKind.COST, f"${state.cost_usd:.2f} are spent"),
        (_reached(state.stale, rules.max_stale), PauseKind.LOOP, f"the last {state.stale} replies said nothing new"),
    )
    return next((Paused(kind, f"{reason} ({LIMIT_NAMES[kind]})") for over, kind, reason in reached if over), None)
