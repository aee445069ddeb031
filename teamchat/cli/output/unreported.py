"""Values that the members' CLIs do not report, for the note at the end of a run."""

from __future__ import annotations

from teamchat.cli.output.lines import tokens
from teamchat.core.receipt import Outcome


class Unreported:
    """Values that the members' CLIs do not report. A conversation gets one note on them, at the end of a run.

    `told`: an earlier run has printed the note.
    """

    def __init__(self, *, told: bool = False) -> None:
        self._told = told
        self._members: dict[tuple[str, ...], dict[str, int]] = {}  # by missing values: each member with its first turn

    def learn(self, member: str, number: int, outcome: Outcome) -> None:
        """Note what the turn with that number lacks, if it succeeded."""
        if self._told or outcome.failure:
            return
        lacks = [] if tokens(outcome.usage) else ["tokens"]
        lacks += ["denied actions"] if outcome.denied is None else []
        members = self._members.setdefault(tuple(lacks), {})
        if lacks:
            members[member] = min(number, members.get(member, number))

    def lines(self) -> list[str]:
        """Write `not reported by planner, builder: tokens, denied actions`, in the order of their turns."""
        reported, self._told = self._told, self._told or any(self._members)
        known = {} if reported else self._members
        return [
            f"not reported by {', '.join(sorted(turns, key=lambda name: turns[name]))}: {', '.join(lacks)}"
            for lacks, turns in known.items()
            if lacks
        ]
