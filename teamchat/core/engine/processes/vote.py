"""Vote: every member answers blind with one of the options and a reason, and the votes are counted.

No member sees the answer of another one. A member whose reply has no valid vote is asked once more; a second such reply
is an abstention: no option is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.engine.processes.replies import (
    BLIND_LAYERS,
    seats,
    stand_in,
    too_large,
    written_object,
    wrong_members,
)
from teamchat.core.engine.workflow import (
    Ballot,
    Call,
    Done,
    Fault,
    Finding,
    Kind,
    Open,
    Part,
    Process,
    ProcessSettings,
    Step,
    Strategy,
)
from teamchat.core.errors import UsageError
from teamchat.core.routing.names import fold
from teamchat.core.routing.requests import RouteRequest, quoted
from teamchat.core.text.commands import command_of
from teamchat.core.text.invisible import INVISIBLE
from teamchat.core.text.last_word import without_marks
from teamchat.patterns import regex

MEMBER = "member"
NO_VOTE = "no valid vote"
LONGEST_OPTION = 200  # characters
_MOST = 10 * LONGEST_OPTION
_NUMBER = regex(r"-?[0-9]+(?:\.[0-9]+)?")
_INVISIBLE = regex(f"[{INVISIBLE}\u061c\u200e\u200f]")


class Vote(Struct, frozen=True):
    """A member's vote in `message`; without an `option` it abstained, for the `reason`.

    `by` is the member that answered in its place, None if it did itself.
    """

    member: str
    message: str
    option: str | None
    reason: str
    by: str | None = None


class VoteReport(Struct, frozen=True):
    """The result of a vote.

    It has no winner and no tie before every member has voted or was skipped, and none without votes. With a `quorum` it
    is decided once that many have voted and the missing votes cannot change it.
    """

    kind: str
    options: tuple[str, ...]
    votes: tuple[Vote, ...]
    tally: dict[str, int]
    """The votes for each option."""
    winner: str | None
    tie: bool
    tied: tuple[str, ...]
    """The options that share the most votes in a tie."""
    abstained: tuple[str, ...]
    missing: tuple[str, ...]
    """The members without a reply."""
    quorum: int | None = None


def check(process: Process) -> str | None:
    if len(process.options) < 2:
        return "it needs at least two options"
    for option in process.options:
        if len(option) > LONGEST_OPTION or len(option.splitlines()) > 1:
            return f"the option {quoted(option)} is not one line of at most {LONGEST_OPTION} characters"
        if not fold_option(option):
            return "an option is blank"
    for option, other in combinations(process.options, 2):
        if fold_option(option) == fold_option(other):
            return f"the options {quoted(option)} and {quoted(other)} are the same"
    return wrong_members(process, least=1) or too_large(process.quorum, len(process.members), "member")


def step(process: Process) -> Step | None:
    """Call all members as one group, in the order of their names in the call; then call those without a vote again."""
    if process.quorum and decided(process):
        return None
    voted = seats(process.of(MEMBER))
    waiting = [member for member in process.members if member not in voted] or _unread(voted)
    total = len(process.members)
    calls = tuple(
        Call(member, _part(process, member, number, total, voted.get(member)), as_of=process.request)
        for number, member in enumerate(process.members, 1)
        if member in waiting
    )
    return Step(calls) if calls else None


def _unread(voted: Mapping[str, Done]) -> list[str]:
    """List the members whose only reply has no valid vote."""
    return [member for member, done in voted.items() if isinstance(done.finding, Fault)]


def _part(process: Process, member: str, number: int, total: int, last: Done | None) -> Part:
    """Build the part of a member. After a reply without a valid vote, it also shows that reply."""
    again = last.finding.why if last and isinstance(last.finding, Fault) else ""
    return Part(
        process.kind,
        MEMBER,
        number,
        total,
        seat=member,
        history=True,
        layers=BLIND_LAYERS,
        shows=(last.message,) if again and last and last.message else (),
        labels=("your last reply",) if again else (),
        fault=again,
        options=process.options,
        prompt=process.prompt,
    )


def decided(process: Process) -> bool:
    """Whether the quorum has voted, and no missing vote can change who has the most."""
    again = _unread(seats(process.of(MEMBER)))  # they are asked once more
    votes = [vote for vote in _votes(process) if vote.member not in again]
    missing = len(process.members) - len(votes)
    first, second = sorted((0, 0, *Counter(vote.option for vote in votes if vote.option).values()))[:-3:-1]
    return len(votes) >= (process.quorum or len(process.members)) and first - second > missing


def read(process: Process, part: Part, text: str, _requests: Sequence[RouteRequest]) -> Finding | None:
    written = written_object(text)
    ballot = written if isinstance(written, Fault) else _ballot(process.options, written.value)
    return Ballot(None, f"{NO_VOTE}: {ballot.why}") if isinstance(ballot, Fault) and part.fault else ballot


def _ballot(options: tuple[str, ...], written: dict[str, Any]) -> Ballot | Fault:
    option, reason = written.get("option"), written.get("reason")
    reason = reason if isinstance(reason, str) else ""
    if option is None and "option" in written:
        return Ballot(None, reason)
    meant = _meant(options, option)
    if len(meant) == 1:
        return Ballot(meant[0], reason)
    if not isinstance(option, str):
        return Fault('its JSON has no text as "option"')
    return Fault(f"{quoted(option)} is none of the options")


def _meant(options: tuple[str, ...], written: object) -> list[str]:
    """List the options that a text, a number or a truth value can mean."""
    match written:
        case str() if len(written) <= _MOST:  # a longer one is not folded
            folded = fold_option(written)
            meant = without_marks(folded)  # drops the punctuation around it
            return [option for option in options if fold_option(option) == folded] or [
                option for option in options if meant and meant == without_marks(fold_option(option))
            ]
        case bool():
            return [option for option in options if fold_option(option) == str(written).lower()]
        case float():  # 3.1 and 3.10 are the same number
            return [option for option in options if _NUMBER.fullmatch(option) and float(option) == written]
        case _:
            return []


def fold_option(option: str) -> str:
    """Reduce an option to the form for comparing: NFKC, without case, invisible characters and repeated spaces."""
    folded = normalize("NFKC", _INVISIBLE.sub("", option)).casefold()
    return " ".join(normalize("NFKC", folded).split())


def turns(process: Process) -> int:
    return len(process.members)


def report(process: Process) -> VoteReport:
    done = seats(process.of(MEMBER))
    votes = _votes(process)
    counted = Counter(vote.option for vote in votes)
    tally = {option: counted[option] for option in process.options}
    whole = len(done) == len(process.members) and not _unread(done)
    first = _first(tally) if whole or (process.quorum and decided(process)) else ()
    tied = first if len(first) > 1 else ()
    return VoteReport(
        kind=process.kind,
        options=process.options,
        votes=votes,
        tally=tally,
        winner=first[0] if len(first) == 1 else None,
        tie=bool(tied),
        tied=tied,
        abstained=tuple(vote.member for vote in votes if vote.option is None),
        missing=tuple(member for member in process.members if member not in {vote.member for vote in votes}),
        quorum=process.quorum,
    )


def _votes(process: Process) -> tuple[Vote, ...]:
    """List the votes so far, in the order of the members."""
    done = seats(process.of(MEMBER))
    cast = (_vote(process, member, done[member]) for member in process.members if member in done)
    return tuple(vote for vote in cast if vote)


def _vote(process: Process, member: str, done: Done) -> Vote | None:
    """Return the member's vote; None if it was skipped. Nobody votes both for itself and for another member."""
    if done.message is None:
        return None
    by = stand_in(done, member)
    no_vote = f"{NO_VOTE}: {done.finding.why}" if isinstance(done.finding, Fault) else NO_VOTE
    ballot = done.finding if isinstance(done.finding, Ballot) else Ballot(None, no_vote)
    if by and fold(by) in map(fold, process.members):
        ballot = Ballot(None, f"{NO_VOTE}: {by} answered, who votes itself")
    return Vote(member, done.message, ballot.option, ballot.reason, by)


