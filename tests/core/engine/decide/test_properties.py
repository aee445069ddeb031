"""What is true of the engine after any sequence of events."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import reduce
from itertools import cycle
from pathlib import Path
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from teamchat.core.engine.decide import decide
from teamchat.core.engine.draft import MAX_WAITING
from teamchat.core.engine.events import (
    Action,
    Deliver,
    Dropped,
    Event,
    GroupDelivered,
    GroupFailed,
    GroupRan,
    HumanAsked,
    HumanSpoke,
    Idle,
    MemberAnswered,
    NotDropped,
    Paused,
    PauseKind,
    Queued,
    Recovered,
    Redone,
    Refused,
    Released,
    Resumed,
    ResumeMode,
    Retargeted,
    RunGroup,
    RunTurn,
    Spent,
    StopRequested,
    TurnBegan,
    TurnEnded,
    TurnFailed,
    Undone,
)
from teamchat.core.engine.state import Route, RouteStatus, Rules, State
from teamchat.core.routing.requests import RouteRequest
from teamchat.core.store.database import Database
from teamchat.core.store.routes import all_routes, load_state, save_state
from teamchat.core.store.sessions import create_session
from tests.core.engine.driver import AI, HUMANS
from tests.trials import trials

MAX_SECONDS = 50.0
EVERYBODY = (*AI, *HUMANS)
Drops = tuple[str, ...] | None
PRIORITIES: tuple[Literal[1, 2, 3], ...] = (1, 2, 3)
priorities = st.sampled_from(PRIORITIES)


def message(*names: str) -> st.SearchStrategy[tuple[RouteRequest, ...]]:
    """What one message may ask for: some of `names` in any order, here and there several of them as a group."""

    def build(order: list[str], cuts: list[tuple[int, Literal[1, 2, 3]]]) -> tuple[RouteRequest, ...]:
        wishes: list[RouteRequest] = []
        for group, (size, priority) in enumerate(cuts):
            together, order = order[:size], order[size:]
            number = group if len(together) > 1 else None
            wishes += [RouteRequest(name, priority, number) for name in together]
        return tuple(wishes)

    some = st.lists(st.sampled_from(names), unique=True)
    return st.builds(build, some, st.lists(st.tuples(st.integers(1, 3), priorities), max_size=4))


wishes = message(*EVERYBODY)
drops = st.one_of(st.just(()), st.just(()), st.none(), st.lists(st.sampled_from(EVERYBODY), max_size=2).map(tuple))

costs = st.tuples(st.sampled_from([0, 1, 60]), st.integers(0, 2))  # seconds, tokens
fates = st.sampled_from(["answers", "answers", "fails", "cannot begin"])


class AnyConversation(RuleBasedStateMachine):
    """Sends the engine every event that a coordinator may send, and keeps books beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.db = Database(Path(self.folder.name) / "teamchat.db")
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute("PRAGMA foreign_keys = OFF")  # there are no turns, and no messages
        self.session = create_session(self.db, "team", None).id

    @initialize(
        max_turns=st.sampled_from([1, 2, 3, 9]),
        max_tokens=st.sampled_from([None, 5]),
        max_stale=st.sampled_from([None, 2]),
    )
    def begin(self, max_turns: int, max_tokens: int | None, max_stale: int | None) -> None:
        self.team = Rules(AI, HUMANS, None, max_turns, MAX_SECONDS, max_tokens, None, max_stale)
        self.state = State(self.team)
        self.events: list[Event] = []
        self.now = 1000.0
        self.spoken = self.now
        self.messages = 0
        self.turns = 0
        self.turns_of: Counter[int] = Counter()
        self.answers: dict[int, int] = {}  # the turn that keeps the reply of a route
        self.over: set[int] = set()  # of the group that runs, who has failed
        self.queued: set[int] = set()
        self.left: dict[int, str] = {}  # how a route left the queue
        self.began: list[State] = []  # the states before the turns, one for all turns of a group
        self.ending: Action = Idle()

    def teardown(self) -> None:
        try:
            if hasattr(self, "team"):
                self.drain()
                self.replay()
        finally:
            self.db.close()
            self.folder.cleanup()

    def drain(self) -> None:
        """Whatever happened, resuming and answering brings the conversation to its end: nothing is lost."""
        for _ in range(5 * len(self.state.queue) + 5):
            match self.ending:
                case RunTurn(route=route):
                    self.begins(route.number)
                    self.took(TurnEnded(self.now, route.number, self.message()))
                case RunGroup():
                    for route in self.running:
                        self.answers_now(route)
                    self.took(GroupRan(self.now))
                case Deliver(routes=routes):
                    self.deliver(routes, [], True)
                case HumanAsked(route=route):
                    self.took(HumanSpoke(self.now, self.message(), route.target))
                case _:
                    aside = tuple(route.number for route in self.state.aside)
                    self.took(Resumed(self.now, only=None if self.state.held else aside))
        assert self.state.queue == ()
        assert self.queued == set(self.left)

    def replay(self) -> None:
        """The order is a function of the events alone."""
        assert reduce(lambda state, event: decide(state, event)[0], self.events, State(self.team)) == self.state

    # --- events

    def took(self, event: Event) -> None:
        before = self.state
        self.events.append(event)
        self.state, actions = decide(before, event)
        self.keep_books(before, event, actions)
        with self.db.transaction():
            dropped = [action.route for action in actions if isinstance(action, Dropped)]
            save_state(self.db, self.session, before, self.state, dropped)

    def keep_books(self, before: State, event: Event, actions: tuple[Action, ...]) -> None:
        match event:
            case HumanSpoke() | Resumed():
                self.spoken, self.turns = event.now, 0
            case TurnEnded(reply=str()) | MemberAnswered():
                self.turns += 1
        for action in actions:
            if isinstance(action, Queued):
                assert action.route.number not in self.queued
                self.queued.add(action.route.number)
                self.was_asked_for(action.route, before, event)
            elif isinstance(action, Dropped):
                self.leaves(action.route.number, "dropped")
        gone = {route.number for route in before.queue} - {route.number for route in self.state.queue} - set(self.left)
        for number in gone:
            assert self.ended(number, before, event), f"{number} was lost"
            self.leaves(number, "done")
        if actions:
            assert [action.final for action in actions] == [False] * (len(actions) - 1) + [True]
            self.ending = actions[-1]
            self.over = set()
        if isinstance(self.ending, RunTurn | RunGroup) and actions:
            self.no_guard_was_passed(len(self.running))
        if not isinstance(event, Resumed | Undone | Redone):
            held = {route.number for route in before.held}
            freed = held - {route.number for route in self.state.held} - set(self.left)
            named = set(event.routes) if isinstance(event, Released) else set()
            if isinstance(event, HumanSpoke):
                stopped = [route for route in before.held if route.number in event.aside]
                named |= {mate.number for route in stopped for mate in before.mates(route)}
            assert freed <= named, "only a resume, a release and what sets aside move what is held"
            aside = {route.number for route in before.aside}
            assert aside <= {route.number for route in self.state.aside} | set(self.left), "only a resume moves it"

    def no_guard_was_passed(self, starting: int) -> None:
        state = self.state
        assert self.team.max_turns is not None
        assert self.turns + starting <= self.team.max_turns
        assert self.now - self.spoken <= MAX_SECONDS
        assert self.team.max_tokens is None or state.tokens < self.team.max_tokens
        assert self.team.max_stale is None or state.stale < self.team.max_stale

    def was_asked_for(self, route: Route, before: State, event: Event) -> None:
        ends = event.ends if isinstance(event, GroupDelivered) else (event,)
        expected = []
        for one in ends:
            match one:
                case HumanSpoke(message=said, speaker=speaker):
                    expected.append((said, speaker, said))
                case TurnEnded(reply=str(reply)):
                    ended = next(other for other in before.queue if other.number == one.route)
                    expected.append((reply, one.speaker or ended.target, ended.request))
        assert (route.parent, route.by, route.request) in expected

    @staticmethod
    def ended(number: int, before: State, event: Event) -> bool:
        """Whether the event is the regular end of a route that is no longer queued."""
        route = next(route for route in before.queue if route.number == number)
        match event:
            case TurnEnded(reply=str()):
                return (event.route, route.status) == (number, RouteStatus.RUNNING)
            case GroupDelivered(ends=ends):
                return route.status is RouteStatus.ANSWERED and number in [end.route for end in ends]
            case HumanSpoke(speaker=speaker, answers=answers):
                return (route.target, route.status) == (speaker, RouteStatus.ASKED) and answers
        return False

    def leaves(self, number: int, how: str) -> None:
        assert number in self.queued
        assert number not in self.left, f"{number} was {self.left.get(number)} and is {how}"
        self.left[number] = how

    def message(self) -> str:
        self.messages += 1
        return f"msg-{self.messages}"

    def begins(self, number: int) -> None:
        assert number not in self.answers, "a turn whose reply is kept was run again"
        route = next(route for route in self.running if route.number == number)
        if isinstance(self.ending, RunTurn) or not any(
            mate.status is RouteStatus.ANSWERED for mate in self.group_of(route)
        ):
            self.began.append(self.state)
        self.turns_of[number] += 1
        self.took(TurnBegan(self.now, number, self.state.answers(route)))

    def answers_now(self, route: Route) -> None:
        self.begins(route.number)
        self.answers[route.number] = len(self.answers) + 1
        self.took(MemberAnswered(self.now, route.number, self.answers[route.number]))

    def deliver(
        self, routes: tuple[Route, ...], wished: list[tuple[RouteRequest, ...]], new: bool, dropped: Drops = ()
    ) -> None:
        padded = [*wished, *((),) * len(routes)]
        ends = (
            TurnEnded(
                self.now,
                route.number,
                self.message(),
                tuple(wish for wish in wished if wish.target != route.target),
                dropped,
                new=new,
            )
            for route, wished in zip(routes, padded, strict=False)
        )
        self.took(GroupDelivered(self.now, tuple(ends)))

    @property
    def running(self) -> list[Route]:
        return [route for route in self.state.queue if route.status is RouteStatus.RUNNING]

    @property
    def in_group(self) -> list[Route]:
        """Those of the group that runs whose turns are not over."""
        return [route for route in self.running if route.number not in self.over and isinstance(self.ending, RunGroup)]

    @property
    def between_turns(self) -> bool:
        """True if a turn or a group is to run, and nobody of it has begun."""
        fresh = not any(route.status is RouteStatus.ANSWERED for route in self.state.queue) and not self.over
        return isinstance(self.ending, RunTurn | RunGroup) and fresh

    @property
    def rests(self) -> bool:
        return not isinstance(self.ending, RunTurn | RunGroup | Deliver)

    @precondition(lambda self: self.rests)
    @rule(speaker=st.sampled_from(HUMANS), wishes=wishes, drops=drops, answers=st.booleans())
    def somebody_speaks(self, speaker: str, wishes: tuple[RouteRequest, ...], drops: Drops, *, answers: bool) -> None:
        self.took(HumanSpoke(self.now, self.message(), speaker, wishes, drops, answers))

    @precondition(lambda self: self.state.held and (self.rests or self.between_turns))
    @rule(data=st.data(), wishes=wishes)
    def somebody_speaks_in_place_of_what_was_stopped(
        self, data: st.DataObject, wishes: tuple[RouteRequest, ...]
    ) -> None:
        numbers = data.draw(st.lists(st.sampled_from([route.number for route in self.state.held]), unique=True))
        self.took(HumanSpoke(self.now, self.message(), "bob", wishes, aside=tuple(numbers)))
        assert set(numbers) <= {route.number for route in self.state.aside} | set(self.left)

    @precondition(lambda self: self.between_turns)
    @rule(speaker=st.sampled_from(HUMANS), wishes=wishes, drops=drops)
    def somebody_has_typed_ahead(self, speaker: str, wishes: tuple[RouteRequest, ...], drops: Drops) -> None:
        waited = {route.number for route in self.state.queue if route.status is not RouteStatus.ASKED}
        self.took(HumanSpoke(self.now, self.message(), speaker, wishes, drops))
        assert waited <= {route.number for route in self.state.queue} | set(self.left)

    @precondition(lambda self: self.state.held and (self.rests or self.between_turns))
    @rule(data=st.data())
    def held_routes_are_released(self, data: st.DataObject) -> None:
        numbers = data.draw(st.lists(st.sampled_from([route.number for route in self.state.held]), unique=True))
        self.took(Released(self.now, tuple(numbers)))
        if not isinstance(self.ending, Paused):
            assert not [route for route in self.state.held if route.number in numbers]

    @precondition(lambda self: self.rests)
    @rule(names=st.permutations(AI), more=wishes)
    def somebody_asks_a_group(self, names: list[str], more: tuple[RouteRequest, ...]) -> None:
        people = tuple(wish for wish in more if wish.target in HUMANS)
        group = tuple(RouteRequest(name, 2, 7) for name in names)
        self.took(HumanSpoke(self.now, self.message(), "bob", group + people))

    @precondition(lambda self: isinstance(self.ending, RunTurn))
    @rule(wishes=wishes, drops=drops, speaker=st.sampled_from([None, *AI]), new=st.booleans(), cost=costs)
    def the_turn_succeeds(
        self, wishes: tuple[RouteRequest, ...], drops: Drops, speaker: str | None, new: bool, cost: tuple[int, int]
    ) -> None:
        route = self.running[0]
        self.begins(route.number)
        self.spends(cost)
        wishes = tuple(wish for wish in wishes if wish.target != (speaker or route.target))
        self.took(TurnEnded(self.now, route.number, self.message(), wishes, drops, speaker, new))

    def spends(self, cost: tuple[int, int]) -> None:
        seconds, tokens = cost
        self.now += seconds
        self.took(Spent(self.now, tokens))

    @precondition(lambda self: isinstance(self.ending, RunTurn))
    @rule(began=st.booleans())
    def the_turn_fails(self, began: bool) -> None:
        number = self.running[0].number
        if began:
            self.begins(number)
        self.took(TurnEnded(self.now, number, None))
        assert isinstance(self.ending, TurnFailed)
        assert self.state.queue[0].number == number

    @precondition(lambda self: isinstance(self.ending, RunGroup))
    @rule(data=st.data(), fates=st.lists(fates, max_size=3), ends=st.booleans(), cost=costs)
    def some_of_the_group_speak(self, data: st.DataObject, fates: list[str], ends: bool, cost: tuple[int, int]) -> None:
        """Until all have, and that was said, it may be killed or stopped. Who has not begun by its end had to wait."""
        self.spends(cost)
        for fate, route in zip(fates, data.draw(st.permutations(self.in_group)), strict=False):
            if fate == "answers":
                self.answers_now(route)
            else:
                self.over.add(route.number)
            if fate == "fails":
                self.begins(route.number)
        if ends:
            self.took(GroupRan(self.now, tuple(self.over)))
            assert not self.running or isinstance(self.ending, RunGroup)

    @precondition(lambda self: isinstance(self.ending, Deliver))
    @rule(wished=st.lists(wishes, max_size=3), dropped=drops, new=st.booleans())
    def the_group_is_delivered(self, wished: list[tuple[RouteRequest, ...]], dropped: Drops, new: bool) -> None:
        assert isinstance(self.ending, Deliver)
        failed = {route.number for route in self.group_of(self.ending.routes[0]) if route.status is RouteStatus.HELD}
        self.deliver(self.ending.routes, wished, new, dropped)
        told: tuple[Route, ...] = self.ending.routes if isinstance(self.ending, GroupFailed) else ()
        assert {route.number for route in told} == failed

    @precondition(lambda self: not self.rests)
    @rule()
    def it_is_stopped(self) -> None:
        self.took(StopRequested(self.now))
        assert isinstance(self.ending, Paused)
        assert self.ending.kind is PauseKind.INTERRUPTED

    @precondition(lambda self: self.state.queue)
    @rule(began=st.booleans())
    def it_is_killed_and_opened_again(self, began: bool) -> None:
        if began and self.running and self.running[0].number not in self.over:
            self.begins(self.running[0].number)
        before = self.state
        self.state = load_state(self.db, self.session, self.team)
        assert self.state == before
        self.took(Recovered(self.now))
        assert self.running == []

    @precondition(lambda self: self.rests)
    @rule(mode=st.sampled_from([ResumeMode.RETRY, *ResumeMode]))
    def somebody_resumes(self, mode: ResumeMode) -> None:
        queue, aside = self.state.queue, self.state.aside
        stopped = [
            route for route in queue if route.status in (RouteStatus.HELD, RouteStatus.ASKED) and route.answer is None
        ]
        self.took(Resumed(self.now, mode))
        gone = {"retry": [], "skip": stopped[:1], "drop": list(queue)}[mode]
        assert [route.number for route in queue if self.left.get(route.number) == "dropped"] == [
            route.number for route in gone
        ]
        assert self.state.aside == (() if mode is ResumeMode.DROP else aside), "only a resume that names it runs it"

    @precondition(lambda self: self.rests and any(route.target in AI for route in self.state.held))
    @rule(data=st.data())
    def a_held_call_gets_another_member(self, data: st.DataObject) -> None:
        before = data.draw(st.sampled_from([route for route in self.state.held if route.target in AI]))
        target = data.draw(st.sampled_from(AI))
        self.took(Retargeted(self.now, before.number, target))
        first = before.instead_of or before.target
        assert self.state.route(before.number) == replace(
            before, target=target, instead_of=None if target == first else first
        )

    @precondition(lambda self: self.rests and self.began)
    @rule(data=st.data(), seconds=st.sampled_from([0, 60]), redone=st.booleans())
    def a_turn_is_undone(self, data: st.DataObject, seconds: int, redone: bool) -> None:
        """Whatever happened since, the queue is that from before the turn, on hold, and so are the counters."""
        at = data.draw(st.integers(0, len(self.began) - 1))
        before, now, books = self.began[at], self.state, (dict(self.left), dict(self.answers), self.turns, self.spoken)
        self.now += seconds
        self.put_back(before, Undone(self.now, before))
        assert [replace(route, status=RouteStatus.HELD) for route in before.queue] == [
            replace(route, status=RouteStatus.HELD) for route in self.state.queue
        ]
        assert all(
            route.status in (RouteStatus.HELD, RouteStatus.ASKED, RouteStatus.ASIDE) for route in self.state.queue
        )
        assert self.state == replace(
            before, queue=self.state.queue, next_route=now.next_route, tokens=now.tokens, cost_usd=now.cost_usd
        )
        if redone:
            ending = self.ending
            self.put_back(now, Redone(self.now, now))
            assert self.state == now
            assert isinstance(ending, Idle)
            left, self.answers, self.turns, self.spoken = books
            assert left.keys() == self.left.keys()
        else:
            del self.began[at:]

    def put_back(self, before: State, event: Undone | Redone) -> None:
        """Send the event of an undo or a redo with the books as they were then."""
        queue = {route.number: route for route in before.queue}
        self.left = {number: how for number, how in self.left.items() if number not in queue}
        self.took(event)
        self.turns_of.update({number: route.attempt - self.turns_of[number] for number, route in queue.items()})
        self.answers = {number: route.answer for number, route in queue.items() if route.answer is not None}
        self.turns, self.spoken = before.turns, before.since

    # --- what is always true

    @invariant()
    def every_route_is_in_one_place(self) -> None:
        numbers = [route.number for route in self.state.queue]
        assert len(set(numbers)) == len(numbers)
        assert set(numbers) | set(self.left) == self.queued
        assert not set(numbers) & set(self.left)
        assert all(number < self.state.next_route for number in self.queued)

    @invariant()
    def what_runs_stands_first(self) -> None:
        assert self.running == [route for route in self.state.queue if route.status is RouteStatus.RUNNING]
        started = {RunTurn: 1, RunGroup: 9}.get(type(self.ending), 0)
        assert len(self.running) <= started
        if isinstance(self.ending, RunGroup):
            assert {route.number for route in self.running} <= {route.number for route in self.ending.routes}
            assert len({(route.parent, route.group) for route in self.ending.routes}) == 1
            assert all(route.group is not None for route in self.ending.routes)
        if isinstance(self.ending, RunTurn):
            assert [route.number for route in self.running] == [self.ending.route.number]

    @invariant()
    def attempts_are_the_turns_that_began(self) -> None:
        assert all(route.attempt == self.turns_of[route.number] for route in self.state.queue)
        assert all(route.as_of for route in self.state.queue if route.attempt)

    def group_of(self, one: Route) -> list[Route]:
        return [
            route
            for route in self.state.queue
            if route.number == one.number
            or (
                ((route.parent, route.group) == (one.parent, one.group) and one.group is not None)
                and route.target in AI
            )
        ]

    @invariant()
    def a_group_answers_one_message(self) -> None:
        for route in self.state.queue:
            if route.target in AI:
                assert len({mate.as_of for mate in self.group_of(route)}) == 1

    @invariant()
    def replies_are_kept_until_they_are_delivered(self) -> None:
        kept = {route.number: route.answer for route in self.state.queue if route.answer is not None}
        assert kept == {number: turn for number, turn in self.answers.items() if number not in self.left}
        assert all(
            (route.answer is not None) == (route.status is RouteStatus.ANSWERED)
            for route in self.state.queue
            if route.status not in (RouteStatus.HELD, RouteStatus.ASIDE)
        )

    @invariant()
    def only_complete_groups_are_delivered_in_the_order_named(self) -> None:
        if isinstance(self.ending, Deliver):
            numbers = [route.number for route in self.ending.routes]
            assert numbers == sorted(numbers)
            mates = self.group_of(self.ending.routes[0])
            assert sorted(mate.number for mate in mates if mate.status is RouteStatus.ANSWERED) == numbers
            assert all(mate.status in (RouteStatus.ANSWERED, RouteStatus.HELD) for mate in mates)

    @invariant()
    def only_agents_run_and_only_people_are_asked(self) -> None:
        assert all(route.target in AI for route in self.state.queue if route.status is RouteStatus.RUNNING)
        assert all(route.target in HUMANS for route in self.state.queue if route.status is RouteStatus.ASKED)

    @invariant()
    def no_turn_begins_over_a_guard(self) -> None:
        assert self.team.max_turns is not None
        assert self.state.turns == self.turns <= self.team.max_turns

    @invariant()
    def nothing_waits_unless_somebody_speaks(self) -> None:
        """A queue that stands still is held, set aside, or waits for a person: it never just stops."""
        if self.rests:
            still = (RouteStatus.HELD, RouteStatus.ASKED, RouteStatus.ASIDE)
            assert self.state.asked or all(route.status in still for route in self.state.queue)

    @invariant()
    def what_is_loaded_is_what_was_saved(self) -> None:
        assert load_state(self.db, self.session, self.team) == self.state
        stored = {route.number: route.status for route in all_routes(self.db, self.session)}
        assert self.left.items() <= stored.items()


