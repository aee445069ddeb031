"""The names of `teamchat.core.scripted.reply` that tests use."""

from __future__ import annotations

from teamchat.core.scripted.reply import Reply, ToolUse, use

__all__ = ["Reply", "ToolUse", "use"]
