"""The rules of a conversation, as one pure function: `decide(state, event) -> (state, actions)`.

Who speaks next, what waits, what a failure holds and what pauses is decided in this package and nowhere else: replay
and resume use the same function. It reads no clock, file or store: events carry the time. The coordinator performs the
actions and stores the state.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from teamchat.core.engine.draft import Draft
from teamchat.core.engine.events import (
    Action,
    CheckBegan,
    CheckEnded,
    CheckNotRun,
    Deliver,
    Dropped,
    Event,
    GroupDelivered,
    GroupFailed,
    GroupRan,
    HumanAsked,
    HumanSpoke,
    Idle,
    MemberAnswered,
    Moved,
    NotCalled,
    Paused,
    PauseKind,
    Queued,
    Reassigned,
    Recovered,
    Redone,
    Released,
    Resumed,
    ResumeMode,
    Retargeted,
    RunCheck,
    RunGroup,
    RunTurn,
    Spent,
    StopRequested,
    Stuck,
    TurnBegan,
    TurnEnded,
    TurnFailed,
    Undone,
    WorkBegan,
)
from teamchat.core.engine.fitting import fit_queue, now_called
from teamchat.core.engine.guards import granted, guard, time_guard
from teamchat.core.engine.state import OPEN, Route, RouteStatus, State
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.engine.workflow import DOER, PERSON, Call, Done, Handout, Kind, Part, Process, Tried
from teamchat.core.routing.requests import RouteRequest


def go_on(draft: Draft) -> None:
    state = draft.state
    head = next((route for route in state.queue if route.status in OPEN), None)
    if head is None:
        if _process_continues(draft):
            go_on(draft)
        elif not (draft.actions and draft.actions[-1].final):
            draft.actions.append(Idle())
    elif head.part and head.part.check:
        if paused := time_guard(draft.state, draft.now):
            draft.hold_all()
            draft.actions.append(paused)
        else:
            draft.change(head.number, status=RouteStatus.RUNNING)
            draft.actions.append(RunCheck(draft.state.route(head.number)))
    elif head.target in state.rules.humans and head.answer is None:
        draft.change(head.number, status=RouteStatus.ASKED)
        draft.actions.append(HumanAsked(replace(head, status=RouteStatus.ASKED)))
    else:
        _speak(draft, head)


def _process_continues(draft: Draft) -> bool:
    """Queue the next step of the process, if it has one and no part waits. Return whether somebody is to speak."""
    process = draft.state.process
    if process is None or process.over or any(route.part for route in draft.state.queue):
        return False
    step = strategy_of(process.kind).step(process)
    if step is None:
        process = replace(process, over=True)
        draft.state = replace(draft.state, process=process)
        draft.actions.append(Moved(process))
        return False
    routes = _queue(draft, process, step.calls, together=step.together)
    draft.actions.append(Moved(process))
    if step.fault is not None:
        draft.hold_all()
        draft.actions.append(Stuck(routes, step.fault, step.why))
        return False
    return True


def _speak(draft: Draft, head: Route) -> None:
    """Run the member at the head with its group. A group whose members have all spoken is delivered."""
    mates = draft.state.mates(head)
    if len(mates) == 1:
        head = draft.join(head)
        mates = (head,)
    waiting = tuple(route for route in mates if route.status is RouteStatus.WAITING)
    if not waiting:
        answered = (route for route in mates if route.status is RouteStatus.ANSWERED)
        draft.actions.append(Deliver(tuple(sorted(answered, key=lambda route: route.number))))
    elif paused := guard(draft.state, draft.now):
        draft.hold_all()
        draft.actions.append(paused)
    else:
        most = draft.state.rules.max_turns
        allowed = waiting if most is None else waiting[: most - draft.state.turns]
        running = tuple(replace(route, status=RouteStatus.RUNNING) for route in allowed)
        draft.put((*running, *(route for route in draft.state.queue if route not in allowed)))
        process = draft.state.process
        jobs = process.jobs if process and head.part else None
        draft.actions.append(RunGroup(running, jobs) if len(mates) > 1 else RunTurn(running[0]))


def check_ended(draft: Draft, event: CheckEnded) -> None:
    """Finish the check of a route. If it was not run, hold it and everything behind it."""
    route = draft.state.route(event.route)
    if event.not_run is None:
        draft.remove(route)
        draft.finish(route, event.result.name, None, event.result)
        return
    draft.hold_all()
    if event.not_run == "interrupted":
        draft.actions.append(Paused(PauseKind.INTERRUPTED, "interrupted"))
    else:
        reason = f"{route.target} was not run: {event.result.reason}"
        draft.actions.append(CheckNotRun(draft.state.route(event.route), reason, event.not_run))


def turn_ended(draft: Draft, event: TurnEnded) -> None:
    if event.reply is None and not event.stopped and _reassigned(draft, event.route):
        return
    if event.reply is None:
        ended = draft.state.route(event.route)
        if _decided(draft, (ended,)):
            draft.drop((ended,))
            return
        draft.hold_all()
        draft.actions.append(TurnFailed(ended))
        return
    part = draft.state.route(event.route).part
    draft.state = replace(draft.state, turns=draft.state.turns + 1)
    _said(draft, new=event.new or _ends_by_itself(part))
    _replied(draft, event)


def group_ran(draft: Draft, event: GroupRan) -> None:
    """Hold the members without a reply. The other replies are delivered once no member of the group waits.

    Members whose turn was not started wait again. A part of a process that others may do goes to the next of them.
    """
    if event.enough:
        for route in draft.state.queue:
            if route.status is RouteStatus.RUNNING:
                draft.change(route.number, status=RouteStatus.HELD)
        return
    failed = tuple(number for number in event.failed if event.stopped or not _reassigned(draft, number))
    for number in failed:
        draft.change(number, status=RouteStatus.HELD)
    draft.not_begun()
    given = len(failed) < len(event.failed)
    if failed and not given and not any(route.status is RouteStatus.ANSWERED for route in draft.state.queue):
        # some of the group may have failed before the parts of others were given away
        mates = draft.state.mates(draft.state.route(failed[0]))
        numbers = {route.number for route in mates if route.status is RouteStatus.HELD}
        draft.hold_all()
        routes = tuple(route for route in draft.state.queue if route.number in numbers)
        draft.actions.append(GroupFailed(routes, all_of_it=True))


def _reassigned(draft: Draft, number: int) -> bool:
    """Give the part of a failed route to the next member that may do it. Return False if there is none."""
    route = draft.state.route(number)
    if route.part is None or not route.part.others:
        return False
    target, *others = route.part.others
    draft.change(number, status=RouteStatus.WAITING, target=target, part=replace(route.part, others=tuple(others)))
    draft.actions.append(Reassigned(draft.state.route(number), route.target))
    return True


def group_delivered(draft: Draft, ends: tuple[TurnEnded, ...]) -> None:
    mates = draft.state.mates(draft.state.route(ends[0].route))
    failed = tuple(route for route in mates if route.status is RouteStatus.HELD)
    parts = (draft.state.route(end.route).part for end in ends)
    _said(draft, new=any(end.new or _ends_by_itself(part) for part, end in zip(parts, ends, strict=True)))
    for end in ends:
        _replied(draft, end)
    if failed and _decided(draft, failed):
        draft.drop(failed)
    elif failed:  # reported even if a reply of the group has dropped it
        draft.hold_all()
        draft.actions.append(GroupFailed(failed, all_of_it=False))


def _decided(draft: Draft, failed: tuple[Route, ...]) -> bool:
    """Whether the process is decided without the answers of the voters and reviewers in `failed`."""
    process = draft.state.process
    voices = all(route.part and route.part.seat for route in failed)
    if process is None or process.quorum is None or not voices:
        return False
    return strategy_of(process.kind).decided(process)


def _ends_by_itself(part: Part | None) -> bool:
    """Whether the process itself limits such turns, so that the loop guard need not count their replies."""
    return part is not None and (not part.continues or part.kind == Kind.UNTIL)


def _said(draft: Draft, *, new: bool) -> None:
    draft.state = replace(draft.state, stale=0 if new else draft.state.stale + 1)


def _replied(draft: Draft, event: TurnEnded) -> None:
    """Finish the route of a stored reply, and queue its calls."""
    done = draft.state.route(event.route)
    speaker = event.speaker or done.target
    assert event.reply is not None
    draft.remove(done)
    draft.state = replace(draft.state, last_ai=speaker)
    if event.words:
        draft.said(done, speaker, event.reply)
    draft.drop_named(event.drops, speaker)
    if done.part:
        draft.finish(done, speaker, event.reply, event.finding)
        draft.actions += [NotCalled(name, speaker, event.reply, process=True) for name in _not_called(done.part, event)]
        return
    requests = draft.allowed(event.requests, speaker, event.reply)
    draft.enqueue(requests, Route(parent=event.reply, by=speaker, request=done.request), ahead=False)


def _not_called(part: Part, event: TurnEnded) -> list[str]:
    """Name the members that a reply calls although the process does not allow it."""
    handed: tuple[RouteRequest, ...] = ()
    match event.finding:
        case Handout(requests=requests) if part.handover:
            handed = requests
        case Tried(asks=asks):
            handed = asks
    return [request.target for request in event.requests if request not in handed]


def decide(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """Return the state after `event`, and the actions to perform. The last action says how the conversation goes on."""
    draft = Draft(replace(state, since=min(state.since, event.now)), event.now)  # a clock may have been set back
    fit_queue(draft)
    match event:
        case TurnBegan() | WorkBegan() | CheckBegan() | Spent() | MemberAnswered() | Retargeted():
            _note(draft, event)
            return draft.state, ()
        case HumanSpoke():
            _human_spoke(draft, event)
        case TurnEnded():
            turn_ended(draft, event)
        case CheckEnded():
            check_ended(draft, event)
        case GroupRan():
            group_ran(draft, event)
        case GroupDelivered(ends=ends):
            group_delivered(draft, ends)
        case Resumed(mode=mode, only=only):
            _resumed(draft, mode, only)
        case Released(routes=numbers):
            draft.not_begun()
            _free(draft, set(numbers))
        case StopRequested():
            draft.hold_all()
            draft.actions.append(Paused(PauseKind.INTERRUPTED, "interrupted"))
        case Recovered() | Undone() | Redone():
            _stand_still(draft, event)
    if not (draft.actions and draft.actions[-1].final):
        go_on(draft)
    draft.forget()
    return draft.state, tuple(draft.actions)


def default_target(state: State, speaker: str) -> str | None:
    """Choose who answers a message that names nobody: the member that asked, else the lead, the last AI, the first.

    Nobody does after a question of a process, and while a process runs whose doer reads what people say.
    """
    answered = state.answered_by(speaker)
    if (answered and answered.part) or (answered is None and heard_by(state)):
        return None  # the process decides who speaks next
    asker = now_called(answered.by, state.rules) if answered else None
    candidates = (asker, state.rules.lead, state.last_ai, *state.rules.ai)
    return next((name for name in candidates if name in state.rules.ai), None)  # the team may have changed since


def heard_by(state: State) -> str | None:
    """Return the doer of a running `until`: it reads what a person says without naming anybody."""
    process = state.process
    return process.do if process and not process.over and process.kind is Kind.UNTIL else None


def asker_gone(state: State, speaker: str) -> str | None:
    """Return the member that asked this person and has left the team; None if nobody asked, or it is still there."""
    answered = state.answered_by(speaker)
    return answered.by if answered and now_called(answered.by, state.rules) is None else None


def _note(draft: Draft, event: TurnBegan | WorkBegan | CheckBegan | Spent | MemberAnswered | Retargeted) -> None:
    """Note an event that needs no action."""
    state = draft.state
    match event:
        case TurnBegan(route=number, as_of=as_of):
            began = state.route(number)
            draft.change(number, attempt=began.attempt + 1)
            draft.answers(number, as_of)
        case WorkBegan(tree=tree):
            process = state.process
            if process and not process.base:
                draft.state = replace(state, process=replace(process, base=tree))
        case CheckBegan(route=number):
            draft.change(number, attempt=state.route(number).attempt + 1)
        case Spent(tokens=tokens, cost_usd=cost, turns=turns):
            spent = state.tokens + tokens, state.cost_usd + cost
            draft.state = replace(state, tokens=spent[0], cost_usd=spent[1], turns=state.turns + turns)
        case MemberAnswered(route=number, answer=answer):
            draft.state = replace(state, turns=state.turns + 1)
            draft.change(number, status=RouteStatus.ANSWERED, answer=answer)
        case Retargeted(route=number, target=target):
            called = state.route(number)
            first = called.instead_of or called.target
            draft.change(number, target=target, instead_of=first if first != target else None)


def _human_spoke(draft: Draft, event: HumanSpoke) -> None:
    """Store a person's message while no turn runs; turns about to begin wait behind the message's calls."""
    draft.not_begun()
    draft.put_aside(event.aside)
    asked = draft.state.answered_by(event.speaker)
    answered = asked if event.answers else None
    if answered:
        draft.remove(answered)
        draft.finish(answered, event.speaker, event.message)
    process = draft.state.process
    if event.goes_on and process and process.kind is Kind.UNTIL:  # it ended while the person was speaking
        draft.state = replace(draft.state, process=replace(process, over=False))
    if answered is None and event.answers and not event.requests and event.process is None:
        # the message is for the doer of the process, which speaks next
        process = draft.state.process
        if process and heard_by(draft.state):
            done = Done(Part(process.kind, PERSON), event.speaker, event.message)
            draft.state = replace(draft.state, process=replace(process, done=(*process.done, done)))
            _hear_first(draft)
    draft.asked(event.message, answered, event.before)
    draft.drop_named(event.drops)
    draft.state = replace(draft.state, turns=0, since=event.now, stale=0)
    process = draft.state.process
    if event.process:
        process = replace(event.process, request=event.message, speaker=event.speaker)
    elif process and (process.over or event.drops is None):
        process = None
    draft.state = replace(draft.state, process=process)
    draft.enqueue(event.requests, Route(parent=event.message, by=event.speaker, request=event.message), ahead=True)


def _hear_first(draft: Draft) -> None:
    """Drop checks and reviews that have not begun, so that the doer reads a person's message first."""
    state = draft.state
    waiting = [route for route in state.queue if route.part and route.part.role != DOER and _waits(state, route)]
    draft.put(route for route in state.queue if route not in waiting)
    draft.actions += [Dropped(route) for route in waiting]


