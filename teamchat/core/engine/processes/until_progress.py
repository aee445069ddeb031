"""Whether an `until` gets on, judged by the doer's git trees and the checks' output, not by its words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from teamchat.core.engine.processes.until_round import asks, trees_of
from teamchat.core.engine.workflow import DOER, Checked, Done, Process
from teamchat.runners.untrusted.json import listed

OFTEN = 3  # Failures of the same lines from which on the process is stalled.


def stalled(process: Process) -> str | None:
    """Say why the doer's last turn made no progress, and which turns show it; None if the work gets on.

    Its turn left the files as an earlier one did, or the same lines of a check failed for the third time.
    """
    turns = [done for done in process.of(DOER) if not asks(done)]
    return _same_tree(turns) or _same_lines(process)


def _same_tree(turns: Sequence[Done]) -> str | None:
    last, *earlier = reversed(turns)
    tree = trees_of(last.finding)[1]
    same = next((turn for turn in earlier if tree and trees_of(turn.finding)[1] == tree), None)
    if same is None:
        return None
    return f"{_turn(last)} left the files as {_turn(same)} did"


def _same_lines(process: Process) -> str | None:
    """Say which check failed with the same lines too often. A check red for protected files has none."""
    turn, failed = None, defaultdict[tuple[str, str], dict[str, Done]](dict)
    for done in process.done:
        if done.part.role == DOER:
            turn = None if asks(done) else done
        elif turn and isinstance(done.finding, Checked) and _fails(done.finding):
            failed[done.part.check, done.finding.failing][turn.message or ""] = turn
    for (check, _), turns in failed.items():
        if len(turns) >= OFTEN and turn and turn.message in turns:
            return f"the same lines of {check} failed after {listed(*map(_turn, turns.values()))}"
    return None


def _fails(result: Checked) -> bool:
    return result.status == "red" and bool(result.failing) and not result.touched


def _turn(done: Done) -> str:
    """Name the turn by the message that it ended with."""
    return f"{done.member}'s turn {done.message or 'without a reply'}"
