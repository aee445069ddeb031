"""The keyboard of `chat`: where the runs of its commands are shown, and what stops them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Protocol

from teamchat.cli.output import Output
from teamchat.core.team.team import Team
from teamchat.runners.process.supervisor import Stopper


class Keyboard(Protocol):
    """A person types at it while members work. Their messages are sent between turns."""

    def output(self, team: Team, *, told: bool) -> Output:
        """What shows a run above the prompt; `told` is as for `choose_output`."""
        ...

    @property
    def held_back(self) -> Collection[int]:
        """The numbers of kept messages that no run may send yet."""
        ...

    @property
    def leaving(self) -> bool:
        """True if chat ends with the run."""
        ...

    def hint(self, commands: str) -> str:
        """Commands of the command line as a person types them here."""
        ...

    def while_working(self, stopper: Stopper) -> AbstractContextManager[None]:
        """Show the prompt, and let Ctrl-C reach the stopper."""
        ...

    def restore(self) -> None:
        """Leave the terminal as it was, before an exit that does nothing else. Any thread may call it."""
        ...


KEYBOARD: ContextVar[Keyboard | None] = ContextVar("KEYBOARD", default=None)
