"""Sequential: the members speak in order, once or for several rounds, and each sees what came before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from teamchat.core.engine.workflow import Call, Finding, Kind, Part, Process, Step, Strategy
from teamchat.core.routing.requests import RouteRequest

MEMBER = "member"


class Spoken(Struct, frozen=True):
    """A member's turn; without a `message` it was skipped."""

    member: str
    round: int
    message: str | None


class SequentialReport(Struct, frozen=True):
    kind: str
    rounds: int
    replies: tuple[Spoken, ...]


def check(process: Process) -> str | None:
    return None if process.members else "it needs a member"


def step(process: Process) -> Step | None:
    number = len(process.done)
    if number >= len(process.members) * process.rounds:
        return None
    round_, place = divmod(number, len(process.members))
    part = Part(process.kind, MEMBER, round_ + 1, process.rounds, history=True, continues=True, prompt=process.prompt)
    return Step((Call(process.members[place], part),))


def read(_process: Process, _part: Part, _text: str, _requests: Sequence[RouteRequest]) -> Finding | None:
    return None


def turns(process: Process) -> int:
    return len(process.members) * process.rounds


def report(process: Process) -> SequentialReport:
    replies = tuple(Spoken(done.member, done.part.number, done.message) for done in process.done)
    return SequentialReport(process.kind, process.rounds, replies)


NOTES: Mapping[str, str] = {
    "member": "The members speak in a fixed order. Do your part of the work after what was said before.",
    "member.again": (
        "The members speak in a fixed order, and this is round {number} of {total}. Improve what was said "
        "before; say so if you have nothing to add."
    ),
}
SEQUENTIAL = Strategy(
    kind=Kind.SEQUENTIAL,
    settings=("members", "rounds"),
    called="sequential process",
    counted={MEMBER: "round"},
    several=(MEMBER,),
    notes=NOTES,
    check=check,
    step=step,
    read=read,
    report=report,
    turns=turns,
)
