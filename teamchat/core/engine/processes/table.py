"""The table of strategies. A new kind of process is a file here, a row here, and its notes for prompts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from teamchat.core.engine.process import Kind, Strategy
from teamchat.core.engine.processes.best import BEST
from teamchat.core.engine.processes.debate import DEBATE
from teamchat.core.engine.processes.hierarchical import HIERARCHICAL
from teamchat.core.engine.processes.mapreduce import MAPREDUCE
from teamchat.core.engine.processes.sequential import SEQUENTIAL
from teamchat.core.engine.processes.vote import VOTE

STRATEGIES: Mapping[Kind, Strategy] = MappingProxyType(
    {
        Kind.SEQUENTIAL: SEQUENTIAL,
        Kind.HIERARCHICAL: HIERARCHICAL,
        Kind.MAPREDUCE: MAPREDUCE,
        Kind.DEBATE: DEBATE,
        Kind.VOTE: VOTE,
        Kind.BEST: BEST,
    }
)
