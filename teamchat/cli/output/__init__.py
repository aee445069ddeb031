"""The ways of showing a conversation: on a terminal, piped, quiet, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from teamchat.core.store.checks import CheckRecord
from teamchat.core.turn.run_events import CheckFinished, Conclusion, ConversationEvent, MessageStored, Replied


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


class EachMessage:
    """Shows every message with `show`, people's included, and everything else with `others`.

    `check`, if given, shows finished checks.
    """

    def __init__(
        self,
        show: Callable[[MessageStored | Replied], None],
        others: Output,
        check: Callable[[CheckRecord], None] | None = None,
    ) -> None:
        self.show, self.others, self.check = show, others, check

    def __call__(self, event: ConversationEvent) -> None:
        if isinstance(event, MessageStored | Replied):
            self.show(event)
        elif self.check and isinstance(event, CheckFinished):
            self.check(event.check)
        else:
            self.others(event)

    def finish(self, conclusion: Conclusion) -> None:
        self.others.finish(conclusion)

    def close(self) -> None:
        self.others.close()
