"""Debate: every member answers blind, then each sees the others' answers without names and may change its own.

`rounds` counts the rounds after the blind answers, which are round 0. At last the lead, who may be one of the members,
writes the synthesis. It knows the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

from msgspec import Struct

from teamchat.core.engine.processes.replies import BLIND_LAYERS, letters, seats, stand_in, written_object, wrong_members
from teamchat.core.engine.workflow import (
    Call,
    Done,
    Fault,
    Finding,
    Kind,
    Part,
    Position,
    Process,
    Step,
    Strategy,
    Synthesis,
)
from teamchat.core.routing.names import fold
from teamchat.core.routing.requests import RouteRequest, quoted

BLIND, ROUND, SYNTHESIS = "blind", "round", "synthesis"
OWN = "your answer"
LONGEST_POSITION = 10_000  # characters of one sentence; the store and `--json` repeat it with every step


class DebateAnswer(Struct, frozen=True):
    """A member's answer in a round. Without a `message` it was skipped; None means that the answer does not say.

    `by` is the member that answered in its place, None if it did itself.
    """

    member: str
    round: int
    message: str | None
    position: str | None = None
    changed: bool | None = None
    by: str | None = None


class ChangeOfMind(Struct, frozen=True):
    """A member says that it holds something else since that round. `before` is the last position that it stated."""

    member: str
    round: int
    before: str | None
    after: str


class DebateReport(Struct, frozen=True):
    """The answers in the order of rounds, and the changes of mind that members tell of."""

    kind: str
    rounds: int
    answers: tuple[DebateAnswer, ...]
    changes: tuple[ChangeOfMind, ...]
    synthesis: str | None
    """The id of the message."""
    agree: tuple[str, ...] | None
    """The members that agree with the synthesis; None if it does not say."""
    agreement: float | None
    """The share of all members that agree with it; None if it does not say."""
    dissent: dict[str, str] | None
    """The members that dissent, and with what; None if it does not say."""
    missing: tuple[str, ...]
    """The members without any answer."""


def check(process: Process) -> str | None:
    return wrong_members(process, least=2) or (None if process.lead else "it needs a lead for the synthesis")


def step(process: Process) -> Step | None:
    """Call all members as one group in each round, then the lead. Without any answer there is no synthesis."""
    for number in range(process.rounds + 1):
        done = seats(_of_round(process, number))
        if waiting := [member for member in process.members if member not in done]:
            return Step(tuple(_call(process, member, number) for member in waiting))
    newest = _newest(process)
    if process.of(SYNTHESIS) or not newest:
        return None
    shows, labels = tuple(done.message or "" for done in newest.values()), tuple(newest)
    part = Part(
        process.kind, SYNTHESIS, history=True, layers=BLIND_LAYERS, shows=shows, labels=labels, prompt=process.prompt
    )
    return Step((Call(process.lead, part, as_of=process.request),))


def _of_round(process: Process, number: int) -> tuple[Done, ...]:
    return process.of(ROUND, number) if number else process.of(BLIND)


def _newest(process: Process) -> dict[str, Done]:
    """Return each member's newest answer, in the order of the members; leave out members without one."""
    by_member = seats(done for done in process.done if done.part.role != SYNTHESIS and done.message is not None)
    return {member: by_member[member] for member in process.members if member in by_member}


def _call(process: Process, member: str, number: int) -> Call:
    shown = list(_shown(process, member)) if number else []
    part = Part(
        process.kind,
        ROUND if number else BLIND,
        number,
        process.rounds,
        seat=member,
        history=True,
        layers=BLIND_LAYERS,
        shows=tuple(message for _, message in shown),
        labels=tuple(label for label, _ in shown),
        prompt=process.prompt,
    )
    return Call(member, part, as_of=process.request)


def _shown(process: Process, member: str) -> Iterator[tuple[str, str]]:
    """List the label and the id of each answer that the member is shown, its own first.

    An answer that it gave for another member is its own, too, and is not shown as the other's. Another member has the
    same label in all rounds.
    """
    newest = _newest(process)
    if member in newest:
        yield OWN, newest[member].message or ""
    others = [other for other in process.members if other != member]
    for other, label in zip(others, _labels(process), strict=False):
        done = newest.get(other)
        if done and done.message and done.member != member:
            yield label, done.message


def _labels(process: Process) -> Iterator[str]:
    """Label the others "answer A", "answer B", ... A letter that is a member's name is left out."""
    names = {fold(name) for name in process.members}
    free = (letter for letter in map(letters, count()) if fold(letter) not in names)
    return (f"answer {letter}" for letter in islice(free, len(process.members) - 1))


def read(process: Process, part: Part, text: str, _requests: Sequence[RouteRequest]) -> Finding | None:
    written = written_object(text)
    if isinstance(written, Fault):
        return written
    return _synthesis(process, written.value) if part.role == SYNTHESIS else _position(part, written.value)


def _position(part: Part, written: dict[str, Any]) -> Position | Fault:
    """Read the position. A blind answer changes nothing, whatever it says."""
    position, changed = written.get("position"), written.get("changed")
    if not isinstance(position, str) or not position.strip():
        return Fault('its JSON has no text as "position"')
    if len(position) > LONGEST_POSITION:
        return Fault(f"its position has {len(position):,} characters, and at most {LONGEST_POSITION:,} are possible")
    return Position(position, changed if isinstance(changed, bool) and part.role == ROUND else None)


