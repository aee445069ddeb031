"""What a turn does in a process, and what its prompt may show.

What a turn does in a process, in words, and whether the others can continue without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct


class Part(Struct, frozen=True):
    """The part of a process that a turn does. `kind` and `role` say what is asked, with `number` of `total`.

    - `seat` is the member for whom it is done, where that matters: a fallback may do it in its place.
    - `handover`: markers of its reply call members, and its prompt says how.
    - `history`: its prompt quotes the conversation before the message that it answers.
    - `continues`: the turn continues the member's vendor session, which knows what was said before.
    - `layers` are the names of the layers that it may see; None is all of them.
    - `shows` are ids of messages that its prompt quotes besides, each said by the one of `labels`, or by its speaker.
    - `task`: its prompt shows the team's task.
    - `instead` replaces the text of the message that it answers.
    - `apart`: a member that may write works in a worktree of its own, and no fallback takes its place.
    - `compares` are the members whose worktrees its prompt compares, each called by the one of `options`. The turn may
      only read.
    - `others` are the members that do it if this one fails, in the order of asking.
    - `options`, `fault` and `prompt` fill in the note on what is asked.
    """

    kind: str
    role: str
    number: int = 0
    total: int = 0
    seat: str = ""
    handover: bool = False
    history: bool = False
    continues: bool = False
    layers: tuple[str, ...] | None = None
    task: bool = True
    shows: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    instead: str = ""
    apart: bool = False
    compares: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    fault: str = ""
    prompt: str = ""


_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "sequential": "sequential process",
        "hierarchical": "hierarchical process",
        "mapreduce": "map-reduce",
        "best": "best-of",
    }
)
"""What a kind is called, if not by its name."""
_ROLES: Mapping[tuple[str, str], str] = MappingProxyType(
    {("debate", "blind"): "blind answer", ("debate", "round"): "answer"}
)
"""What a part is called, if not by its role."""
_COUNTED: Mapping[tuple[str, str], str] = MappingProxyType(
    {("sequential", "member"): "round", ("debate", "round"): "round", ("mapreduce", "worker"): "subtask"}
)
"""What the number of a part counts. Other numbers are not shown."""
_REPEATED = (("hierarchical", "lead"), ("mapreduce", "planner"), ("best", "judge"))
"""The parts that are asked for again after a reply that lacked the form."""

_ONE_OF_SEVERAL = frozenset(("member", "worker", "blind", "round"))
"""The roles that several members have; of the others each has one."""


def part_in_words(part: Part) -> str:
    """`worker of a map-reduce, subtask 3 of 12`."""
    key = (part.kind, part.role)
    words = f"{_ROLES.get(key, part.role)} of a {kind_in_words(part.kind)}"
    again = ", asked again" if part.fault and key in _REPEATED else ""
    return ", ".join(filter(None, (words, _count(part)))) + again


def part_in_short(part: Part) -> str:
    """`subtask 3 of 12`, `round 2 of 3`, `planner`; empty for a member that does what all members do."""
    return _count(part) or (_ROLES.get((part.kind, part.role), part.role) if part.role != "member" else "")


def can_be_skipped(part: Part) -> bool:
    """Whether the process can continue without the part."""
    return part.role in _ONE_OF_SEVERAL


def kind_in_words(kind: str) -> str:
    """`map-reduce`, `debate`."""
    return _KINDS.get(kind, kind)


def _count(part: Part) -> str:
    counted = _COUNTED.get((part.kind, part.role))
    return f"{counted} {part.number} of {part.total}" if counted and part.total > (counted == "round") else ""
