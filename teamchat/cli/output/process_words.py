"""What a process does, in words."""

from __future__ import annotations

from teamchat.core.engine.process import Kind, Process
from teamchat.runners.untrusted_json import listed


def described(process: Process) -> str:
    """What the members do, in one line: `max and sarah answer in 2 rounds, and max sums up`."""
    at_once = f", {process.jobs} at a time" if process.jobs else ""
    return f"{_does(process)}{at_once}"


def _does(process: Process) -> str:
    members, lead = listed(*process.members), process.lead
    match process.kind:
        case Kind.SEQUENTIAL:
            return f"{', then '.join(process.members)}{_rounds(process)}"
        case Kind.HIERARCHICAL:
            others = [name for name in process.members if name != lead] or process.members
            return f"{lead} hands out work to {listed(*others)}"
        case Kind.MAPREDUCE:
            subtasks = f"at most {process.most} subtasks"
            return f"{process.planner} plans {subtasks}, {members} do them, and {process.reducer} merges the results"
        case Kind.DEBATE:
            return f"{members} answer blind, then{_rounds(process) or ' once more'}, and {lead} sums up"
        case Kind.VOTE:
            return f"{members} choose from {', '.join(process.options)}"
        case Kind.BEST:
            return f"{members} do the whole task, and {process.judge} picks the best"


def _rounds(process: Process) -> str:
    return f" in {process.rounds:,} rounds" if process.rounds > 1 else ""
