"""What the end of a turn, or of a group's turns, makes of the queue: done, held, or delivered together."""

from __future__ import annotations

from dataclasses import replace

from teamchat.core.engine.actions import GroupFailed, TurnFailed
from teamchat.core.engine.draft import Draft
from teamchat.core.engine.events import TurnEnded
from teamchat.core.engine.route import Route, Status


def turn_ended(draft: Draft, event: TurnEnded) -> None:
    if event.reply is None:
        ended = draft.state.route(event.route)
        draft.hold_all()
        draft.actions.append(TurnFailed(ended))
        return
    draft.state = replace(draft.state, turns=draft.state.turns + 1)
    _said(draft, new=event.new)
    _replied(draft, event)


def group_ran(draft: Draft, failed: tuple[int, ...]) -> None:
    """Members without a reply are held; the others' replies are delivered once nobody of the group waits any more.

    Those of which no turn was started wait again.
    """
    for number in failed:
        draft.change(number, status=Status.HELD)
    for route in draft.state.queue:
        if route.status is Status.RUNNING:
            draft.change(route.number, status=Status.WAITING)
    if failed and not any(route.status is Status.ANSWERED for route in draft.state.queue):
        draft.hold_all()
        routes = tuple(route for route in draft.state.queue if route.number in failed)
        draft.actions.append(GroupFailed(routes, all_of_it=True))


def group_delivered(draft: Draft, ends: tuple[TurnEnded, ...]) -> None:
    mates = draft.state.mates(draft.state.route(ends[0].route))
    failed = tuple(route for route in mates if route.status is Status.HELD)
    _said(draft, new=any(end.new for end in ends))
    for end in ends:
        _replied(draft, end)
    if failed:  # told even if a mate's reply has dropped it
        draft.hold_all()
        draft.actions.append(GroupFailed(failed, all_of_it=False))


def _said(draft: Draft, *, new: bool) -> None:
    draft.state = replace(draft.state, stale=0 if new else draft.state.stale + 1)


def _replied(draft: Draft, event: TurnEnded) -> None:
    """A reply was stored: its route is done, and what it asks for is queued."""
    done = draft.state.route(event.route)
    speaker = event.speaker or done.target
    draft.remove(done)
    draft.state = replace(draft.state, last_ai=speaker)
    draft.drop_named(event.drops, speaker)
    assert event.reply is not None
    draft.enqueue(event.requests, Route(parent=event.reply, by=speaker, request=done.request), ahead=False)
