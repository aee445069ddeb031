"""How a run is shown, by the options of its command."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from teamchat.cli.shared.report import standard_output
from teamchat.cli.shared.typed import placed_here
from teamchat.core.errors import UsageError
from teamchat.core.team.team import Team

if TYPE_CHECKING:
    from teamchat.cli.output import Output


class OutputOptions(Struct, frozen=True):
    """How a run is shown, by the options of a command. Raises `UsageError` for options that exclude each other.

    `notify` is a shell command that is run at its end.
    """

    as_json: bool = False
    stream: bool = False
    quiet: bool = False
    notify: str | None = None

    def __post_init__(self) -> None:
        if self.stream and not self.as_json:
            raise UsageError("--stream needs --json; without both, a terminal shows text as it arrives")
        if self.quiet and self.as_json:
            raise UsageError("--json and --quiet exclude each other; the last line of --json has the last reply")

    @property
    def talks(self) -> bool:
        """True if a person reads the output as it comes."""
        return not (self.as_json or self.quiet)


def choose_output(
    team: Team, session: str, show: OutputOptions, *, receipts: bool = True, told: bool = False
) -> Output:
    """JSON or quiet output if requested, the terminal's if stdout is a terminal, else plain blocks.

    Without `receipts` a terminal names no command that shows a turn's receipt. `told`: a run before has said that
    denials are unknown.
    """
    if show.as_json:
        from teamchat.cli.output.jsonl import JsonOutput

        return JsonOutput(session, stream=show.stream)
    if show.quiet:
        from teamchat.cli.output.plain import QuietOutput

        return QuietOutput()
    if sys.stdout.isatty():
        return at_terminal(team, receipts=receipts, told=told)
    from teamchat.cli.output.lines import Once
    from teamchat.cli.output.plain import PlainOutput

    return PlainOutput(Once(told=told))


def terminal_width() -> int:
    """The columns of the terminal that is stdout."""
    from teamchat.cli.output.terminal.surface import TerminalSurface

    return TerminalSurface(standard_output(), moves=False).width


def at_terminal(team: Team, *, receipts: bool, told: bool = False) -> Output:
    """What a person sees at the terminal that is stdout."""
    from teamchat.cli.output.lines import Once
    from teamchat.cli.output.terminal.look import look_of
    from teamchat.cli.output.terminal.output import TerminalOutput
    from teamchat.cli.output.terminal.surface import TerminalSurface

    look = look_of(os.environ)
    sys.stdout.flush()
    return TerminalOutput(
        [member.name for member in team.members],
        TerminalSurface(standard_output(), moves=look.styles),
        look,
        people=frozenset(member.name for member in team.humans),
        receipt=(lambda number: placed_here(f"teamchat show {number}")) if receipts else None,
        says_unknown=Once(told=told),
    )
