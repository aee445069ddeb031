"""The text of a message as prompts quote it: without its markers."""

from __future__ import annotations

from teamchat.core.messages import NewMessage
from teamchat.core.routing.markers import read_markers


def quoted_text(message: NewMessage) -> str:
    """The text that a prompt quotes: without markers, and in an agent's message without invisible characters."""
    return read_markers(message.content, "human" if message.speaker.type == "human" else "ai").quoted
