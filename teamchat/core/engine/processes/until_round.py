"""The current round of `until`: everything done since the doer's last turn, and the next check."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from teamchat.core.engine.workflow import (
    DOER,
    PERSON,
    Call,
    Checked,
    Done,
    Finding,
    Kind,
    Part,
    Process,
    ProcessCheck,
    Review,
    Tried,
)
from teamchat.runners.untrusted.json import first_of, listed

CHECK, REVIEWER, QUESTION, PLANNER = "check", "reviewer", "question", "planner"
BY_CHECK = "the check "  # The beginning of a check's name in `works_of`.
MOST_NAMED = 5  # changed files


def check_name(name: str) -> str:
    """Return the name of a check among names of members, none of which has a space."""
    return f"{CHECK} {name}"


class Seen(Struct, frozen=True):
    """The state since the doer's last turn."""

    tries: int
    """The number of the doer's turns, without turns that asked a person."""
    heard: int
    """The number of times that a person spoke to the doer between its turns."""
    spoken: tuple[Done, ...]
    answers: tuple[Done, ...]
    go: int
    """The number of the last verification."""
    tried: tuple[Done, ...]
    """All tries of its checks."""
    checked: Mapping[str, Done]
    """The last try of each of its checks, by name."""
    fresh: Mapping[str, Done]
    """The last try of each of its checks in a new folder, by name."""
    reviews: Mapping[str, Done]
    """The last answer of each seat."""
    earlier: Mapping[str, Done]
    """The last review of each seat before the doer's turn."""
    base: str

    @staticmethod
    def of(process: Process) -> Seen:
        done = process.done
        places = [place for place, ended in enumerate(done) if ended.part.role == DOER]
        since = done[places[-1] + 1 :] if places else ()
        before = [ended for ended in done[: len(done) - len(since)] if ended.part.role == REVIEWER]
        verified = [ended for ended in since if ended.part.role in (CHECK, REVIEWER)]
        go = max((ended.part.go for ended in verified), default=1)
        tried = tuple(ended for ended in verified if ended.part.role == CHECK and ended.part.go == go)
        spoke = [place for place, ended in enumerate(done) if ended.part.role == PERSON]
        gaps = {sum(place < spot for place in places) for spot in spoke} - {0}
        return Seen(
            tries=sum(not asks(ended) for ended in process.of(DOER)),
            heard=len(gaps),
            spoken=tuple(ended for ended in since if ended.part.role == PERSON),
            answers=tuple(ended for ended in since if ended.part.role == QUESTION),
            go=go,
            tried=tried,
            checked={ended.part.check: ended for ended in tried if not ended.part.fresh},
            fresh={ended.part.check: ended for ended in tried if ended.part.fresh},
            reviews={ended.part.seat: ended for ended in verified if ended.part.role == REVIEWER},
            earlier={ended.part.seat: ended for ended in before if isinstance(ended.finding, Review)},
            base=process.base or next(filter(None, (trees_of(ended.finding)[0] for ended in done)), ""),
        )

    @property
    def results(self) -> tuple[Checked, ...]:
        """The last result of each check, followed by those in a new folder."""
        last = (*self.checked.values(), *self.fresh.values())
        return tuple(done.finding for done in last if isinstance(done.finding, Checked))

    @property
    def red(self) -> tuple[Checked, ...]:
        return tuple(result for result in self.results if result.status == "red")

    @property
    def tree(self) -> str | None:
        """The tree where all checks of the last go are green; None if it changed meanwhile or is unknown."""
        every = (done.finding for done in self.tried if isinstance(done.finding, Checked))
        trees = {tree for result in every for tree in (result.before, result.after)}
        return trees.pop() if len(trees) == 1 and "" not in trees else None

    @property
    def why_no_tree(self) -> str:
        if unknown := next((result.unknown for result in self.results if result.unknown), ""):
            return f"what was checked is not known: {unknown}"
        if changing := [result for result in self.results if result.files]:
            files = [*dict.fromkeys(file for result in changing for file in result.files)]
            names = listed(*first_of(files, MOST_NAMED))
            return (
                f"files changed while they were checked, by a check or by somebody else: {names}; if they are only "
                "output of a check, name them in .gitignore"
            )
        return "the files changed while they were checked"


