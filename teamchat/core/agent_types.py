"""The names of agent types: the ones that a user writes, and the full name that the tables use."""

from __future__ import annotations

from typing import Literal

Like = Literal["plain", "claude", "codex", "gemini", "terminal"]
"""What a program's prompts and output are like; a team file writes it as `like`."""

_FULL_NAMES = {
    "claude": "claude-code",
    "claude-code": "claude-code",
    "codex": "openai-codex",
    "openai-codex": "openai-codex",
    "gemini": "google-gemini",
    "google-gemini": "google-gemini",
}


def normalize_agent_type(name: str) -> str:
    """The full name of a known agent type, whatever its case; any other name as it was written."""
    return _FULL_NAMES.get(name.lower(), name)
