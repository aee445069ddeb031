"""The context manager of a session of the store, as the team file has it."""

from __future__ import annotations

from collections.abc import Callable

from teamchat.assemblers.truncation import TruncationPolicy
from teamchat.core.context_manager import ContextManager
from teamchat.core.history import Summarised, no_summaries
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import fence_key
from teamchat.core.store.summaries import summary_before
from teamchat.core.team import Team


def manager_of(team: Team, db: Database, session: int, moved: Callable[[int], None] = lambda _: None) -> ContextManager:
    """`moved` is told of the new session when the manager is cleared, or takes over a snapshot."""
    log = SqliteLog(db, session, moved)

    def summarised(before: str) -> Summarised | None:
        summary = summary_before(db, log.session, before)
        return Summarised(summary.through, summary.kept) if summary else None

    return ContextManager(
        log,
        context_window_size=team.context_window,
        max_bytes=team.max_bytes,
        target_bytes=TruncationPolicy(team.max_prompt_tokens, "tokens").byte_budget,
        per_message=TruncationPolicy(team.message_bytes),
        fence_key=fence_key(db, session) if team.fence else None,
        summaries=summarised if team.share_context else no_summaries,
    )
