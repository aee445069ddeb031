"""The state of a conversation between two events: the team's rules, the queue and the counters.

The queue is one tuple in the order of speaking, with the running route at its head. A route that waits for a person
keeps its place as ASKED. After a failure, a guard, Ctrl-C or a crash routes are HELD, and only `Resumed` moves them. A
route that a person stopped by hand, and then spoke in its place, is ASIDE: only a resume that names it runs it.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from teamchat.core.engine.workflow import Part, Process


class RouteStatus(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    ANSWERED = "answered"  # its reply is kept until its group is over
    ASKED = "asked"  # a person is asked, and the queue waits
    HELD = "held"  # after a failure, a guard, Ctrl-C or a crash; only `resume` moves it
    ASIDE = "aside"  # a person stopped it, and has said something else since
    DONE = "done"
    DROPPED = "dropped"
    JOINED = "joined"  # the turn of a call before it answers it, too


OPEN = (RouteStatus.WAITING, RouteStatus.ANSWERED, RouteStatus.ASKED)


class AlsoCalled(Struct, frozen=True):
    """Another call that a turn answers: `by` whom it is, in the message `parent`."""

    by: str
    parent: str


class LastSaid(Struct, frozen=True):
    """The last message for the `requests`: a person's message, and answers to questions that it led to.

    `message` is the last one with words, which the next turn answers. `by` has its speaker and, if that is another, the
    member that was called; it is empty if a person spoke.
    """

    requests: tuple[str, ...]
    message: str
    by: tuple[str, ...] = ()


class Route(Struct, frozen=True):
    """A queued call."""

    parent: str
    """The message that calls."""
    by: str
    """The speaker of `parent`."""
    request: str
    """The person's message behind the call."""
    number: int = 0
    target: str = ""
    priority: int = 2
    group: int | None = None
    as_of: str | None = None
    """The message that the turn answers, fixed at the first start, so that a retry answers the same.

    Until then `State.answers` finds it.
    """
    status: RouteStatus = RouteStatus.WAITING
    attempt: int = 0
    """The number of turns that began."""
    answer: int | None = None
    """The turn that keeps a reply for a group that is not over."""
    instead_of: str | None = None
    """The member that was called, if a person has given the call to another one."""
    part: Part | None = None
    """The part of a process (`teamchat run`) that the turn does."""
    also: tuple[AlsoCalled, ...] = ()
    """Further calls that the turn answers."""


class Bounds(Struct, frozen=True):
    """The limits that a person sets when starting a run."""

    turns: int | None = None
    """The most turns."""
    only: bool = False
    """Whether agents may not hand over to each other."""
    window: int | None = None
    """The number of earlier messages that prompts quote, instead of the team file's `context_window`."""


UNBOUNDED = Bounds()


class Rules(Struct, frozen=True):
    """The speakers of a team and their limits: members, people, lead, the team file's guards, the run's bounds."""

    ai: tuple[str, ...]
    """The AI members, in order."""
    humans: tuple[str, ...]
    lead: str | None = None
    max_turns: int | None = None
    """None is no limit, here and below."""
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_stale: int | None = None
    """The number of replies in a row that may say nothing new."""
    turns_limit: str = "limits.turns"
    """The name of the limit that `max_turns` comes from."""
    only: bool = False
    """Whether no agent calls another one."""


class State(Struct, frozen=True):
    """A conversation between two events."""

    rules: Rules
    queue: tuple[Route, ...] = ()
    next_route: int = 1
    turns: int = 0
    """AI turns since a person's last message or the last resume."""
    since: float = 0.0
    """The time of that message or resume, in seconds since 1970."""
    last_ai: str | None = None
    tokens: int = 0
    """Tokens since the session's beginning or the last resume after a budget guard."""
    cost_usd: float = 0.0
    """US dollars since the session's beginning or the last resume after a budget guard."""
    stale: int = 0
    """Replies in a row that said nothing new, counted as `turns` are; the replies of a group count as one."""
    process: Process | None = None
    """The process that runs, is on hold, or ran last."""
    last_said: tuple[LastSaid, ...] = ()
    """An entry for each request that still has a call in the queue, or an unfinished process."""

    @property
    def waiting(self) -> tuple[Route, ...]:
        return tuple(route for route in self.queue if route.status is RouteStatus.WAITING)

    @property
    def held(self) -> tuple[Route, ...]:
        return tuple(route for route in self.queue if route.status is RouteStatus.HELD)

    @property
    def aside(self) -> tuple[Route, ...]:
        return tuple(route for route in self.queue if route.status is RouteStatus.ASIDE)

    @property
    def asked(self) -> Route | None:
        """The route of the person that the queue waits for."""
        return next((route for route in self.queue if route.status is RouteStatus.ASKED), None)

    def route(self, number: int) -> Route:
        """Return the queued route with that number."""
        return next(route for route in self.queue if route.number == number)

    def answers(self, route: Route) -> str:
        """Return the message that the route's turn answers if it begins now: the newest for its own request."""
        said = next((last for last in self.last_said if route.request in last.requests), None)
        return route.as_of or (said.message if said else route.parent)

    def answered_by(self, speaker: str) -> Route | None:
        """Return the question that this person answers by speaking. Another person may have been asked since."""
        asked = (route for route in self.queue if route.status is RouteStatus.ASKED)
        return next((route for route in asked if route.target == speaker), None)

    def mates(self, route: Route) -> tuple[Route, ...]:
        """List the queued routes of the route's group, including itself. People of a group are asked one by one."""
        return tuple(
            mate
            for mate in self.queue
            if mate is route
            or (
                (route.group is not None and (mate.parent, mate.group) == (route.parent, route.group))
                and (mate.target not in self.rules.humans or mate.answer is not None)
            )
        )
