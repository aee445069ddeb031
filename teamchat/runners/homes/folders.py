"""The folders where Claude and Gemini keep the user's files (observed at 2.1.330 and 0.61.0).

Codex: `codex.configuration.home`; opencode: `opencode.configuration.user_files`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def user_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME", "/nonexistent"))


def claude_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of Claude's settings, commands and skills."""
    return Path(env.get("CLAUDE_CONFIG_DIR") or user_home(env) / ".claude")


def claude_record(env: Mapping[str, str]) -> Path:
    """Return the file where Claude notes the user's MCP servers and the folders that the user trusts."""
    return Path(env.get("CLAUDE_CONFIG_DIR") or user_home(env)) / ".claude.json"


def gemini_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of Gemini's settings and commands."""
    return Path(env.get("GEMINI_CLI_HOME") or user_home(env)) / ".gemini"
