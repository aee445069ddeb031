"""Deleting a session, and finding the vendor sessions that the agents' CLIs keep of it."""

from __future__ import annotations

from dataclasses import dataclass

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, remove_session
from teamchat.core.store.turns import Turn, turns_of


@dataclass(frozen=True, slots=True)
class VendorSessions:
    """Sessions that an agent's CLI keeps in its own `folder`. teamchat does not touch them."""

    agent: str
    folder: str
    sessions: tuple[str, ...]


def delete_session(db: Database, session: Session) -> list[VendorSessions]:
    """Delete the session with all its rows. Returns what its CLIs keep. The caller holds the session's lock."""
    kept = _kept(turns_of(db, session.id))
    remove_session(db, session.id)
    return kept


def _kept(turns: list[Turn]) -> list[VendorSessions]:
    found: dict[tuple[str, str], dict[str, None]] = {}
    for turn in turns:
        sessions = AGENT_TYPES[turn.protocol].runner.sessions
        if sessions and turn.vendor_session and (sessions.keeps_all or turn.setup.memory != "fresh"):
            found.setdefault((turn.agent, sessions.stays_in), {})[turn.vendor_session] = None
    return [VendorSessions(agent, folder, tuple(names)) for (agent, folder), names in found.items()]
