"""The table of strategies. A new kind of process is a file here and a row here."""

from __future__ import annotations

from collections.abc import Mapping

from teamchat.core.engine.processes.best import BEST
from teamchat.core.engine.processes.debate import DEBATE
from teamchat.core.engine.processes.hierarchical import HIERARCHICAL
from teamchat.core.engine.processes.mapreduce import MAPREDUCE
from teamchat.core.engine.processes.sequential import SEQUENTIAL
from teamchat.core.engine.processes.until import UNTIL
from teamchat.core.engine.processes.vote import VOTE
from teamchat.core.engine.workflow import Kind, Strategy

STRATEGIES: Mapping[Kind, Strategy] = {
    strategy.kind: strategy for strategy in (SEQUENTIAL, HIERARCHICAL, MAPREDUCE, DEBATE, VOTE, BEST, UNTIL)
}
TAKES: Mapping[str, tuple[str, ...]] = {kind.value: strategy.settings for kind, strategy in STRATEGIES.items()}
"""The settings that each kind of process takes. Each is an option of `teamchat run` and a key of the team file."""


def takers(setting: str) -> tuple[str, ...]:
    """List the kinds that take the setting."""
    return tuple(kind for kind, settings in TAKES.items() if setting in settings)
