"""The ways of showing a conversation: on a terminal, piped, quiet, as JSON."""

from __future__ import annotations

from typing import Protocol

from teamchat.core.turn.events import Conclusion, ConversationEvent


class Output(Protocol):
    """Shows a run of the conversation as it happens, and its end."""

    def __call__(self, event: ConversationEvent) -> None: ...

    def finish(self, conclusion: Conclusion) -> None: ...

    def close(self) -> None:
        """Leave what it writes to as it was. Called once, also after an error; `finish` may not have been called."""
        ...


class Silent:
    """Shows nothing."""

    def __call__(self, event: ConversationEvent) -> None: ...

    def finish(self, conclusion: Conclusion) -> None: ...

    def close(self) -> None: ...
