"""A conversation at the level of the engine: events in, actions out, with the bookkeeping of a coordinator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Self

from teamchat.core.engine.decide import decide
from teamchat.core.engine.events import (
    Action,
    Deliver,
    Dropped,
    Event,
    GroupDelivered,
    GroupRan,
    HumanSpoke,
    MemberAnswered,
    Recovered,
    Refused,
    Resumed,
    ResumeMode,
    RunGroup,
    RunTurn,
    Spent,
    StopRequested,
    TurnBegan,
    TurnEnded,
)
from teamchat.core.engine.state import Route, RouteStatus, Rules, State
from teamchat.core.routing.requests import RouteRequest

AI = ("max", "sarah", "carol")
HUMANS = ("kailai", "bob")
PRIORITIES: dict[str, Literal[1, 2, 3]] = {"": 2, "1": 1, "2": 2, "3": 3}


def wishes(*written: str) -> tuple[RouteRequest, ...]:
    """`max`, `max!1` with a priority, `max+sarah` as a group (`max+sarah!1`: all of it)."""
    result: list[RouteRequest] = []
    for group, names in enumerate(written):
        targets, _, priority = names.partition("!")
        together = targets.split("+")
        number = group if len(together) > 1 else None
        result += [RouteRequest(target, PRIORITIES[priority], number) for target in together]
    return tuple(result)


@dataclass
class Talk:
    """`actions` are those of the last event. Every message gets the next id; the clock stands unless it is moved."""

    rules: Rules = field(default_factory=lambda: Rules(AI, HUMANS))
    now: float = 1000.0
    actions: tuple[Action, ...] = ()
    messages: int = 0
    turns: int = 0

    def __post_init__(self) -> None:
        self.state = State(self.rules)

    def take(self, event: Event) -> Self:
        self.state, self.actions = decide(self.state, event)
        return self

    def says(self, *written: str, by: str = "kailai", drops: tuple[str, ...] | None = (), answers: bool = True) -> Self:
        """A person speaks."""
        return self.take(HumanSpoke(self.now, self._message(), by, wishes(*written), drops, answers=answers))

    def replies(
        self, *written: str, drops: tuple[str, ...] | None = (), speaker: str | None = None, new: bool = True
    ) -> Self:
        """The member that runs begins its turn and succeeds."""
        number = self.begins()
        ended = TurnEnded(self.now, number, self._message(), wishes(*written), drops, speaker=speaker, new=new)
        return self.take(ended)

    def fails(self) -> Self:
        return self.take(TurnEnded(self.now, self.begins(), None))

    def begins(self, name: str | None = None) -> int:
        """The turn of a member that runs (the first, unless it is named) begins; the number of its route."""
        running = next(route for route in self.running_all if name in (None, route.target))
        self.take(TurnBegan(self.now, running.number, self.state.answers(running)))
        return running.number

    # --- groups

    def answers(self, *names: str) -> Self:
        """These members of the group that runs begin, and have their replies."""
        for name in names:
            number = self.begins(name)
            self.turns += 1
            self.take(MemberAnswered(self.now, number, self.turns))
        return self

    def group_ends(self) -> Self:
        """Those of the group that still run have failed."""
        return self.take(GroupRan(self.now, tuple(route.number for route in self.running_all)))

    def group_runs(self, *, fails: Iterable[str] = ()) -> Self:
        """All of the group run to their ends; all but `fails` have replies."""
        for name in [route.target for route in self.running_all]:
            if name in fails:
                self.begins(name)
            else:
                self.answers(name)
        return self.group_ends()

    def delivers(self, *, new: Iterable[str] = AI, drops: tuple[str, ...] = (), **written: str) -> Self:
        """The replies of a group become messages: what each names, who says something new, what the first one drops."""
        deliver = self.ending
        assert isinstance(deliver, Deliver), self.actions
        ends = (
            TurnEnded(
                self.now,
                route.number,
                self._message(),
                wishes(*filter(None, [written.get(route.target)])),
                () if index else drops,
                new=route.target in new,
            )
            for index, route in enumerate(deliver.routes)
        )
        return self.take(GroupDelivered(self.now, tuple(ends)))

    # --- the rest

    def spends(self, tokens: int = 0, cost_usd: float = 0.0) -> Self:
        return self.take(Spent(self.now, tokens, cost_usd))

    def resume(self, mode: ResumeMode = ResumeMode.RETRY, only: tuple[int, ...] | None = None) -> Self:
        return self.take(Resumed(self.now, mode, only))

    def stop(self) -> Self:
        return self.take(StopRequested(self.now))

    def recover(self) -> Self:
        return self.take(Recovered(self.now))

    def _message(self) -> str:
        self.messages += 1
        return f"msg-{self.messages}"

    @property
    def ending(self) -> Action:
        return self.actions[-1]

    @property
    def running_all(self) -> list[Route]:
        return [route for route in self.state.queue if route.status is RouteStatus.RUNNING]

    @property
    def running(self) -> Route | None:
        return next(iter(self.running_all), None)

    @property
    def speaking(self) -> str | None:
        """Whose turn the engine has asked for; `max+sarah` for a group."""
        match self.ending:
            case RunTurn(route=route):
                return route.target
            case RunGroup(routes=routes):
                return _together(routes)
        return None

    @property
    def delivering(self) -> str | None:
        """Whose replies the engine has asked to be delivered."""
        return _together(self.ending.routes) if isinstance(self.ending, Deliver) else None

    @property
    def dropped(self) -> list[str]:
        return [action.route.target for action in self.actions if isinstance(action, Dropped)]

    @property
    def refused(self) -> list[str]:
        return [action.route.target for action in self.actions if isinstance(action, Refused)]

    @property
    def queue(self) -> list[str]:
        """The queue as `max running`, `sarah waiting`, ..."""
        return [f"{route.target} {route.status}" for route in self.state.queue]

    def rest(self) -> list[str]:
        """Who speaks from here on when nobody names anybody any more; `max+sarah` for a group."""
        spoke = []
        while speaking := self.speaking:
            spoke.append(speaking)
            if isinstance(self.ending, RunTurn):
                self.replies()
            else:
                self.group_runs().delivers()
        return spoke


def _together(routes: Iterable[Route]) -> str:
    return "+".join(route.target for route in routes)
