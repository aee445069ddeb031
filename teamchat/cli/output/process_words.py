"""What a process does, in words."""

from __future__ import annotations

from teamchat.core.engine.process import Kind, Process
from teamchat.runners.untrusted_json import listed


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
