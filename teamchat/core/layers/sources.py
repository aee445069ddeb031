"""Which source each layer of a stored session has."""

from __future__ import annotations

from teamchat.assemblers.base import FRAMEWORK
from teamchat.core.framework import framework_text
from teamchat.core.layers.collector import ContextCollector
from teamchat.core.store.database import Database
from teamchat.core.team import Team


def collector_of(team: Team, db: Database, session: int) -> ContextCollector:
    """The collector of a session; `share_context` decides whether more than the framework is told."""
    del db, session
    return ContextCollector(
        {FRAMEWORK: lambda occasion: framework_text(team, occasion.member)},
        share=team.share_context,
    )
