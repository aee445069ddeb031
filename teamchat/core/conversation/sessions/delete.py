"""Deleting a session, and finding the vendor sessions that the agents' CLIs keep of it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.refs import prune
from teamchat.core.checkpoint.values import NoRepository
from teamchat.core.conversation.differences import known_changes
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, fence_key, remove_session
from teamchat.core.store.turns import Turn, turns_of
from teamchat.core.turn.work_trees import refs_of


class VendorSessions(Struct, frozen=True):
    """Sessions that an agent's CLI keeps in its own `folder`. teamchat does not touch them."""

    agent: str
    folder: str
    sessions: tuple[str, ...]


def delete_session(db: Database, session: Session) -> tuple[list[VendorSessions], list[str]]:
    """Delete the session with all its rows, and its checkpoints. The caller holds the session's lock.

    Returns what its CLIs keep, and a sentence for each work tree whose checkpoints stay.
    """
    turns = turns_of(db, session.id)
    vendor_sessions, tops = _kept(turns), {changes.top for turn in turns if (changes := known_changes(turn))}
    refs = refs_of(fence_key(db, session.id)).removeprefix("refs/teamchat/")
    remove_session(db, session.id)
    return vendor_sessions, [problem for top in sorted(tops) if (problem := _forget(Path(top), db.path.parent, refs))]


def _forget(top: Path, state_folder: Path, refs: str) -> str | None:
    """Remove the session's checkpoints from a work tree; say why they stay, if they do."""
    repository = find_repository(top, state_folder)
    if isinstance(repository, NoRepository):
        return f"checkpoints in {top} stay: {repository.reason}" if top.is_dir() else None
    try:
        prune(repository, state_folder, refs)
    except CheckpointFailed as failed:
        return f"checkpoints in {top} stay: {failed}"
    return None


def _kept(turns: list[Turn]) -> list[VendorSessions]:
    by_agent: dict[tuple[str, str], dict[str, None]] = {}
    for turn in turns:
        sessions = turn.type.runner.sessions
        if sessions and turn.vendor_session and (sessions.keeps_all or turn.setup.memory != "fresh"):
            by_agent.setdefault((turn.agent, sessions.stays_in), {})[turn.vendor_session] = None
    return [VendorSessions(agent, folder, tuple(names)) for (agent, folder), names in by_agent.items()]