TestAnyConversation = AnyConversation.TestCase
TestAnyConversation.settings = settings(max_examples=trials(40), stateful_step_count=25, deadline=None)


# --- replies that would go on for ever

CROWD = tuple(f"a{number}" for number in range(15))


@st.composite
def replies(draw: st.DrawFn) -> tuple[tuple[RouteRequest, ...], Drops, bool]:
    """A reply that names anybody, drops anybody, and may say nothing new."""
    wanted = draw(message(*CROWD, *HUMANS))
    everybody = tuple(RouteRequest(name, draw(priorities)) for name in CROWD)
    return draw(st.sampled_from([wanted, everybody])), draw(drops), draw(st.booleans())


@settings(max_examples=trials(50), deadline=None)
@given(
    said=st.lists(replies(), min_size=1, max_size=5),
    max_turns=st.integers(1, 20),
    max_tokens=st.sampled_from([None, 7]),
    max_cost=st.sampled_from([None, 7.0]),
    max_stale=st.sampled_from([None, 3]),
    max_seconds=st.sampled_from([1e9, 9.0]),
)
def test_no_replies_however_malicious_get_over_the_guards(
    said: list[tuple[tuple[RouteRequest, ...], Drops, bool]],
    max_turns: int,
    max_tokens: int | None,
    max_cost: float | None,
    max_stale: int | None,
    max_seconds: float,
) -> None:
    """A turn spends a token and a dollar, a step takes a second; a message or a resume grants one round more."""
    rules = Rules(CROWD, HUMANS, None, max_turns, max_seconds, max_tokens, max_cost, max_stale)
    now = 0.0
    reply = cycle(said)
    state, actions = decide(State(rules), HumanSpoke(0.0, "msg-0", "kailai", tuple(map(RouteRequest, CROWD))))
    for _ in range(3):
        turns, since = 0, now
        for step in range(10 * max_turns + 10):
            assert all(isinstance(action, Queued | Dropped | NotDropped | Refused) for action in actions[:-1])
            if isinstance(actions[-1], RunTurn | RunGroup):
                assert now - since <= max_seconds
                assert max_tokens is None or state.tokens < max_tokens
                assert max_cost is None or state.cost_usd < max_cost
            now += 1
            match actions[-1]:
                case RunTurn(route=route):
                    events = [*turn(now, route), ended(now, route, f"msg-{step}", *next(reply))]
                    turns += 1
                case RunGroup(routes=routes):
                    events = [event for route in routes for event in turn(now, route)]
                    events += [MemberAnswered(now, route.number, route.number) for route in routes]
                    events.append(GroupRan(now))
                    turns += len(routes)
                case Deliver(routes=routes):
                    ends = (ended(now, route, f"msg-{step}.{route.number}", *next(reply)) for route in routes)
                    events = [GroupDelivered(now, tuple(ends))]
                case _:
                    break
            for event in events:
                state, actions = decide(state, event)
            assert len(state.queue) - sum(route.status is RouteStatus.RUNNING for route in state.queue) <= MAX_WAITING
        else:
            raise AssertionError("it goes on and on")
        assert turns <= max_turns
        asked = state.asked
        again = HumanSpoke(now, "msg-0", asked.target) if asked else Resumed(now)
        state, actions = decide(state, again)


def turn(now: float, route: Route) -> list[Event]:
    return [TurnBegan(now, route.number, "msg-0"), Spent(now, 1, 1.0)]


def ended(
    now: float, route: Route, reply: str, wanted: tuple[RouteRequest, ...], dropped: Drops, new: bool
) -> TurnEnded:
    requests = tuple(wish for wish in wanted if wish.target != route.target)
    return TurnEnded(now, route.number, reply, requests, dropped, new=new)
