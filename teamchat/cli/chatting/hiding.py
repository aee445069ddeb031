"""The terminal without the prompt, for a command, an editor or a shell."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prompt_toolkit.application.run_in_terminal import in_terminal

from teamchat.cli.chatting.layout import Shown


@asynccontextmanager
async def without_prompt(shown: Shown) -> AsyncIterator[None]:
    """Remove the prompt and show it again. What is typed meanwhile and nobody reads comes to the prompt."""
    try:
        async with in_terminal():
            yield
    finally:
        shown.back_at = time.monotonic()
