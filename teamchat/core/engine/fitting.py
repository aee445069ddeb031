"""Fitting queued routes to a team file that changed while they waited.

A route has the name of its member at the time of the call. The member may have another spelling now, may have left
the team, or may have become a person or an agent.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from teamchat.core.engine.draft import Draft
from teamchat.core.engine.events import Dropped
from teamchat.core.engine.state import Route, RouteStatus, Rules, State
from teamchat.core.routing.names import fold


def fitted(state: State) -> State:
    """Return the state with its queue fitted by `fit_queue`."""
    draft = Draft(state, 0.0)
    fit_queue(draft)
    return draft.state


def fit_queue(draft: Draft) -> None:
    """Fit the queue to the team as it is now.

    A question to a person who has left goes to the team's only person; if it has several, the question is dropped. A
    call of an agent that has left stays: its turn fails with the reason, and `resume --skip` continues without it.
    """
    queue, rules = draft.state.queue, draft.state.rules
    gone = frozenset(_gone(draft, rules))
    fitted = tuple(_fitted(route, rules) for route in queue if route not in gone)
    if fitted != queue:
        draft.put(fitted)
        for route in gone:
            draft.finish(route, route.target, None)
        draft.actions += [Dropped(route, left=True) for route in queue if route in gone]


def _gone(draft: Draft, rules: Rules) -> Iterator[Route]:
    for route in draft.state.queue:
        if route.status is RouteStatus.ASKED and now_called(route.target, rules) is None and len(rules.humans) != 1:
            yield route


def _fitted(route: Route, rules: Rules) -> Route:
    target = now_called(route.target, rules)
    if route.status is not RouteStatus.ASKED:
        return route if target in (None, route.target) else replace(route, target=target or "")
    if target is None:
        return replace(route, target=rules.humans[0])
    return replace(route, target=target, status=RouteStatus.ASKED if target in rules.humans else RouteStatus.WAITING)


def now_called(name: str, rules: Rules) -> str | None:
    """Return the current spelling of the member's name; None if it has left the team."""
    if name in rules.ai or name in rules.humans:
        return name
    folded = fold(name)
    return next((now for now in (*rules.ai, *rules.humans) if fold(now) == folded), None)
