"""The report on `until`: each round with its checks and reviews, and the members' usage."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.check import CheckStatus
from teamchat.core.engine.processes.until_round import (
    CHECK,
    REVIEWER,
    Seen,
    pending_check,
    reviews_of,
    trees_of,
    verdict_of,
)
from teamchat.core.engine.workflow import DOER, Checked, Done, Finding, Part, Process, Review, ReviewFinding, Tried
from teamchat.core.made import made_of


class UntilCheck(Struct, frozen=True):
    """A run of a check, `check-N`."""

    check: str
    number: int
    status: CheckStatus
    reason: str
    tree: str
    """The git tree that it checked, empty if unknown."""
    left: str
    """The git tree that it left, empty if unknown."""
    attempt: int = 1
    """2 for a second try."""
    fresh: bool = False
    """Whether it ran in a new folder."""
    touched: tuple[str, ...] = ()
    """The protected files that made it red."""
    count: int | None = None
    """The number that its `expect` found."""


class UntilReview(Struct, frozen=True):
    """A reviewer's answer in `message`; `passed` is None without an answer.

    `tree` is the git tree that it saw, `left` the one at the end of its turn.
    """

    reviewer: str
    message: str | None
    passed: bool | None
    findings: tuple[ReviewFinding, ...]
    more: int
    tree: str
    left: str


class UntilRound(Struct, frozen=True):
    """A round: the doer's turns up to its reply, then its verification, in order.

    `skipped` are checks that did not run because they need a red one. `touched` are the tests, and the files that
    configure their runner, that the doer changed.
    """

    number: int
    doer: str
    messages: tuple[str, ...]
    checks: tuple[UntilCheck, ...]
    reviews: tuple[UntilReview, ...]
    skipped: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()


class MemberUsed(Struct, frozen=True):
    """The usage of a member in a process. None is unknown."""

    member: str
    turns: int
    seconds: float
    input_tokens: float | None
    output_tokens: float | None
    cost_usd: float | None


class UntilReport(Struct, frozen=True):
    """The result of an `until`. `files`, `seconds` and `members` come from the store."""

    kind: str
    do: str
    review: tuple[str, ...]
    result: str
    """How it ended: done, red, rejected, or open while it is not over."""
    rounds: tuple[UntilRound, ...]
    most_rounds: int
    tree: str
    """The git tree that was checked and reviewed last."""
    open_findings: tuple[ReviewFinding, ...]
    """The findings of the last reviews."""
    files: tuple[str, ...] = ()
    """The files that the process changed."""
    seconds: float = 0.0
    """The time of its turns and checks."""
    members: tuple[MemberUsed, ...] = ()
    before: tuple[UntilCheck, ...] = ()
    """The runs of checks before the work began."""
    flaky: tuple[str, ...] = ()
    """Checks that were green and red on one tree."""
    unprotected: bool = False
    """Whether no check protects files."""
    ignored: tuple[str, ...] = ()
    """Checks that did not run in a new folder, without what git ignores."""
    quorum: int | None = None
    planner: str = ""
    worktree: str = ""
    """The member in whose worktree all of it was done."""


def result(process: Process) -> str:
    """Return `done`, `red` (the last check was), `rejected` (by a reviewer), or `open` while it is not over."""
    if not process.over:
        return "open"
    seen = Seen.of(process)
    if seen.red:
        return "red"
    passed = verdict_of(process, reviews_of(process, seen))
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
        before=tuple(
            _run(done.part, done.finding) for done in process.of(CHECK, 0) if isinstance(done.finding, Checked)
        ),
        flaky=_flaky(process),
        unprotected=not any(check.protects for check in process.checks),
        ignored=tuple(check.name for check in process.checks if check.name not in seen.fresh),
        quorum=process.quorum,
        planner=process.planner,
        worktree=process.do if process.worktree else "",
    )


def _run(part: Part, ran: Checked) -> UntilCheck:
    return made_of(UntilCheck, ran, check=part.check, tree=ran.before, left=ran.after, fresh=part.fresh)


def _flaky(process: Process) -> tuple[str, ...]:
    """Name the checks that were both green and red on one tree, protected files and new folders aside."""
    seen: dict[tuple[str, str], set[str]] = {}
    for done in process.of(CHECK):
        ran = done.finding
        if isinstance(ran, Checked) and ran.before and ran.before == ran.after and not (ran.touched or done.part.fresh):
            seen.setdefault((ran.name, ran.before), set()).add(ran.status)
    return tuple(dict.fromkeys(name for (name, _), statuses in seen.items() if {"green", "red"} <= statuses))


def _rounds(process: Process) -> Iterator[UntilRound]:
    """List the rounds; work before the doer's first turn is not a round."""
    current: UntilRound | None = None
    for done in process.done:
        if done.part.role == DOER and (current is None or current.number != done.part.number):
            if current:
                yield _with_skipped(process, current)
            current = UntilRound(done.part.number, done.member, (), (), ())
        if current is None:
            continue
        if isinstance(done.finding, Tried):
            current = replace(current, touched=tuple(dict.fromkeys((*current.touched, *done.finding.touched))))
        if done.part.role == DOER and done.message:
            current = replace(current, messages=(*current.messages, done.message))
        elif isinstance(done.finding, Checked):
            current = replace(current, checks=(*current.checks, _run(done.part, done.finding)))
        elif done.part.role == REVIEWER:
            current = replace(current, reviews=(*current.reviews, _reviewed(done, done.finding)))
    if current:
        yield _with_skipped(process, current)


def _with_skipped(process: Process, round_: UntilRound) -> UntilRound:
    """Add to the round the checks that need one that is red in it, or that was skipped for that reason."""
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
