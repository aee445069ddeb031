"""Vote: every member answers blind with one of the options and a reason, and the votes are counted.

No member sees the answer of another one. A reply without a valid vote is an abstention: no option is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Any
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.engine.part import Part
from teamchat.core.engine.process import (
    Ballot,
    Call,
    Done,
    Fault,
    Finding,
    Kind,
    Process,
    ProcessSettings,
    Step,
    Strategy,
)
from teamchat.core.engine.processes.seats import BLIND_LAYERS, seats, stand_in, wrong_members
from teamchat.core.engine.processes.written_json import written_object
from teamchat.core.errors import UsageError
from teamchat.core.routing.names import fold
from teamchat.core.routing.requests import RouteRequest, quoted
from teamchat.core.text.invisible import INVISIBLE
from teamchat.patterns import regex

MEMBER = "member"
NO_VOTE = "no valid vote"
LONGEST_OPTION = 200  # characters
_INVISIBLE = regex(f"[{INVISIBLE}\u061c\u200e\u200f]")


class Vote(Struct, frozen=True):
    """What a member voted in `message`; without an `option` it abstained, for the `reason`.

    `by` is the member that answered in its place, None if it did itself.
    """

    member: str
    message: str
    option: str | None
    reason: str
    by: str | None = None


class VoteReport(Struct, frozen=True):
    """`tally` has the votes for each option, `tied` the options that share the most votes in a tie.

    There is neither a winner nor a tie before every member has voted or was skipped, and none without votes. `missing`
    are the members without a reply.
    """

    kind: str
    options: tuple[str, ...]
    votes: tuple[Vote, ...]
    tally: dict[str, int]
    winner: str | None
    tie: bool
    tied: tuple[str, ...]
    abstained: tuple[str, ...]
    missing: tuple[str, ...]


def check(process: Process) -> str | None:
    if len(process.options) < 2:
        return "it needs at least two options"
    for option in process.options:
        if len(option) > LONGEST_OPTION or len(option.splitlines()) > 1:
            return f"the option {quoted(option)} is not one line of at most {LONGEST_OPTION} characters"
        if not fold_option(option):
            return "an option is blank"
    for one, other in combinations(process.options, 2):
        if fold_option(one) == fold_option(other):
            return f"the options {quoted(one)} and {quoted(other)} are the same"
    return wrong_members(process, least=1)


def step(process: Process) -> Step | None:
    """One group of all members, in the order in which they are named."""
    voted = seats(process.of(MEMBER))
    total = len(process.members)
    calls = tuple(
        Call(member, _part(process, member, number, total), as_of=process.request)
        for number, member in enumerate(process.members, 1)
        if member not in voted
    )
    return Step(calls) if calls else None


def _part(process: Process, member: str, number: int, total: int) -> Part:
    return Part(
        process.kind,
        MEMBER,
        number,
        total,
        seat=member,
        history=True,
        layers=BLIND_LAYERS,
        options=process.options,
        prompt=process.prompt,
    )


def read(process: Process, _part: Part, text: str, _requests: Sequence[RouteRequest]) -> Finding | None:
    written = written_object(text)
    if isinstance(written, Fault):
        return Ballot(None, f"{NO_VOTE}: {written.why}")
    reason = written.value.get("reason")
    return _ballot(process.options, written.value, reason if isinstance(reason, str) else "")


def _ballot(options: tuple[str, ...], written: dict[str, Any], reason: str) -> Ballot:
    option = written.get("option")
    if option is None and "option" in written:
        return Ballot(None, reason)
    if not isinstance(option, str):
        return Ballot(None, f'{NO_VOTE}: its JSON has no text as "option"')
    return next(
        (Ballot(meant, reason) for meant in options if _same(meant, option)),
        Ballot(None, f"{NO_VOTE}: {quoted(option)} is none of the options"),
    )


def _same(option: str, written: str) -> bool:
    """Whether an agent means that option. A text that is much longer than an option is not folded."""
    return len(written) <= 10 * LONGEST_OPTION and fold_option(option) == fold_option(written)


def fold_option(option: str) -> str:
    """The form in which options are compared: NFKC, without case, what cannot be seen and repeated spaces."""
    folded = normalize("NFKC", _INVISIBLE.sub("", option)).casefold()
    return " ".join(normalize("NFKC", folded).split())


def turns(process: Process) -> int:
    return len(process.members)


def report(process: Process) -> VoteReport:
    done = seats(process.of(MEMBER))
    cast = {member: _vote(process, member, done[member]) for member in process.members if member in done}
    votes = tuple(vote for vote in cast.values() if vote)
    counted = Counter(vote.option for vote in votes)
    tally = {option: counted[option] for option in process.options}
    first = _first(tally) if len(done) == len(process.members) else ()
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
        missing=tuple(member for member in process.members if not cast.get(member)),
    )


def _vote(process: Process, member: str, done: Done) -> Vote | None:
    """The vote of that member; None if it was skipped. Nobody votes for another member and for itself."""
    if done.message is None:
        return None
    by = stand_in(done, member)
    ballot = done.finding if isinstance(done.finding, Ballot) else Ballot(None, NO_VOTE)
    if by and fold(by) in map(fold, process.members):
        ballot = Ballot(None, f"{NO_VOTE}: {by} answered, who votes itself")
    return Vote(member, done.message, ballot.option, ballot.reason, by)


def _first(tally: dict[str, int]) -> tuple[str, ...]:
    """The options with the most votes; none if nobody voted."""
    most = max(tally.values(), default=0)
    return tuple(option for option, votes in tally.items() if votes == most > 0)


def text(process: Process, _reply: str) -> str:
    """The winner, or the options of a tie, one a line; empty as long as there is neither."""
    result = report(process)
    return "\n".join([result.winner] if result.winner else result.tied)


def undecided(process: Process) -> str | None:
    return "the vote has no winner" if report(process).winner is None else None


def begin(process: Process, asked: ProcessSettings, _most_turns: int) -> Process:
    if not asked.options:
        raise UsageError(f"{process.name or process.kind} needs options to choose from, such as --options yes,no")
    return replace(process, options=asked.options)


NOTES: Mapping[str, str] = MappingProxyType(
    {
        "member": (
            "This is a vote, and nobody sees how the others vote. The options are {options}. You may explain your "
            'vote first. End your reply with one line of JSON: {{"option": "OPTION", "reason": "REASON"}} where '
            "OPTION is one of the options, exactly as it is written here, and REASON is one sentence. To abstain, "
            'write null instead of "OPTION".'
        ),
    }
)
VOTE = Strategy(
    kind=Kind.VOTE,
    settings=("members", "options", "jobs"),
    called="vote",
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
)
