"""The names of `teamchat.core.scripted.server` that tests use."""

from __future__ import annotations

from teamchat.core.scripted.server import ModelServer, prompt, system_text, tool_results

__all__ = ["ModelServer", "prompt", "system_text", "tool_results"]
