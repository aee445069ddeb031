"""What a turn does in a process, in words, and whether the others can continue without it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from teamchat.core.engine.part import Part

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
