"""A process that the engine drives, with everything that may happen to it on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from hypothesis import strategies as st

from teamchat.core.engine.events import (
    Deliver,
    GroupDelivered,
    GroupRan,
    HumanSpoke,
    MemberAnswered,
    Recovered,
    ResumeMode,
    RunGroup,
    RunTurn,
    StopRequested,
    TurnBegan,
    TurnEnded,
)
from teamchat.core.engine.processes.table import STRATEGIES
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Process
from teamchat.core.routing.requests import RouteRequest
from tests.core.engine.driver import Talk

Handed = tuple[tuple[str, ...], ...]
CHAOS = st.lists(st.sampled_from(("goes", "goes", "goes", "fails", "stops", "dies", "skips")), max_size=25)


class Worked(Talk):
    """A process that is driven to its end. `handed` is what the lead calls in its turns: groups of members."""

    handed: list[Handed]

    def begin(self, process: Process, handed: Iterable[Handed] = ()) -> Self:
        self.handed = list(handed)
        self.take(HumanSpoke(self.now, self._message(), "kailai", process=process))
        return self

    @property
    def process(self) -> Process:
        assert self.state.process is not None
        return self.state.process

    def reply(self, route: Route) -> str:
        """What the member of a route says."""
        del route
        return ""

    def goes_through(self, happens: list[str]) -> None:
        """Let all of `CHAOS` happen, and then nothing any more, until the process is over."""
        for what in [*happens, *["goes"] * 60]:
            if self.process.over:
                return
            if not isinstance(self.ending, RunTurn | RunGroup | Deliver):
                self.resume(ResumeMode.SKIP if what == "skips" else ResumeMode.RETRY)
            elif what == "stops":
                self.take(StopRequested(self.now))
            elif what == "dies":
                self.take(Recovered(self.now))
            else:
                self.next(fails=what == "fails")
            assert self.rules.max_turns is None or self.state.turns <= self.rules.max_turns

    def _ended(self, route: Route) -> TurnEnded:
        requests: tuple[RouteRequest, ...] = ()
        if route.part and route.part.handover and self.handed:
            requests = tuple(
                RouteRequest(name, group=index if len(names) > 1 else None)
                for index, names in enumerate(self.handed.pop(0))
                for name in names
            )
        assert route.part is not None
        finding = STRATEGIES[self.process.kind].read(self.process, route.part, self.reply(route), requests)
        return TurnEnded(self.now, route.number, self._message(), requests, finding=finding)

    def next(self, *, fails: bool) -> None:
        """Run what the engine asks for. With `fails` the turn fails, or the first of a group."""
        match self.ending:
            case RunTurn(route=route):
                self.take(TurnBegan(self.now, route.number, "msg-1"))
                self.take(TurnEnded(self.now, route.number, None) if fails else self._ended(route))
            case RunGroup(routes=routes):
                for route in routes:
                    self.take(TurnBegan(self.now, route.number, "msg-1"))
                    if not (fails and route is routes[0]):
                        self.turns += 1
                        self.take(MemberAnswered(self.now, route.number, self.turns))
                self.take(GroupRan(self.now, (routes[0].number,) if fails else ()))
            case Deliver(routes=routes):
                self.take(GroupDelivered(self.now, tuple(map(self._ended, routes))))
