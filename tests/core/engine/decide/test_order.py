"""Who speaks when is a function of what was said alone: not of clocks, of who of a group was faster, or of crashes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.core.engine.decide import decide
from teamchat.core.engine.events import (
    Action,
    Deliver,
    Event,
    GroupDelivered,
    GroupRan,
    HumanSpoke,
    Idle,
    MemberAnswered,
    Recovered,
    Resumed,
    RunGroup,
    RunTurn,
    Spent,
    TurnBegan,
    TurnEnded,
)
from teamchat.core.engine.state import Route, Rules, State
from teamchat.core.routing.requests import RouteRequest
from tests.core.engine.decide.test_properties import EVERYBODY, Drops, drops, wishes
from tests.core.engine.driver import AI, HUMANS
from tests.trials import trials

RULES = Rules(AI, HUMANS, max_turns=10**6, max_seconds=10**9)
LAST = 12  # messages later than this one ask for nobody, so that every conversation has an end
Said = tuple[tuple[RouteRequest, ...], Drops]


class Killed(BaseException):
    """What SIGKILL is to a process."""


@dataclass
class Telling:
    """A conversation whose members and people answer by who they are and which message they read.

    The process is killed right after each write whose number is in `kills`. Of a group the `faster` ones answer first;
    every write takes `seconds`.
    """

    script: list[Said]
    kills: frozenset[int] = frozenset()
    faster: tuple[str, ...] = AI
    seconds: float = 0.0
    now: float = 1000.0
    writes: int = 0
    state: State = field(default_factory=lambda: State(RULES))
    messages: list[tuple[str | None, ...]] = field(default_factory=list)
    answered: set[int] = field(default_factory=set)

    def tell(self) -> list[tuple[str | None, ...]]:
        """Every message, with whom it is from, to what, and what it serves."""
        ending: Action | None = None
        while True:
            try:
                ending = self.go_on(ending)
            except Killed:
                self.state, _ = decide(self.state, Recovered(self.now))
                ending = None
            if isinstance(ending, Idle):
                return self.messages

    def go_on(self, ending: Action | None) -> Action:
        """What the coordinator does, and where it stands still the people."""
        match ending:
            case RunTurn(route=route):
                self.begin(route)
                return self.write(Spent(self.now, 1), self.ended(route))
            case RunGroup(routes=routes):
                for route in sorted(routes, key=lambda route: self.faster.index(route.target)):
                    self.begin(route)
                    self.answered.add(route.number)
                    self.write(Spent(self.now, 1), MemberAnswered(self.now, route.number, 1))
                return self.write(GroupRan(self.now))
            case Deliver(routes=routes):
                ends = tuple(self.ended(route, place) for place, route in enumerate(routes, 1))
                return self.write(GroupDelivered(self.now, ends))
        if self.state.held:
            return self.write(Resumed(self.now))
        if self.messages and not self.state.asked:
            return Idle()
        speaker = self.state.asked.target if self.state.asked else HUMANS[0]
        requests, drops = self.wanted(speaker, len(self.messages))
        return self.write(HumanSpoke(self.now, self.name(1), speaker, requests, drops))

    def begin(self, route: Route) -> None:
        assert route.number not in self.answered, "who has answered was run again"
        self.write(TurnBegan(self.now, route.number, self.state.answers(route)))

    def ended(self, route: Route, place: int = 1) -> TurnEnded:
        read = self.state.route(route.number).as_of
        assert read is not None
        return TurnEnded(self.now, route.number, self.name(place), *self.wanted(route.target, int(read)))

    def name(self, place: int) -> str:
        """Of a message `place` after the newest."""
        return str(len(self.messages) + place)

    def wanted(self, speaker: str, read: int) -> Said:
        requests, drops = self.script[(5 * read + EVERYBODY.index(speaker)) % len(self.script)]
        return (tuple(wish for wish in requests if wish.target != speaker), drops) if read < LAST else ((), ())

    def write(self, *events: Event) -> Action:
        """One transaction, after which the process may be killed."""
        new = [message for event in events for message in self.said(event)]
        actions: tuple[Action, ...] = ()
        for event in events:
            self.state, actions = decide(self.state, event)
        self.messages += new
        self.now += self.seconds
        self.writes += 1
        if self.writes in self.kills:
            raise Killed
        return actions[-1] if actions else Idle()

    def said(self, event: Event) -> list[tuple[str | None, ...]]:
        match event:
            case HumanSpoke(message=message, speaker=speaker):
                return [(message, speaker)]
            case TurnEnded(reply=reply, route=number):
                route = self.state.route(number)
                return [(reply, route.target, route.as_of, route.parent, route.by, route.request)]
            case GroupDelivered(ends=ends):
                return [message for end in ends for message in self.said(end)]
        return []


said = st.lists(st.tuples(wishes, drops), min_size=1, max_size=9)


@settings(max_examples=trials(80), deadline=None)
@given(
    script=said,
    kills=st.frozensets(st.integers(1, 80), max_size=12),
    faster=st.permutations(AI).map(tuple),
    seconds=st.sampled_from([0.0, 0.5, 3600.0]),
)
def test_neither_crashes_nor_clocks_nor_who_is_faster_change_the_order(
    script: list[Said], kills: frozenset[int], faster: tuple[str, ...], seconds: float
) -> None:
    assert Telling(script, kills, faster, seconds).tell() == Telling(script).tell()


@settings(max_examples=trials(6), deadline=None)
@given(script=said)
def test_a_crash_after_any_write_changes_nothing(script: list[Said]) -> None:
    undisturbed = Telling(script)
    messages = undisturbed.tell()
    for write in range(1, undisturbed.writes + 1):
        assert Telling(script, frozenset({write})).tell() == messages