def trees_of(finding: Finding | None) -> tuple[str, str]:
    return (finding.before, finding.after) if isinstance(finding, Tried | Checked | Review) else ("", "")


def asks(done: Done) -> bool:
    return isinstance(done.finding, Tried) and bool(done.finding.asks)


def reviews_of(process: Process, seen: Seen) -> dict[str, Review]:
    """Return the reviews that count, by their seats."""
    found = ((seat, seen.reviews.get(seat)) for seat in process.review)
    return {seat: done.finding for seat, done in found if done and isinstance(done.finding, Review)}


def quorum_of(process: Process) -> int:
    """Return the number of reviewers that must pass."""
    return process.quorum or len(process.review)


def verdict_of(process: Process, reviews: Mapping[str, Review]) -> bool | None:
    """Return whether the reviews pass; None while the missing ones can decide it."""
    needed, passed = quorum_of(process), sum(review.passed for review in reviews.values())
    if passed >= needed:
        return True
    return False if len(process.review) - (len(reviews) - passed) < needed else None


def pending_check(process: Process, seen: Seen) -> Call | None:
    """Call the next check of this go without a result; a check that needs a red one never runs.

    A red check has another try if it may, unless its protected files were changed. Once all checks are green on one
    tree, those with `fresh` run in a new folder.
    """
    blocked: set[str] = set()
    for check in process.checks:
        if blocked.intersection(check.needs):
            blocked.add(check.name)
        elif call := _next_try(process, seen, check, seen.checked.get(check.name)):
            return call
        elif _is_red(seen.checked[check.name]):
            blocked.add(check.name)
    if not seen.tree or any(map(_is_red, seen.checked.values())):
        return None
    again = (
        _next_try(process, seen, check, seen.fresh.get(check.name), fresh=True)
        for check in process.checks
        if check.fresh and check.name not in blocked
    )
    return next(filter(None, again), None)


def _next_try(
    process: Process, seen: Seen, check: ProcessCheck, last: Done | None, *, fresh: bool = False
) -> Call | None:
    if last is None or not isinstance(last.finding, Checked):
        attempt = 1
    elif _is_red(last) and not last.finding.touched and last.part.attempt < check.tries:
        attempt = last.part.attempt + 1
    else:
        return None
    return check_call(process, check.name, seen.tries, seen.go, attempt, fresh=fresh)


def _is_red(done: Done) -> bool:
    return isinstance(done.finding, Checked) and done.finding.status == "red"


def pending_count(process: Process) -> Call | None:
    """Call the next check whose number must be known before the work begins."""
    known = {done.part.check for done in process.of(CHECK)}
    names = (check.name for check in process.checks if check.counts and check.name not in known)
    return next((check_call(process, name, 0, 0) for name in names), None)


def counted(process: Process, name: str) -> int | None:
    """Return the number that a check found before the work began."""
    before = (done.finding for done in process.of(CHECK, 0) if done.part.check == name)
    return next((result.count for result in before if isinstance(result, Checked)), None)


def check_call(process: Process, name: str, number: int, go: int, attempt: int = 1, *, fresh: bool = False) -> Call:
    part = Part(process.kind, CHECK, number, process.rounds, check=name, go=go, attempt=attempt, fresh=fresh)
    return Call(check_name(name), part)


def works_of(process: Process) -> tuple[tuple[str, str, str], ...]:
    """List each turn and check with the trees before and after it. An unknown tree is replaced by the next known one.

    The last tree may be empty.
    """
    works, last = [], process.base
    for done in process.done:
        if isinstance(done.finding, Tried | Checked | Review) and done.part.go:
            before, after = trees_of(done.finding)
            work = f"{BY_CHECK}{done.member}" if done.part.check else f"{done.member}'s turn"
            works.append((work, before or last, after))
            last = after or last
    return (*process.earlier, *((work, before, after) for work, before, after in works if before))


def left_changed(process: Process | None) -> tuple[tuple[str, str, str], ...]:
    """Return the turns and checks of a process that ended red for protected files, for the next process."""
    if process is None or process.kind is not Kind.UNTIL or not any(red.touched for red in Seen.of(process).red):
        return ()
    return works_of(process)
