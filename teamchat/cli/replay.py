from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teamchat.cli.running.playback import play
from teamchat.cli.startup.options import ShownOptions, SpeedOption, TeamOption
from teamchat.cli.startup.workspace import find_team
from teamchat.core.cassette.format import read_cassette


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cassette.")],
    team: TeamOption = None,
    speed: SpeedOption = 1.0,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare everything stored and printed with the recording.")
    ] = False,
    *,
    shown: ShownOptions,
) -> int:
    """Play a recorded conversation in a temporary store, without running any agent.

    A turn that was not recorded exits with 10 and shows the difference to the nearest recorded prompt.
    """
    cassette = read_cassette(file)
    other = find_team(team) if team is not None else None
    return play(cassette, shown, speed=speed, team=other, verify=verify)
