"""The prompt for a person to type at while members work, as a run needs it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Protocol

from teamchat.cli.output import Output
from teamchat.core.team.team import Team
from teamchat.core.turn.run import Hand
from teamchat.runners.child.supervisor import Stopper


class Keyboard(Protocol):
    """A person types at it while members work. Their messages are sent between turns."""

    def output(self, team: Team, *, told: bool) -> Output:
        """Make what shows a run above the prompt; `told` is as for `choose_output`."""
        ...

    @property
    def hand(self) -> Hand:
        """The person's action at the prompt."""
        ...

    @property
    def leaving(self) -> bool:
        """True if chat ends with the run."""
        ...

    def hint(self, commands: str) -> str:
        """Write commands of the command line as a person types them here."""
        ...

    def while_working(self, stopper: Stopper) -> AbstractContextManager[None]:
        """Show the prompt, and let Ctrl-C reach the stopper."""
        ...

    def restore(self) -> None:
        """Leave the terminal as it was, before an exit that does nothing else. Any thread may call it."""
        ...


KEYBOARD: ContextVar[Keyboard | None] = ContextVar("KEYBOARD", default=None)
