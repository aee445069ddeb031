"""The result of a process, in lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from teamchat.cli.output.lines import plural
from teamchat.core.engine.process import Kind, Process
from teamchat.core.engine.processes.best import BestReport
from teamchat.core.engine.processes.debate import DebateReport
from teamchat.core.engine.processes.mapreduce import MapReduceReport, SubtaskStatus
from teamchat.core.engine.processes.vote import Vote, VoteReport
from teamchat.runners.untrusted_json import listed, one_line


def described(process: Process) -> str:
    """What the members do, in one line: `max and sarah answer in 2 rounds, and max sums up`."""
    at_once = f", {process.jobs} at a time" if process.jobs else ""
    return f"{_does(process)}{at_once}"


def _does(process: Process) -> str:
    members, lead, alone = listed(*process.members), process.lead, len(process.members) == 1
    match process.kind:
        case Kind.SEQUENTIAL:
            rounds = f" in {process.rounds:,} rounds" if process.rounds > 1 else ""
            return f"{', then '.join(process.members)}{rounds}"
        case Kind.HIERARCHICAL:
            others = [name for name in process.members if name != lead] or process.members
            return f"{lead} hands out work to {listed(*others)}"
        case Kind.MAPREDUCE:
            subtasks = f"at most {process.most} subtasks"
            does = "does" if alone else "do"
            return (
                f"{process.planner} plans {subtasks}, {members} {does} them, and {process.reducer} merges the results"
            )
        case Kind.DEBATE:
            again = f"in {process.rounds:,} more rounds" if process.rounds > 1 else "once more"
            return f"{members} answer blind, then {again}, and {lead} sums up"
        case Kind.VOTE:
            return f"{members} {'chooses' if alone else 'choose'} from {', '.join(process.options)}"
        case Kind.BEST:
            return f"{members} do the whole task, and {process.judge} picks the best"


LONGEST_TASK = 80  # characters of a subtask
LONGEST_REASON = 500  # characters of what a member gives as its reason or its position; `--json` has all of it


def report_lines(report: Struct) -> list[str]:
    """The result and what led to it, a line each; empty if the replies say all of it."""
    match report:
        case VoteReport():
            return list(_vote(report))
        case DebateReport():
            return list(_debate(report))
        case BestReport():
            return list(_best(report))
        case MapReduceReport():
            return list(_map_reduce(report))
        case _:
            return []


def _best(report: BestReport) -> Iterator[str]:
    """`best: kim picks sarah: It is the shortest.`, then what the letters in the reasons stand for."""
    if report.winner is None:
        yield "best: nobody is picked"
    elif any(one.label for one in report.candidates):
        yield f"best: {report.judge} picks {report.winner}: {_said(report.reasons or '')}"
    else:
        yield f"best: {report.winner}, without a judge: {report.reasons}"
    for one in report.candidates:
        letter = f" is {one.label}, and" if one.label else ""
        number = len(one.files) + one.more
        if one.message is None:
            yield f"  {one.member} gave no answer"
        else:
            yield f"  {one.member}{letter} changed {plural(number, 'file') if number else 'no file'}"


def _map_reduce(report: MapReduceReport) -> Iterator[str]:
    """`map-reduce: 8 of 12 subtasks are done, 3 are answered`, then each with who did it."""
    if not report.subtasks:
        yield f"map-reduce: {report.planner} has made no plan{f': {report.fault}' if report.fault else ''}"
        return
    done, kept = (
        sum(one.status is status for one in report.subtasks) for status in (SubtaskStatus.DONE, SubtaskStatus.ANSWERED)
    )
    more = f", {_are(kept)} answered" if kept else ""
    yield f"map-reduce: {done} of {plural(len(report.subtasks), 'subtask')} {'is' if done == 1 else 'are'} done{more}"
    for one in report.subtasks:
        by = f" by {one.member}" if one.member and one.status is SubtaskStatus.DONE else ""
        yield f"  {one.number}. {one.status}{by}: {one_line(one.task, LONGEST_TASK)}"


def _are(number: int) -> str:
    return f"{number} {'is' if number == 1 else 'are'}"


def _vote(report: VoteReport) -> Iterator[str]:
    """`yes wins: yes 2, no 1`, then each vote with its reason."""
    tally = ", ".join(f"{option} {votes}" for option, votes in report.tally.items())
    if report.winner is not None:
        yield f"vote: {report.winner} wins ({tally})"
    elif report.tie:
        yield f"vote: a tie of {listed(*report.tied)} ({tally})"
    else:  # of votes that are all there one option wins, or several tie
        yield f"vote: no winner{' yet' if any(report.tally.values()) else ''} ({tally})"
    for vote in report.votes:
        does = "abstains" if vote.option is None else f"votes {vote.option}"
        yield f"  {_voter(vote)} {does}{f': {_said(vote.reason)}' if vote.reason else ''}"
    yield from (f"  {member} has not voted" for member in report.missing)


def _voter(vote: Vote) -> str:
    return f"{vote.by} for {vote.member}" if vote.by else vote.member


def _debate(report: DebateReport) -> Iterator[str]:
    """`debate: 2 of 3 agree`, then who does not, and who changed its mind."""
    members = list(dict.fromkeys(answer.member for answer in report.answers))
    if report.agree is not None:
        yield f"debate: {len(report.agree)} of {len(members)} agree with the synthesis"
    elif report.synthesis is not None:
        yield "debate: the synthesis does not say who agrees with it"
    else:
        yield "debate: there is no synthesis yet"
    yield from (f"  {member} dissents: {_said(why)}" for member, why in (report.dissent or {}).items())
    for change in report.changes:
        before = f"{_said(change.before)} → " if change.before else ""
        yield f"  {change.member} changed its mind in round {change.round}: {before}{_said(change.after)}"
    yield from (f"  {member} gave no answer" for member in report.missing)


def _said(text: str) -> str:
    """A few words of a member, who may have written any number of lines."""
    return one_line(text, LONGEST_REASON)
