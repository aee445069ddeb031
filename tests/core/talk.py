"""A conversation at the level of the engine: events in, actions out, with the bookkeeping of a coordinator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from teamchat.core.actions import Action, Dropped, RunTurn
from teamchat.core.engine import Rules, State, decide
from teamchat.core.engine_events import Event, HumanSpoke, Recovered, Resumed, ResumeMode, Stopped, TurnBegan, TurnEnded
from teamchat.core.route import Route, Status
from teamchat.core.routing import RouteRequest

AI = ("max", "sarah", "carol")
HUMANS = ("kailai", "bob")
PRIORITIES: dict[str, Literal[1, 2, 3]] = {"": 2, "1": 1, "2": 2, "3": 3}


def wish(written: str) -> RouteRequest:
    """`max`, or `max!1` with a priority."""
    target, _, priority = written.partition("!")
    return RouteRequest(target, PRIORITIES[priority])


@dataclass
class Talk:
    """`actions` are those of the last event. Every message gets the next id; the clock stands unless it is moved."""

    rules: Rules = field(default_factory=lambda: Rules(AI, HUMANS))
    now: float = 1000.0
    actions: tuple[Action, ...] = ()
    messages: int = 0

    def __post_init__(self) -> None:
        self.state = State(self.rules)

    def take(self, event: Event) -> Talk:
        self.state, self.actions = decide(self.state, event)
        return self

    def says(self, *wishes: str, by: str = "kailai", drops: tuple[str, ...] | None = ()) -> Talk:
        """A person speaks."""
        return self.take(HumanSpoke(self.now, self._message(), by, tuple(map(wish, wishes)), drops))

    def replies(self, *wishes: str, drops: tuple[str, ...] | None = ()) -> Talk:
        """The member that runs begins its turn and succeeds."""
        number = self.begins()
        return self.take(TurnEnded(self.now, number, self._message(), tuple(map(wish, wishes)), drops))

    def fails(self) -> Talk:
        return self.take(TurnEnded(self.now, self.begins(), None))

    def begins(self) -> int:
        """The turn of the member that runs begins; the number of its route."""
        running = self.running
        assert running is not None, self.state
        self.take(TurnBegan(self.now, running.number, running.as_of or f"msg-{self.messages}"))
        return running.number

    def resume(self, mode: ResumeMode = ResumeMode.RETRY) -> Talk:
        return self.take(Resumed(self.now, mode))

    def stop(self) -> Talk:
        return self.take(Stopped(self.now))

    def recover(self) -> Talk:
        return self.take(Recovered(self.now))

    def _message(self) -> str:
        self.messages += 1
        return f"msg-{self.messages}"

    @property
    def ending(self) -> Action:
        return self.actions[-1]

    @property
    def running(self) -> Route | None:
        return next((route for route in self.state.queue if route.status is Status.RUNNING), None)

    @property
    def speaking(self) -> str | None:
        """Whose turn the engine has asked for."""
        return self.ending.route.target if isinstance(self.ending, RunTurn) else None

    @property
    def dropped(self) -> list[str]:
        return [action.route.target for action in self.actions if isinstance(action, Dropped)]

    @property
    def queue(self) -> list[str]:
        """The queue as `max running`, `sarah waiting`, ..."""
        return [f"{route.target} {route.status}" for route in self.state.queue]

    def rest(self) -> list[str]:
        """Who speaks from here on when nobody names anybody any more."""
        spoke = []
        while self.speaking:
            spoke.append(self.speaking)
            self.replies()
        return spoke
