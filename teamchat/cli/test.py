from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import plural
from teamchat.cli.shared.options import JsonOption, TeamOption
from teamchat.cli.shared.prompt_check import Checked
from teamchat.core.errors import ExitCode
from teamchat.core.text.clean import printable, visible


class _Count:
    def __init__(self) -> None:
        self.cassettes = self.changed = 0

    def add(self, checked: Checked) -> None:
        self.cassettes += 1
        self.changed += not checked.same

    @property
    def code(self) -> int:
        return ExitCode.MEMBER_FAILED if self.changed else ExitCode.DONE


class CheckedText(_Count):
    def __call__(self, checked: Checked) -> None:
        self.add(checked)
        print(f"{printable(str(checked.file))}: {_word(checked)}")
        for (member, what, lines), turns in checked.changes.items():
            where = ", ".join(map(str, turns))
            print(f"  {member}, {what} of turn{'s' if len(turns) > 1 else ''} {where}")
            for line in lines:
                print(f"    {visible(line)}")

    def finish(self) -> int:
        print(f"{plural(self.cassettes, 'cassette')}, {self.changed} changed")
        return self.code


def _word(checked: Checked) -> str:
    if checked.problem:
        return f"cannot be played: {visible(checked.problem)}"
    if checked.updated:
        return f"updated ({plural(checked.turns, 'turn')})"
    return "changed" if checked.changes else f"as recorded ({plural(checked.turns, 'turn')})"


class CheckedJson(_Count):
    def __call__(self, checked: Checked) -> None:
        self.add(checked)
        changes = [
            {"member": member, "what": what, "turns": turns, "diff": list(lines)}
            for (member, what, lines), turns in checked.changes.items()
        ]
        write_line(
            "cassette",
            file=str(checked.file),
            ok=checked.same,
            turns=checked.turns,
            changes=changes,
            problem=checked.problem,
            updated=checked.updated,
        )

    def finish(self) -> int:
        write_line("result", code=int(self.code), cassettes=self.cassettes, changed=self.changed)
        return self.code


def test(
    where: Annotated[
        Path, typer.Argument(metavar="DIR", help="A cassette, or a folder that is searched for cassettes.")
    ],
    team: TeamOption = None,
    update: Annotated[bool, typer.Option("--update", help="Update the recordings to the current prompts.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Show how the prompts of recorded conversations have changed. Replies come from the recordings.

    Exits with 1 if a prompt has changed. With --team, the recordings are compared with that team.
    """
    from teamchat.cli.shared.prompt_check import cassettes_in, check
    from teamchat.cli.shared.workspace import find_team

    output = CheckedJson() if as_json else CheckedText()
    other = find_team(team) if team is not None else None
    for file in cassettes_in(where):
        output(check(file, other, update=update))
    return output.finish()
