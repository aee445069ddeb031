"""The result of a process, in lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from teamchat.core.engine.processes.best import BestReport
from teamchat.core.engine.processes.debate import DebateReport
from teamchat.core.engine.processes.mapreduce import MapReduceReport
from teamchat.core.engine.processes.until_report import UntilReport
from teamchat.core.engine.processes.vote import VoteReport
from teamchat.core.engine.processes.words import (
    best_lines,
    debate_lines,
    map_reduce_lines,
    not_voted,
    result_of,
    until_lines,
    vote_line,
    vote_title,
)
from teamchat.core.engine.workflow import Kind, Process
from teamchat.runners.untrusted.json import listed


def described(process: Process) -> str:
    """Say in one line what the members do: `max and sarah answer in 2 rounds, and max sums up`."""
    at_once = f", {process.jobs} at a time" if process.jobs else ""
    does = _works_until(process) if process.kind is Kind.UNTIL else _does(process)
    return f"{does}{at_once}"


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
        case _:
            return f"{members} do the whole task, and {process.judge} picks the best"


def _works_until(process: Process) -> str:
    """Say how `until` works: `sarah works until tests is green and carol agrees, in at most 3 rounds`."""
    names, reviewers = [check.name for check in process.checks], process.review
    green = f"{listed(*names)} {'is' if len(names) == 1 else 'are'} green" if names else ""
    agree = f"{listed(*reviewers)} {'agrees' if len(reviewers) == 1 else 'agree'}" if reviewers else ""
    until = " and ".join(filter(None, (green, agree)))
    return f"{process.do} works until {until}, in at most {process.rounds} round{'s' * (process.rounds > 1)}"


def lines_of(report: Struct) -> list[str]:
    """Write the result in lines, whatever the kind of process."""
    if lines := report_lines(report):
        return lines
    result = result_of(report)
    return [result.title, *(f"  {line}" for line in result.lines)] if result else ["the replies say all of it"]


def report_lines(report: Struct) -> list[str]:
    """Write the result and its reasons, a line each, as a program gets them; empty if the replies say all of it."""
    match report:
        case VoteReport():
            return list(_vote(report))
        case DebateReport():
            return list(debate_lines(report))
        case BestReport():
            return list(best_lines(report))
        case MapReduceReport():
            return list(map_reduce_lines(report))
        case UntilReport():
            return list(until_lines(report))
        case _:
            return []


def _vote(report: VoteReport) -> Iterator[str]:
    """Write the result, `yes wins: yes 2, no 1`, then each vote with its reason."""
    tally = ", ".join(f"{option} {votes}" for option, votes in report.tally.items())
    yield f"{vote_title(report)} ({tally})"
    yield from (f"  {line}" for line in (*map(vote_line, report.votes), *not_voted(report)))
