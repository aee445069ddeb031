"""The strategy of a process, and the names of its parts. The processes are imported when one is asked for."""

from __future__ import annotations

from teamchat.core.engine.workflow import Part, Strategy
from teamchat.core.errors import StoreError


def strategy_of(kind: str) -> Strategy:
    """Return the strategy of a kind. Raises `StoreError` for a kind that only a later teamchat has."""
    from teamchat.core.engine.processes.table import STRATEGIES  # only `teamchat run` needs the processes

    for known, strategy in STRATEGIES.items():
        if known == kind:
            return strategy
    raise StoreError(f"the conversation has a {kind}, which only a later teamchat knows; use that")


def part_in_words(part: Part) -> str:
    """Write the part in words: `worker of a map-reduce, subtask 3 of 12`."""
    strategy = strategy_of(part.kind)
    words = f"{strategy.roles.get(part.role, part.role)} of a {strategy.called}"
    again = ", asked again" if part.fault and part.role in strategy.repeated else ""
    return ", ".join(filter(None, (words, _count(part)))) + again


def part_in_short(part: Part) -> str:
    """Write `subtask 3 of 12`, `round 2 of 3`, `planner`; empty for a member that does what all members do."""
    role = strategy_of(part.kind).roles.get(part.role, part.role)
    return _count(part) or (role if part.role != "member" else "")


def can_be_skipped(part: Part) -> bool:
    """Whether the process can continue without the part."""
    return part.role in strategy_of(part.kind).several


def kind_in_words(kind: str) -> str:
    """Write the kind in words: `map-reduce`, `debate`."""
    return strategy_of(kind).called


def _count(part: Part) -> str:
    counted = strategy_of(part.kind).counted.get(part.role)
    return f"{counted} {part.number} of {part.total}" if counted and part.total > (counted == "round") else ""