def _first(tally: dict[str, int]) -> tuple[str, ...]:
    """Return the options with the most votes; none if nobody voted."""
    most = max(tally.values(), default=0)
    return tuple(option for option, votes in tally.items() if votes == most > 0)


def text(process: Process, _reply: str) -> str:
    """Name the winner, or the options of a tie, one a line; empty as long as there is neither."""
    result = report(process)
    return "\n".join([result.winner] if result.winner else result.tied)


def undecided(process: Process) -> Open | None:
    return Open("the vote has no winner") if report(process).winner is None else None


def begin(process: Process, asked: ProcessSettings, _most_turns: int) -> Process:
    if not asked.options:
        name = process.name or process.kind
        hint = command_of("teamchat", "run", name, "--options", "yes,no", "Your question")
        raise UsageError(f"{name} needs options to choose from, such as --options yes,no", hint)
    return replace(process, options=asked.options)


NOTES: Mapping[str, str] = {
    "member": (
        "This is a vote, and nobody sees how the others vote. The options are {options}. You may explain your "
        'vote first. End your reply with one line of JSON: {{"option": "OPTION", "reason": "REASON"}} where '
        "OPTION is one of the options, exactly as it is written here, and REASON is one sentence. To abstain, "
        'write null instead of "OPTION".'
    ),
    "member.repair": (
        "Your last reply is quoted above. It has no valid vote: {fault}. Reply with the line of JSON alone."
    ),
}
VOTE = Strategy(
    kind=Kind.VOTE,
    settings=("members", "options", "jobs", "quorum"),
    called="vote",
    repeated=(MEMBER,),
    several=(MEMBER,),
    begin=begin,
    notes=NOTES,
    check=check,
    step=step,
    read=read,
    report=report,
    turns=turns,
    text=text,
    undecided=undecided,
    decided=decided,
)