def _waits(state: State, route: Route) -> bool:
    """Whether the route and its whole group wait."""
    return all(mate.status is RouteStatus.WAITING for mate in state.mates(route))


def _resumed(draft: Draft, mode: ResumeMode, only: tuple[int, ...] | None) -> None:
    queue = draft.state.queue
    if mode is ResumeMode.DROP and only is not None:
        draft.drop(tuple(route for route in queue if route.number in only))
        return
    if mode is ResumeMode.DROP:
        draft.drop(queue)
        draft.state = replace(draft.state, process=None)
    elif mode is ResumeMode.SKIP:
        draft.drop(_skipped(queue))
    held = {route.number for route in draft.state.held}
    chosen = [route for route in draft.state.queue if route.number in (held if only is None else only)]
    _free(draft, {mate.number for route in chosen for mate in draft.state.mates(route)})  # a group runs as a whole
    if draft.state.process and draft.state.process.unheard:
        _hear_first(draft)
    draft.state = granted(draft.state, draft.now)


def _skipped(queue: tuple[Route, ...]) -> tuple[Route, ...]:
    """Choose what a resume skips: the first turn or question; in a process, every part begun without a reply."""
    stopped = [
        route for route in queue if route.status in (RouteStatus.HELD, RouteStatus.ASKED) and route.answer is None
    ]
    begun = tuple(route for route in stopped if route.part and route.attempt)
    return begun if begun and stopped[0].part else tuple(stopped[:1])


