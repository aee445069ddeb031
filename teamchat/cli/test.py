from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teamchat.cli.options import JsonOption, TeamOption


def test(
    where: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of cassettes (also below it), or one.")],
    team: TeamOption = None,
    update: Annotated[bool, typer.Option("--update", help="Accept the prompts as they are now.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Say how the prompts of recorded conversations have changed; the replies come from the recordings.

    Exits with 1 when one has. With --team the team as it is now is held against the recordings.
    """
    from teamchat.cli.output.checked import CheckedJson, CheckedText
    from teamchat.cli.place import find_team
    from teamchat.cli.prompt_check import cassettes_in, check

    output = CheckedJson() if as_json else CheckedText()
    other = find_team(team) if team is not None else None
    for file in cassettes_in(where):
        output(check(file, other, update=update))
    return output.finish()