def _synthesis(process: Process, written: dict[str, Any]) -> Synthesis | Fault:
    """Read who agrees and who does not. The lead counts only if it is one of the members."""
    agree, dissent = written.get("agree"), written.get("dissent")
    if not isinstance(agree, list) or not all(isinstance(name, str) for name in agree):
        return Fault('its JSON has no list of names as "agree"')
    if dissent == []:
        dissent = {}
    if not isinstance(dissent, dict) or not all(isinstance(why, str) for why in dissent.values()):
        return Fault('its JSON has no names with reasons as "dissent"')
    known = {fold(process.lead): None} | {fold(name): name for name in process.members}
    if unknown := next((name for name in (*agree, *dissent) if fold(name) not in known), None):
        return Fault(f"its JSON names {quoted(unknown)}, who is no member of the debate")
    agreeing = dict.fromkeys(name for written in agree if (name := known[fold(written)]))
    against = {name: why for written, why in dissent.items() if (name := known[fold(written)])}
    if both := next((name for name in against if name in agreeing), None):
        return Fault(f"its JSON says that {both} agrees and that {both} dissents")
    return Synthesis(tuple(agreeing), against)


def turns(process: Process) -> int:
    return len(process.members) * (1 + process.rounds) + 1


def report(process: Process) -> DebateReport:
    answers = tuple(
        _answer(member, number, done[member])
        for number in range(process.rounds + 1)
        for done in (seats(_of_round(process, number)),)
        for member in process.members
        if member in done
    )
    written = next((done for done in process.of(SYNTHESIS) if done.message), None)
    said = written.finding if written and isinstance(written.finding, Synthesis) else None
    newest = _newest(process)
    return DebateReport(
        kind=process.kind,
        rounds=process.rounds,
        answers=answers,
        changes=tuple(_changes(answers)),
        synthesis=written.message if written else None,
        agree=said.agree if said else None,
        agreement=len(said.agree) / len(process.members) if said else None,
        dissent=said.dissent if said else None,
        missing=tuple(member for member in process.members if member not in newest),
    )


def _answer(member: str, number: int, done: Done) -> DebateAnswer:
    said = done.finding if isinstance(done.finding, Position) else None
    by = None if done.message is None else stand_in(done, member)
    return DebateAnswer(
        member, number, done.message, said.position if said else None, said.changed if said else None, by
    )


def _changes(answers: tuple[DebateAnswer, ...]) -> Iterator[ChangeOfMind]:
    held: dict[str, str] = {}
    for answer in answers:
        if answer.changed and answer.position is not None:
            yield ChangeOfMind(answer.member, answer.round, held.get(answer.member), answer.position)
        if answer.position is not None:
            held[answer.member] = answer.position


def text(process: Process, reply: str) -> str:
    """Return the synthesis without its JSON; empty as long as there is none.

    JSON that does not say who agrees is not in the form, and stays.
    """
    last = process.done[-1] if process.done else None
    if last is None or last.part.role != SYNTHESIS or last.message is None:
        return ""
    written = written_object(reply)
    if isinstance(written, Fault) or isinstance(_synthesis(process, written.value), Fault):
        return reply
    parts = (reply[: written.start].rstrip(), reply[written.end :].strip())
    return "\n\n".join(filter(None, parts))


NOTES: Mapping[str, str] = {
    "blind": (
        "This is a debate. The others answer the same message now, and nobody sees another answer yet. Answer "
        'it, with your reasons. End your reply with one line of JSON: {{"position": "POSITION"}} where '
        "POSITION is your position in one sentence."
    ),
    "round": (
        "This is round {number} of {total} of the debate. Your last answer and those of the others, without "
        "their names, are quoted above. Answer the message again: keep your position or change it, and say "
        "which of their reasons convince you and which do not. End your reply with one line of JSON: "
        '{{"position": "POSITION", "changed": false}} where POSITION is your position now in one sentence; '
        "write true instead of false if it differs from the one in your last answer."
    ),
    "synthesis": (
        "The debate is over. The last answer of each member ({labels}) is quoted above. Write the synthesis: "
        "the answer to the message that their reasons support. Describe what members hold against it in a "
        'section of its own with the heading "## Dissent". End your reply with one line of JSON: {{"agree": '
        '["NAME"], "dissent": {{"NAME": "WHY"}}}} that has each of {labels} once: in "agree" if its position '
        'agrees with the synthesis, else in "dissent", with what it holds instead as WHY.'
    ),
}
DEBATE = Strategy(
    kind=Kind.DEBATE,
    settings=("members", "rounds", "lead", "jobs"),
    called="debate",
    roles={BLIND: "blind answer", ROUND: "answer"},
    counted={ROUND: "round"},
    several=(BLIND, ROUND),
    unread={
        BLIND: "the answer counts, and its position stays unknown",
        ROUND: "the answer counts, and its position stays unknown",
        SYNTHESIS: "the synthesis counts, and who agrees with it stays unknown",
    },
    notes=NOTES,
    check=check,
    step=step,
    read=read,
    report=report,
    turns=turns,
    text=text,
)
