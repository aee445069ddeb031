"""Queues the next step of a process."""

from __future__ import annotations

from msgspec.structs import replace

from teamchat.core.engine.actions import Moved, Queued, Stuck
from teamchat.core.engine.draft import Draft
from teamchat.core.engine.process import Call, Process
from teamchat.core.engine.processes.table import STRATEGIES
from teamchat.core.engine.state import Route, RouteStatus


def advance(draft: Draft, process: Process) -> bool:
    """Queue what the strategy wants next. False if the process is over, or its next step is on hold."""
    step = STRATEGIES[process.kind].step(process)
    if step is None:
        process = replace(process, over=True)
        draft.state = replace(draft.state, process=process)
        draft.actions.append(Moved(process))
        return False
    routes = _queue(draft, process, step.calls, together=step.together)
    draft.actions.append(Moved(process))
    if step.fault is not None:
        draft.hold_all()
        draft.actions.append(Stuck(routes, step.fault))
        return False
    return True


def _queue(draft: Draft, process: Process, calls: tuple[Call, ...], *, together: bool) -> tuple[Route, ...]:
    """Queue the calls behind everything else. The number of the first one is that of their group."""
    first = draft.state.next_route
    routes = tuple(
        Route(
            parent=call.parent or process.request,
            by=call.by or process.speaker,
            request=process.request,
            number=first + index,
            target=call.target,
            group=first if together and len(calls) > 1 else None,
            as_of=call.as_of,
            part=call.part,
        )
        for index, call in enumerate(calls)
    )
    draft.state = replace(draft.state, next_route=first + len(routes))
    draft.put((*draft.state.queue, *routes))
    draft.actions += [Queued(route) for route in routes]
    return tuple(replace(route, status=RouteStatus.HELD) for route in routes)