def _free(draft: Draft, numbers: Collection[int]) -> None:
    draft.put(
        replace(route, status=RouteStatus.WAITING if route.answer is None else RouteStatus.ANSWERED)
        if route.status in (RouteStatus.HELD, RouteStatus.ASIDE) and route.number in numbers
        else route
        for route in draft.state.queue
    )


def _stand_still(draft: Draft, event: Recovered | Undone | Redone) -> None:
    """Set the queue right after a crash, an undo or a redo. Nothing runs before a person says so."""
    match event:
        case Recovered():
            # The last process died: hold the queue, unless a person is asked and nothing ran.
            ran = any(route.status in (RouteStatus.RUNNING, RouteStatus.ANSWERED) for route in draft.state.queue)
            if draft.state.asked is None or ran:
                draft.hold_all()
        case Undone(before=before, answered=answered):
            _put_back(draft, before)
            for route in draft.state.queue:
                if route.number in answered:
                    draft.answers(route.number, answered[route.number])
            draft.hold_all()
        case Redone(before=before):
            _put_back(draft, before)
    draft.actions.append(Idle())


def _put_back(draft: Draft, before: State) -> None:
    """Put back the queue and the counters of `before`. Route numbers and spendings stay as they are."""
    now, numbers = draft.state, {route.number for route in before.queue}
    draft.drop(tuple(route for route in now.queue if route.number not in numbers))
    draft.state = replace(
        now,
        queue=before.queue,
        next_route=max(now.next_route, before.next_route),
        turns=before.turns,
        since=min(before.since, draft.now),
        last_ai=before.last_ai,
        stale=before.stale,
        process=before.process,
        last_said=before.last_said,
    )
    fit_queue(draft)  # the team may have changed since


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
