"""What the engine knows of a conversation between two events: the team's rules, the queue and the counters.

The queue is one tuple in the order of speaking, the route that runs at its head. A route that waits for a person stays
at its place as ASKED; what a failure, a guard, Ctrl-C or a crash left behind is HELD and moves only by `Resumed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RouteStatus(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    ANSWERED = "answered"  # its reply is kept until the others of its group have theirs
    ASKED = "asked"  # a person is asked, and the queue waits for the answer
    HELD = "held"  # left by a failure, a guard, Ctrl-C or a crash; only `resume` moves it
    DONE = "done"
    DROPPED = "dropped"


OPEN = (RouteStatus.WAITING, RouteStatus.ANSWERED, RouteStatus.ASKED)


@dataclass(frozen=True, slots=True)
class Route:
    """`parent` is the message that asked for it, said by `by`; `request` the human message all this serves.

    `as_of` is the message the turn answers, fixed when it first starts, so that a retry sees the same. `attempt`
    counts the turns that began for it. `answer` is the turn whose reply is kept for a group that is not complete.
    """

    parent: str
    by: str
    request: str
    number: int = 0
    target: str = ""
    priority: int = 2
    group: int | None = None
    as_of: str | None = None
    status: RouteStatus = RouteStatus.WAITING
    attempt: int = 0
    answer: int | None = None


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
        return tuple(route for route in self.queue if route.status is RouteStatus.WAITING)

    @property
    def held(self) -> tuple[Route, ...]:
        return tuple(route for route in self.queue if route.status is RouteStatus.HELD)

    @property
    def asked(self) -> Route | None:
        """The route of the person the queue waits for."""
        return next((route for route in self.queue if route.status is RouteStatus.ASKED), None)

    def route(self, number: int) -> Route:
        """The route of that number, which is queued."""
        return next(route for route in self.queue if route.number == number)

    def answered_by(self, speaker: str) -> Route | None:
        """The question that this person answers by speaking; somebody else may have been asked since."""
        asked = (route for route in self.queue if route.status is RouteStatus.ASKED)
        return next((route for route in asked if route.target == speaker), None)

    def mates(self, route: Route) -> tuple[Route, ...]:
        """The routes of the same group that are still there, the route itself included; people are asked one by one."""
        return tuple(
            mate
            for mate in self.queue
            if mate is route
            or (
                (route.group is not None and (mate.parent, mate.group) == (route.parent, route.group))
                and (mate.target not in self.rules.humans or mate.answer is not None)
            )
        )
