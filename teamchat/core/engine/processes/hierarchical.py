"""Hierarchical: the lead hands out work by calling members, every reply goes back to it, and it ends by calling nobody.

Members are called as the lead's markers say: in order, several at the same time, by priority. People may be among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.engine.workflow import Call, Done, Fault, Finding, Handout, Kind, Part, Process, Step, Strategy
from teamchat.core.routing.markers import MarkerKind, read_markers
from teamchat.core.routing.requests import RouteRequest

LEAD, WORKER = "lead", "worker"


class WorkReport(Struct, frozen=True):
    """A member's reply to a call; without a `message` it was skipped."""

    member: str
    message: str | None


class HandoutReport(Struct, frozen=True):
    """The message where the lead handed out work, with the replies, or its result if nothing came after."""

    message: str | None
    replies: tuple[WorkReport, ...]


class HierarchicalReport(Struct, frozen=True):
    kind: str
    lead: str
    handouts: tuple[HandoutReport, ...]
    result: str | None


def check(process: Process) -> str | None:
    others = [name for name in process.members if name != process.lead]
    return None if process.lead and others else "it needs a lead and another member"


def step(process: Process) -> Step | None:
    led = process.of(LEAD)
    if not led:
        return _lead(process, 1)
    last = led[-1]
    if isinstance(last.finding, Fault):
        again = _lead(process, len(led) + 1, last.finding.why)
        repeated = len(led) > 1 and isinstance(led[-2].finding, Fault)
        return replace(again, fault=f"{last.member} calls nobody who is there") if repeated else again
    if not isinstance(last.finding, Handout):
        return None
    answered = len(process.done) - process.done.index(last) - 1
    for requests in _groups(last.finding):
        if answered <= 0:
            return Step(tuple(_work(process, last, request) for request in requests))
        answered -= len(requests)
    return _lead(process, len(led) + 1)


def read(process: Process, part: Part, text: str, requests: Sequence[RouteRequest]) -> Finding | None:
    """Read the lead's calls that the process allows: calls of its members and of people.

    A reply that only calls somebody else, or a name that nobody has, is at fault: it would end the process.
    """
    if part.role != LEAD:
        return None
    called = tuple(request for request in requests if request.target not in process.excluded)
    if called:
        return Handout(called)
    markers = read_markers(text, "ai").markers
    written = [marker.raw for marker in markers if marker.kind is MarkerKind.NEXT and marker.counts and marker.targets]
    return Fault(f"{written[0]} calls nobody whom it can call") if written else None


def report(process: Process) -> HierarchicalReport:
    handouts: list[HandoutReport] = []
    for done in process.done:
        if done.part.role == LEAD:
            handouts.append(HandoutReport(done.message, ()))
        else:
            replies = (*handouts[-1].replies, WorkReport(done.member, done.message))
            handouts[-1] = HandoutReport(handouts[-1].message, replies)
    result = handouts[-1].message if process.over and handouts else None
    return HierarchicalReport(
        process.kind, process.lead, tuple(handout for handout in handouts if handout.replies), result
    )


def _groups(handout: Handout) -> Iterator[tuple[RouteRequest, ...]]:
    """List the calls in the order of speaking; the calls of a group speak at the same time."""
    ordered = sorted(handout.requests, key=lambda request: request.priority)
    for (_, group), requests in groupby(ordered, key=lambda request: (request.priority, request.group)):
        calls = tuple(requests)
        yield from [calls] if group is not None else [(call,) for call in calls]


def _lead(process: Process, number: int, fault: str = "") -> Step:
    part = Part(
        process.kind, LEAD, number, handover=True, history=True, continues=True, fault=fault, prompt=process.prompt
    )
    return Step((Call(process.lead, part),))


def _work(process: Process, lead: Done, request: RouteRequest) -> Call:
    part = Part(process.kind, WORKER, lead.part.number, history=True, continues=True, prompt=process.prompt)
    return Call(request.target, part, parent=lead.message or "", by=lead.member)


NOTES: Mapping[str, str] = {
    "lead": (
        "You lead this task. Hand out the work by calling members, and say what each of them is to do. Every "
        "reply comes back to you. When the work is done, write the result and call nobody."
    ),
    "lead.repair": (
        "Your last reply called nobody: {fault}. Call members by their exact names, or call nobody to end the task."
    ),
    "worker": "{by} leads this task and called you in {parent}. Do that part only. Your reply goes back to {by}.",
}
HIERARCHICAL = Strategy(
    kind=Kind.HIERARCHICAL,
    settings=("members", "lead", "jobs"),
    called="hierarchical process",
    repeated=(LEAD,),
    several=(WORKER,),
    notes=NOTES,
    check=check,
    step=step,
    read=read,
    report=report,
)
