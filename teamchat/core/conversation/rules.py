"""What a team file means to the engine."""

from __future__ import annotations

from teamchat.core.engine.state import Rules
from teamchat.core.team.team import Team


def rules_of(team: Team) -> Rules:
    return Rules(
        ai=tuple(member.name for member in team.ai_members),
        humans=tuple(member.name for member in team.humans),
        lead=team.lead,
        max_turns=team.limits.turns,
        max_seconds=team.limits.minutes * 60,
        max_tokens=team.limits.tokens,
        max_cost_usd=team.limits.cost_usd,
        max_stale=2 * team.limits.rounds,
    )
