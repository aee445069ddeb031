"""What came of `until`: each round with its checks and reviews, and what the members used."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.check import CheckStatus
from teamchat.core.engine.processes.until_round import REVIEWER, Seen, answer_of, pending_check, trees_of
from teamchat.core.engine.workflow import DOER, Checked, Done, Finding, Process, Review, ReviewFinding


class UntilCheck(Struct, frozen=True):
    """A run of a check, `check-N`, the git tree that it checked and the one that it left, empty if unknown."""

    check: str
    number: int
    status: CheckStatus
    reason: str
    tree: str
    left: str


class UntilReview(Struct, frozen=True):
    """What a reviewer answered in `message`: None for `passed` is no answer.

    `tree` is the git tree that it saw, `left` the one that was there at the end of its turn.
    """

    reviewer: str
    message: str | None
    passed: bool | None
    findings: tuple[ReviewFinding, ...]
    more: int
    tree: str
    left: str


class UntilRound(Struct, frozen=True):
    """A round: the doer's turns up to its reply, then what verified it, in order.

    `skipped` are checks that did not run, since they need one that is red.
    """

    number: int
    doer: str
    messages: tuple[str, ...]
    checks: tuple[UntilCheck, ...]
    reviews: tuple[UntilReview, ...]
    skipped: tuple[str, ...] = ()


class MemberUsed(Struct, frozen=True):
    """What a member has used in a process. None is unknown."""

    member: str
    turns: int
    seconds: float
    input_tokens: float | None
    output_tokens: float | None
    cost_usd: float | None


class UntilReport(Struct, frozen=True):
    """`result` is how it ended: done, red, rejected, or open as long as it is not over.

    `tree` is the git tree that was checked and reviewed last, `open_findings` what the last reviews found. `files` are
    those that the process changed, `seconds` is the time of its turns and checks; the store tells these.
    """

    kind: str
    do: str
    review: tuple[str, ...]
    result: str
    rounds: tuple[UntilRound, ...]
    most_rounds: int
    tree: str
    open_findings: tuple[ReviewFinding, ...]
    files: tuple[str, ...] = ()
    seconds: float = 0.0
    members: tuple[MemberUsed, ...] = ()


def result(process: Process) -> str:
    """`done`, `red` (the last check was), `rejected` (by a reviewer); `open` while it is not over."""
    if not process.over:
        return "open"
    seen = Seen.of(process)
    if seen.red:
        return "red"
    answers = [answer_of(seen, seat) for seat in process.review]
    passed = all(isinstance(answer, Review) and answer.passed for answer in answers)
    return "done" if passed and not pending_check(process, seen) else "rejected"


def report(process: Process) -> UntilReport:
    rounds = tuple(_rounds(process))
    seen = Seen.of(process)
    last = rounds[-1] if rounds else None
    verified = [trees_of(done.finding)[1] for done in (*seen.checked.values(), *seen.reviews.values())]
    return UntilReport(
        kind=process.kind,
        do=process.do,
        review=process.review,
        result=result(process),
        rounds=rounds,
        most_rounds=process.rounds + seen.heard,
        tree=seen.tree or next(filter(None, reversed(verified)), ""),
        open_findings=tuple(finding for review in (last.reviews if last else ()) for finding in review.findings),
    )


def _rounds(process: Process) -> Iterator[UntilRound]:
    """The rounds; what is done before the first turn of the doer is none."""
    current: UntilRound | None = None
    for done in process.done:
        if done.part.role == DOER and (current is None or current.number != done.part.number):
            if current:
                yield _with_skipped(process, current)
            current = UntilRound(done.part.number, done.member, (), (), ())
        if current is None:
            continue
        if done.part.role == DOER and done.message:
            current = replace(current, messages=(*current.messages, done.message))
        elif isinstance(ran := done.finding, Checked):
            check = UntilCheck(done.part.check, ran.number, ran.status, ran.reason, ran.before, ran.after)
            current = replace(current, checks=(*current.checks, check))
        elif done.part.role == REVIEWER:
            current = replace(current, reviews=(*current.reviews, _reviewed(done, done.finding)))
    if current:
        yield _with_skipped(process, current)


def _with_skipped(process: Process, round_: UntilRound) -> UntilRound:
    """The round with the checks that need a red one of it, or one that was skipped for that."""
    status = {check.check: check.status for check in round_.checks}
    red = {name for name, what in status.items() if what == "red"}
    skipped: list[str] = []
    for check in process.checks:
        if check.name not in status and not red.isdisjoint(check.needs):
            skipped.append(check.name)
            red.add(check.name)
    return replace(round_, skipped=tuple(skipped))


def _reviewed(done: Done, finding: Finding | None) -> UntilReview:
    if not isinstance(finding, Review):
        return UntilReview(done.member, done.message, None, (), 0, "", "")
    findings, trees = (finding.findings, finding.more), (finding.before, finding.after)
    return UntilReview(done.member, done.message, finding.passed, *findings, *trees)
