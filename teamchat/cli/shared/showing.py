"""How a run is shown, by the options of its command."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from teamchat.core.errors import UsageError
from teamchat.core.team.team import Team

if TYPE_CHECKING:
    from teamchat.cli.output import Output


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How a run is shown, by the options of a command. Raises `UsageError` for options that exclude each other."""

    as_json: bool = False
    stream: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.stream and not self.as_json:
            raise UsageError("--stream needs --json; without both, a terminal shows text as it arrives")
        if self.quiet and self.as_json:
            raise UsageError("--json and --quiet exclude each other; the last line of --json has the last reply")

    @property
    def talks(self) -> bool:
        """True if a person reads the output as it comes."""
        return not (self.as_json or self.quiet)


def choose_output(team: Team, session: str, show: OutputOptions) -> Output:
    """JSON or quiet output if requested, the terminal's if stdout is a terminal, else plain blocks."""
    if show.as_json:
        from teamchat.cli.output.jsonl import JsonOutput

        return JsonOutput(session, stream=show.stream)
    if show.quiet:
        from teamchat.cli.output.plain import QuietOutput

        return QuietOutput()
    if sys.stdout.isatty():
        from teamchat.cli.output.terminal import TerminalOutput

        return TerminalOutput(tuple(member.name for member in team.members))
    from teamchat.cli.output.plain import PlainOutput

    return PlainOutput()
