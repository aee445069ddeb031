"""A round of `until` as it is so far: what is done since the doer's last turn, and which check comes next."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from teamchat.core.engine.workflow import DOER, PERSON, Call, Checked, Done, Finding, Part, Process, Review, Tried
from teamchat.runners.untrusted.json import first_of, listed

CHECK, REVIEWER, QUESTION = "check", "reviewer", "question"
MOST_NAMED = 5  # changed files


def check_name(name: str) -> str:
    """Return the name of a check among names of members, none of which has a space."""
    return f"{CHECK} {name}"


class Seen(Struct, frozen=True):
    """What is done since the doer's last turn.

    `tries` are the doer's turns but those that asked a person, `heard` is how often a person spoke to it meanwhile.
    `go` is the number of the last verification, `checked` has its checks by their names, `reviews` the last answer of
    each seat, `earlier` its last review before the doer's turn.
    """

    tries: int
    heard: int
    spoken: tuple[Done, ...]
    answers: tuple[Done, ...]
    go: int
    checked: Mapping[str, Done]
    reviews: Mapping[str, Done]
    earlier: Mapping[str, Done]
    base: str

    @staticmethod
    def of(process: Process) -> Seen:
        done = process.done
        places = [place for place, ended in enumerate(done) if ended.part.role == DOER]
        since = done[places[-1] + 1 :] if places else ()
        before = [ended for ended in done[: len(done) - len(since)] if ended.part.role == REVIEWER]
        verified = [ended for ended in since if ended.part.role in (CHECK, REVIEWER)]
        go = max((ended.part.go for ended in verified), default=1)
        spoke = [place for place, ended in enumerate(done) if ended.part.role == PERSON]
        gaps = {sum(place < spot for place in places) for spot in spoke} - {0}
        return Seen(
            tries=sum(not asks(ended) for ended in process.of(DOER)),
            heard=len(gaps),
            spoken=tuple(ended for ended in since if ended.part.role == PERSON),
            answers=tuple(ended for ended in since if ended.part.role == QUESTION),
            go=go,
            checked={ended.part.check: ended for ended in verified if ended.part.role == CHECK and ended.part.go == go},
            reviews={ended.part.seat: ended for ended in verified if ended.part.role == REVIEWER},
            earlier={ended.part.seat: ended for ended in before if isinstance(ended.finding, Review)},
            base=process.base or next(filter(None, (trees_of(ended.finding)[0] for ended in done)), ""),
        )

    @property
    def results(self) -> tuple[Checked, ...]:
        return tuple(done.finding for done in self.checked.values() if isinstance(done.finding, Checked))

    @property
    def red(self) -> bool:
        return any(result.status == "red" for result in self.results)

    @property
    def tree(self) -> str | None:
        """The tree on which all checks of the last go are green, None if it changed meanwhile or is not known."""
        trees = {tree for result in self.results for tree in (result.before, result.after)}
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


def answer_of(seen: Seen, seat: str) -> Finding | None:
    done = seen.reviews.get(seat)
    return done.finding if done else None


def pending_check(process: Process, seen: Seen) -> Call | None:
    """The next check of this go that has no result; one that needs a red one never gets any."""
    blocked: set[str] = set()
    for check in process.checks:
        done = seen.checked.get(check.name)
        if blocked.intersection(check.needs):
            blocked.add(check.name)
        elif done is None or not isinstance(done.finding, Checked):
            return check_call(process, check.name, seen.tries, seen.go)
        elif done.finding.status == "red":
            blocked.add(check.name)
    return None


def check_call(process: Process, name: str, number: int, go: int) -> Call:
    part = Part(process.kind, CHECK, number, process.rounds, check=name, go=go)
    return Call(check_name(name), part)
