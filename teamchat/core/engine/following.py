"""What happens now: the head of the queue speaks or is asked, a guard pauses, or nobody is left."""

from __future__ import annotations

from dataclasses import replace

from teamchat.core.engine.actions import Asked, Deliver, Idle, RunGroup, RunTurn
from teamchat.core.engine.draft import Draft
from teamchat.core.engine.guards import guard
from teamchat.core.engine.route import OPEN, Route, Status


def go_on(draft: Draft) -> None:
    state = draft.state
    head = next((route for route in state.queue if route.status in OPEN), None)
    if head is None:
        draft.actions.append(Idle())
    elif head.target in state.rules.humans and head.answer is None:
        draft.change(head.number, status=Status.ASKED)
        draft.actions.append(Asked(replace(head, status=Status.ASKED)))
    else:
        _speak(draft, head)


def _speak(draft: Draft, head: Route) -> None:
    """The member at the head speaks, with its group; a group of which all have spoken is delivered."""
    mates = draft.state.mates(head)
    waiting = tuple(route for route in mates if route.status is Status.WAITING)
    if not waiting:
        answered = (route for route in mates if route.status is Status.ANSWERED)
        draft.actions.append(Deliver(tuple(sorted(answered, key=lambda route: route.number))))
    elif paused := guard(draft.state, draft.now):
        draft.hold_all()
        draft.actions.append(paused)
    else:
        allowed = waiting[: draft.state.rules.max_turns - draft.state.turns]
        running = tuple(replace(route, status=Status.RUNNING) for route in allowed)
        draft.put((*running, *(route for route in draft.state.queue if route not in allowed)))
        draft.actions.append(RunGroup(running) if len(mates) > 1 else RunTurn(running[0]))
