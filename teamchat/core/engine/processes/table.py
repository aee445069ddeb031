"""The table of strategies, and what their parts are called. A new kind of process is a file here and a row here."""

from __future__ import annotations

from collections.abc import Mapping

from teamchat.core.engine.processes.best import BEST
from teamchat.core.engine.processes.debate import DEBATE
from teamchat.core.engine.processes.hierarchical import HIERARCHICAL
from teamchat.core.engine.processes.mapreduce import MAPREDUCE
from teamchat.core.engine.processes.sequential import SEQUENTIAL
from teamchat.core.engine.processes.until import UNTIL
from teamchat.core.engine.processes.vote import VOTE
from teamchat.core.engine.workflow import Kind, Part, Strategy
from teamchat.core.errors import StoreError

STRATEGIES: Mapping[Kind, Strategy] = {
    strategy.kind: strategy for strategy in (SEQUENTIAL, HIERARCHICAL, MAPREDUCE, DEBATE, VOTE, BEST, UNTIL)
}
TAKES: Mapping[str, tuple[str, ...]] = {kind.value: strategy.settings for kind, strategy in STRATEGIES.items()}
"""The settings that each kind of process takes. Each is an option of `teamchat run` and a key of the team file."""


def takers(setting: str) -> tuple[str, ...]:
    """The kinds that take the setting."""
    return tuple(kind for kind, settings in TAKES.items() if setting in settings)


def strategy_of(kind: str) -> Strategy:
    """The strategy of a stored part. Raises `StoreError` for a kind that only a later teamchat has."""
    for known, strategy in STRATEGIES.items():
        if known == kind:
            return strategy
    raise StoreError(f"the conversation has a {kind}, which only a later teamchat knows; use that")


def part_in_words(part: Part) -> str:
    """`worker of a map-reduce, subtask 3 of 12`."""
    strategy = strategy_of(part.kind)
    words = f"{strategy.roles.get(part.role, part.role)} of a {strategy.called}"
    again = ", asked again" if part.fault and part.role in strategy.repeated else ""
    return ", ".join(filter(None, (words, _count(part)))) + again


def part_in_short(part: Part) -> str:
    """`subtask 3 of 12`, `round 2 of 3`, `planner`; empty for a member that does what all members do."""
    role = strategy_of(part.kind).roles.get(part.role, part.role)
    return _count(part) or (role if part.role != "member" else "")


def can_be_skipped(part: Part) -> bool:
    """Whether the process can continue without the part."""
    return part.role in strategy_of(part.kind).several


def kind_in_words(kind: str) -> str:
    """`map-reduce`, `debate`."""
    return strategy_of(kind).called


def _count(part: Part) -> str:
    counted = strategy_of(part.kind).counted.get(part.role)
    return f"{counted} {part.number} of {part.total}" if counted and part.total > (counted == "round") else ""
