"""What shows a run above the prompt."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from teamchat.cli.chatting.slash import named_in_chat
from teamchat.cli.output import Output
from teamchat.cli.output.terminal.look import look_of
from teamchat.cli.output.terminal.output import TerminalOutput
from teamchat.cli.output.terminal.surface import Surface
from teamchat.core.team.team import Team
from teamchat.core.turn.events import Conclusion, ConversationEvent, Warned


class Watched(Struct, frozen=True):
    """An output whose events chat follows, too. `you` are asked at the prompt, which needs no command."""

    inner: Output
    you: str
    before: Callable[[ConversationEvent], None]
    after: Callable[[ConversationEvent], None]

    def __call__(self, event: ConversationEvent) -> None:
        if isinstance(event, Warned):
            event = replace(event, text=named_in_chat(event.text))
        self.before(event)
        try:
            self.inner(event)
        finally:
            self.after(event)

    def finish(self, conclusion: Conclusion) -> None:
        asked = conclusion.waiting_for == self.you
        self.inner.finish(replace(conclusion, hint=None) if asked else conclusion)

    def close(self) -> None:
        self.inner.close()


def output_on(team: Team, surface: Surface, you: str) -> Output:
    """What shows a run of the team to the person at the keyboard."""
    return TerminalOutput(
        [member.name for member in team.members],
        surface,
        look_of(os.environ),
        people=frozenset(member.name for member in team.humans),
        you=you,
        receipt=lambda number: f"/show {number}",
    )
