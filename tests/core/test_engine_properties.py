"""What is true of the engine after any sequence of events (design sections 2 and 5)."""

from __future__ import annotations

import copy
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from teamchat.core.actions import Action, Asked, Dropped, Idle, Paused, PauseKind, Queued, RunTurn, TurnFailed
from teamchat.core.engine import Rules, State, decide
from teamchat.core.engine_events import Event, HumanSpoke, Recovered, Resumed, ResumeMode, Stopped, TurnBegan, TurnEnded
from teamchat.core.route import Route, Status
from teamchat.core.routing import RouteRequest
from teamchat.core.store.database import Database
from teamchat.core.store.routes import find_route, load_state, save_state
from teamchat.core.store.sessions import create_session
from tests.core.talk import AI, HUMANS

MAX_SECONDS = 50.0
EVERYBODY = (*AI, *HUMANS)
wishes = st.lists(
    st.builds(RouteRequest, st.sampled_from(EVERYBODY), st.sampled_from([1, 2, 3])),
    max_size=3,
    unique_by=lambda wish: wish.target,
).map(tuple)
drops = st.one_of(st.just(()), st.just(()), st.none(), st.lists(st.sampled_from(EVERYBODY), max_size=2).map(tuple))


class AnyConversation(RuleBasedStateMachine):
    """Sends the engine every event that a coordinator may send, and keeps books beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.db = Database(Path(self.folder.name) / "teamchat.db")
        self.db.execute("PRAGMA synchronous = OFF")
        self.session = create_session(self.db, "team", None).id

    @initialize(max_turns=st.integers(1, 4))
    def begin(self, max_turns: int) -> None:
        self.team = Rules(AI, HUMANS, None, max_turns, MAX_SECONDS)
        self.state = State(self.team)
        self.now = 1000.0
        self.spoken = self.now
        self.messages = 0
        self.turns = 0
        self.turns_of: Counter[int] = Counter()
        self.queued: set[int] = set()
        self.left: dict[int, str] = {}  # how a route left the queue
        self.ending: Action = Idle()

    def teardown(self) -> None:
        try:
            if hasattr(self, "team"):
                self.drain()
        finally:
            self.db.close()
            self.folder.cleanup()

    def drain(self) -> None:
        """Whatever happened, resuming and answering brings the conversation to its end: nothing is lost."""
        for _ in range(3 * len(self.state.queue) + 3):
            if self.running:
                self.began()
                self.took(TurnEnded(self.now, self.running.number, self.message()))
            elif isinstance(self.ending, Asked):
                self.took(HumanSpoke(self.now, self.message(), self.ending.route.target))
            else:
                self.took(Resumed(self.now))
        assert self.state.queue == ()
        assert self.queued == set(self.left)

    # --- events

    def took(self, event: Event) -> None:
        before, copied = self.state, copy.deepcopy(self.state)
        self.state, actions = decide(before, event)
        assert before == copied, "decide changed its input"
        assert decide(before, event) == (self.state, actions), "decide is not a function"
        self.keep_books(before, event, actions)
        with self.db.transaction():
            dropped = [action.route for action in actions if isinstance(action, Dropped)]
            save_state(self.db, self.session, before, self.state, dropped)

    def keep_books(self, before: State, event: Event, actions: tuple[Action, ...]) -> None:
        if isinstance(event, HumanSpoke | Resumed):
            self.spoken, self.turns = event.now, 0
        elif isinstance(event, TurnEnded) and event.reply is not None:
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
            ended = isinstance(event, TurnEnded) and event.reply is not None and event.route == number
            answered = isinstance(event, HumanSpoke) and any(
                (route.number, route.target, route.status) == (number, event.speaker, Status.ASKED)
                for route in before.queue
            )
            assert ended or answered, f"{number} was lost"
            self.leaves(number, "done")
        if not isinstance(event, TurnBegan):
            assert [action.final for action in actions] == [False] * (len(actions) - 1) + [True]
            self.ending = actions[-1]
        if actions and isinstance(actions[-1], RunTurn):
            assert self.turns < self.team.max_turns
            assert self.now - self.spoken <= MAX_SECONDS
        if not isinstance(event, Resumed):
            was_held = {route for route in before.queue if route.status is Status.HELD}
            freed = {route.number for route in was_held - set(self.state.queue)} - set(self.left)
            assert not freed, "only resume moves what is held"

    def was_asked_for(self, route: Route, before: State, event: Event) -> None:
        match event:
            case HumanSpoke(message=message, speaker=speaker):
                expected = (message, speaker, message)
            case TurnEnded(reply=str(reply)):
                ended = next(other for other in before.queue if other.number == event.route)
                expected = (reply, ended.target, ended.request)
            case _:
                raise AssertionError(event)
        assert (route.parent, route.by, route.request) == expected

    def leaves(self, number: int, how: str) -> None:
        assert number in self.queued
        assert number not in self.left, f"{number} was {self.left.get(number)} and is {how}"
        self.left[number] = how

    def message(self) -> str:
        self.messages += 1
        return f"msg-{self.messages}"

    def began(self) -> None:
        assert self.running
        self.turns_of[self.running.number] += 1
        self.took(TurnBegan(self.now, self.running.number, self.running.as_of or "msg-1"))

    @property
    def running(self) -> Route | None:
        return next((route for route in self.state.queue if route.status is Status.RUNNING), None)

    @rule(seconds=st.sampled_from([1, 40, 60]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @precondition(lambda self: self.running is None)
    @rule(speaker=st.sampled_from(HUMANS), wishes=wishes, drops=drops)
    def somebody_speaks(self, speaker: str, wishes: tuple[RouteRequest, ...], drops: tuple[str, ...] | None) -> None:
        self.took(HumanSpoke(self.now, self.message(), speaker, wishes, drops))

    @precondition(lambda self: self.running is not None)
    @rule(wishes=wishes, drops=drops)
    def the_turn_succeeds(self, wishes: tuple[RouteRequest, ...], drops: tuple[str, ...] | None) -> None:
        assert self.running
        route = self.running
        self.began()
        wishes = tuple(wish for wish in wishes if wish.target != route.target)
        self.took(TurnEnded(self.now, route.number, self.message(), wishes, drops))

    @precondition(lambda self: self.running is not None)
    @rule(began=st.booleans())
    def the_turn_fails(self, began: bool) -> None:
        assert self.running
        route = self.running
        if began:
            self.began()
        self.took(TurnEnded(self.now, route.number, None))
        assert isinstance(self.ending, TurnFailed)
        assert self.state.queue[0].number == route.number

    @precondition(lambda self: self.running is not None)
    @rule()
    def the_user_stops_it(self) -> None:
        self.took(Stopped(self.now))
        assert isinstance(self.ending, Paused)
        assert self.ending.kind is PauseKind.INTERRUPTED

    @rule(began=st.booleans())
    def it_is_killed_and_opened_again(self, began: bool) -> None:
        if began and self.running:
            self.began()
        before = self.state
        self.state = load_state(self.db, self.session, self.team)
        assert self.state == before
        self.took(Recovered(self.now))
        assert self.running is None

    @precondition(lambda self: self.running is None)
    @rule(mode=st.sampled_from(ResumeMode))
    def somebody_resumes(self, mode: ResumeMode) -> None:
        held = self.state.held
        self.took(Resumed(self.now, mode))
        gone = {"retry": 0, "skip": 1, "drop": len(held)}[mode]
        assert [self.left.get(route.number) for route in held[:gone]] == ["dropped"] * min(gone, len(held))
        assert all(route.number not in self.left for route in held[gone:])

    # --- what is always true

    @invariant()
    def every_route_is_in_one_place(self) -> None:
        numbers = [route.number for route in self.state.queue]
        assert len(set(numbers)) == len(numbers)
        assert set(numbers) | set(self.left) == self.queued
        assert not set(numbers) & set(self.left)
        assert all(number < self.state.next_route for number in self.queued)

    @invariant()
    def one_route_runs_and_it_stands_first(self) -> None:
        running = [route for route in self.state.queue if route.status is Status.RUNNING]
        assert running == list(self.state.queue[: len(running)])
        assert (replace(running[0], as_of=None, attempt=0) if running else None) == (
            replace(self.ending.route, as_of=None, attempt=0) if isinstance(self.ending, RunTurn) else None
        )

    @invariant()
    def attempts_are_the_turns_that_began(self) -> None:
        assert all(route.attempt == self.turns_of[route.number] for route in self.state.queue)
        assert all((route.as_of is None) == (route.attempt == 0) for route in self.state.queue)

    @invariant()
    def only_agents_run_and_only_people_are_asked(self) -> None:
        assert all(route.target in AI for route in self.state.queue if route.status is Status.RUNNING)
        assert all(route.target in HUMANS for route in self.state.queue if route.status is Status.ASKED)

    @invariant()
    def no_turn_begins_over_a_guard(self) -> None:
        assert self.state.turns == self.turns <= self.team.max_turns

    @invariant()
    def nothing_waits_unless_somebody_speaks(self) -> None:
        """A queue that stands still is held, or waits for a person: it never just stops."""
        if isinstance(self.ending, Idle | Paused | TurnFailed):
            asked = self.state.asked is not None
            assert all(route.status in (Status.HELD, Status.ASKED) or asked for route in self.state.queue)

    @invariant()
    def what_is_loaded_is_what_was_saved(self) -> None:
        assert load_state(self.db, self.session, self.team) == self.state
        for number, how in self.left.items():
            found = find_route(self.db, self.session, number)
            assert found is not None
            assert found.status == how


TestAnyConversation = AnyConversation.TestCase
TestAnyConversation.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
