"""A state that is being decided upon, with the actions so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import takewhile
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.engine.events import Action, Dropped, NotCalled, NotDropped, PutAside, Queued, Refused
from teamchat.core.engine.state import AlsoCalled, LastSaid, Route, RouteStatus, State
from teamchat.core.engine.workflow import Done, Finding
from teamchat.core.routing.requests import RouteRequest

MAX_WAITING = 50


def _is_same_call(route: Route, head: Route) -> bool:
    """Whether the member of the route `head` is called again, for the same person's message."""
    again = route.target == head.target and route.request == head.request
    alone = route.group is None and route.part is None
    return again and alone and route.status is RouteStatus.WAITING and route.as_of is None


class Draft(Struct):
    """The state that is being changed at the time `now`, and the actions so far."""

    state: State
    now: float
    actions: list[Action] = field(default_factory=list)

    def put(self, queue: Iterable[Route]) -> None:
        self.state = replace(self.state, queue=tuple(queue))

    def remove(self, route: Route) -> None:
        self.put(other for other in self.state.queue if other is not route)

    def drop(self, routes: tuple[Route, ...]) -> None:
        """Take the routes out of the queue. A process continues without their parts."""
        for route in routes:
            if route.part:
                self.finish(route, route.target, None)
        self.put(route for route in self.state.queue if route not in routes)
        self.actions += [Dropped(route) for route in routes]

    def join(self, head: Route) -> Route:
        """Join the route with its member's calls that wait right behind it: one turn answers all of them.

        A turn that was already tried still answers its original message.
        """
        if head.part or head.as_of or head.status is not RouteStatus.WAITING:
            return head
        behind = self.state.queue[self.state.queue.index(head) + 1 :]
        same = tuple(takewhile(lambda route: _is_same_call(route, head), behind))
        also = tuple(AlsoCalled(route.by, route.parent) for route in same)
        joined = replace(head, also=(*head.also, *also))
        self.put(joined if route is head else route for route in self.state.queue if route not in same)
        self.actions += [Dropped(replace(route, status=RouteStatus.JOINED)) for route in same]
        return joined

    def drop_named(self, names: tuple[str, ...] | None, agent: str | None = None) -> None:
        """Drop the routes to these names; None is DROP: ALL. A route that has its reply stays.

        An `agent` drops only routes queued by agents, and nothing of a process.
        """
        named = tuple(
            route
            for route in self.state.queue
            if route.status is not RouteStatus.ANSWERED and (names is None or route.target in names)
        )
        protected = tuple(route for route in named if agent and (route.part or route.by not in self.state.rules.ai))
        self.drop(tuple(route for route in named if route not in protected))
        self.actions += [NotDropped(route, agent or "") for route in protected]

    def finish(self, route: Route, member: str, message: str | None, finding: Finding | None = None) -> None:
        """Note in the process that the part of the route is over: `message` is the reply, None if it was skipped."""
        process = self.state.process
        if process is None or route.part is None:
            return
        part = replace(route.part, instead="", prompt="")  # otherwise every later turn would store them again
        done = Done(part, member, message, finding)
        self.state = replace(self.state, process=replace(process, done=(*process.done, done)))

    def said(self, route: Route, speaker: str, message: str) -> None:
        """Note a member's answer to the call of the route: calls that wait for its request now answer this reply.

        So do calls that wait to answer an earlier message of the member, if a person asked it again: that is a
        correction. Other work of other members still answers the same message.
        """
        by = tuple(dict.fromkeys((speaker, route.target)))
        asked_by_person = route.parent == route.request

        def continues(last: LastSaid) -> bool:
            return route.request in last.requests or (asked_by_person and not set(by).isdisjoint(last.by))

        last_said = (
            replace(last, message=message, by=by) if continues(last) else last for last in self.state.last_said
        )
        self.state = replace(self.state, last_said=tuple(last_said))

    def asked(self, message: str, question: Route | None, before: LastSaid | None) -> None:
        """Note a person's message: an answer to a question belongs to the work that asked, else it is new work."""
        all_said = self.state.last_said
        asking = next((last for last in all_said if question and question.request in last.requests), None)
        others = tuple(last for last in all_said if last is not asking)
        requests = (*(asking.requests if asking else ()), message)
        said = replace(before or LastSaid((), message), requests=requests)
        self.state = replace(self.state, last_said=(*others, said))

    def forget(self) -> None:
        """Drop the last messages of finished requests."""
        process = self.state.process
        needed = {route.request for route in self.state.queue}
        if process and not process.over:
            needed.add(process.request)
        last_said = tuple(last for last in self.state.last_said if not needed.isdisjoint(last.requests))
        if last_said != self.state.last_said:
            self.state = replace(self.state, last_said=last_said)

    def hold_all(self) -> None:
        """Hold the whole queue, except routes that are asked or aside: only a resume continues it."""
        stay = (RouteStatus.ASKED, RouteStatus.ASIDE)
        self.put(
            route if route.status in stay else replace(route, status=RouteStatus.HELD) for route in self.state.queue
        )

    def put_aside(self, numbers: Collection[int]) -> None:
        """Set aside the held routes with these numbers, and the held routes of their groups."""
        named = [route for route in self.state.held if route.number in numbers]
        together = {mate.number for route in named for mate in self.state.mates(route)}
        for route in self.state.held:
            if route.number in together:
                self.change(route.number, status=RouteStatus.ASIDE)
                self.actions.append(PutAside(route))

    def not_begun(self) -> None:
        """Let routes wait again whose turns were to run but have not begun."""
        self.put(
            replace(route, status=RouteStatus.WAITING) if route.status is RouteStatus.RUNNING else route
            for route in self.state.queue
        )

    def change(self, number: int, **changes: Any) -> None:
        self.put(replace(route, **changes) if route.number == number else route for route in self.state.queue)

    def answers(self, number: int, message: str) -> None:
        """Fix the message that the route's turn answers, also for the turn of a mate that begins after a pause."""
        mates = {mate.number for mate in self.state.mates(self.state.route(number)) if mate.as_of is None}
        if mates:
            self.put(replace(one, as_of=message) if one.number in mates else one for one in self.state.queue)

    def allowed(self, requests: tuple[RouteRequest, ...], by: str, message: str) -> tuple[RouteRequest, ...]:
        """Return the agent's requests that the run's bounds allow: with `only`, only questions to people."""
        rules = self.state.rules
        permitted = tuple(wish for wish in requests if not rules.only or wish.target in rules.humans)
        self.actions += [NotCalled(wish.target, by, message) for wish in requests if wish not in permitted]
        return permitted

    def enqueue(self, requests: tuple[RouteRequest, ...], like: Route, *, ahead: bool) -> None:
        """Queue the calls of a message by priority: `ahead` of waiting ones (a person's) or behind them (an agent's).

        A target that waits for the same message is not queued again. Above `MAX_WAITING` a route is refused.
        """
        number, queue = self.state.next_route, self.state.queue
        there = {route.target for route in queue if route.parent == like.parent}
        new = [
            replace(like, number=number + index, target=wish.target, priority=wish.priority, group=wish.group)
            for index, wish in enumerate(wish for wish in requests if wish.target not in there)
        ]
        no_room = (RouteStatus.RUNNING, RouteStatus.ASIDE)
        room = max(MAX_WAITING - sum(route.status not in no_room for route in queue), 0)
        queued, refused = new[:room], new[room:]
        self.state = replace(self.state, next_route=number + len(new))
        # sorted() is stable: within a priority the order of the list is the order of speaking
        self.put(sorted((*queued, *queue) if ahead else (*queue, *queued), key=lambda route: route.priority))
        self.actions += [Queued(route) for route in queued] + [Refused(route, MAX_WAITING) for route in refused]
