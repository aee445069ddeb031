"""How a run is shown, by the options of its command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from teamchat.cli.output import Output
from teamchat.cli.startup.options import ShownOptions
from teamchat.cli.startup.report import standard_output
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import store_file
from teamchat.core.team.team import Team

if TYPE_CHECKING:
    from teamchat.cli.output.terminal.excerpt import Excerpts
    from teamchat.core.turn.lines import LineMaker


def choose_output(
    team: Team,
    session: str,
    show: ShownOptions,
    lines: LineMaker | None = None,
    *,
    receipts: bool = True,
    told: bool = False,
) -> Output:
    """Choose JSON or quiet output if requested, the terminal's if stdout is a terminal, else plain blocks.

    `lines` is that of `JsonOutput`. Without `receipts` a terminal names no command that shows a turn's receipt. `told`:
    an earlier run has named the unreported values.
    """
    if show.as_json:
        from teamchat.cli.output.jsonl import JsonOutput

        return JsonOutput(session, lines, stream=show.stream)
    if show.quiet:
        from teamchat.cli.output.plain import QuietOutput

        return QuietOutput()
    if sys.stdout.isatty():
        return at_terminal(team, receipts=receipts, told=told)
    from teamchat.cli.output.plain import PlainOutput
    from teamchat.cli.output.unreported import Unreported

    def receipt(name: int | str) -> str:
        return placed_here(f"teamchat show {name}")

    return PlainOutput(Unreported(told=told), receipt, receipt if receipts else None)


def terminal_width() -> int:
    """Return the columns of the terminal that is stdout."""
    from teamchat.cli.output.terminal.surface import TerminalSurface

    return TerminalSurface(standard_output(), moves=False).width


def wrap_width() -> int | None:
    """Return the width for which lines are broken into rows; None for a pipe and a dumb terminal."""
    from teamchat.cli.output.terminal.look import look_of

    return terminal_width() if sys.stdout.isatty() and look_of(os.environ).styles else None


def at_terminal(team: Team, *, receipts: bool, told: bool = False) -> Output:
    """Make the output for a person at the terminal that is stdout."""
    from teamchat.cli.output.terminal.look import look_of
    from teamchat.cli.output.terminal.output import TerminalOutput
    from teamchat.cli.output.terminal.surface import TerminalSurface
    from teamchat.cli.output.unreported import Unreported

    look = look_of(os.environ)
    sys.stdout.flush()
    return TerminalOutput(
        [member.name for member in team.members],
        TerminalSurface(standard_output(), moves=look.styles),
        look,
        people=frozenset(member.name for member in team.humans),
        receipt=(lambda number: placed_here(f"teamchat show {number}")) if receipts else None,
        unreported=Unreported(told=told),
        excerpts=excerpts_of(team, lambda number: placed_here(f"teamchat diff {number}")) if receipts else None,
    )


def excerpts_of(team: Team, command: Callable[[int], str]) -> Excerpts | None:
    """Make the excerpt of the lines that turns of the team changed; None where `TEAMCHAT_DIFFS` turns that off."""
    if os.environ.get("TEAMCHAT_DIFFS") == "0":
        return None
    from teamchat.cli.output.terminal.excerpt import Excerpts
    from teamchat.core.conversation.differences import patch_to_read

    return Excerpts(partial(patch_to_read, store_file(team.root).parent), command)
