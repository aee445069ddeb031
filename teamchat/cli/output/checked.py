"""What `teamchat test` says of each cassette, for a person and as JSON."""

from __future__ import annotations

from teamchat.cli.output.jsonl import write
from teamchat.cli.output.words import plural
from teamchat.cli.prompt_check import Checked
from teamchat.core.clean import visible
from teamchat.core.errors import ExitCode
from teamchat.core.printable import printable


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
        write(
            "cassette",
            file=str(checked.file),
            ok=checked.same,
            turns=checked.turns,
            changes=changes,
            problem=checked.problem,
            updated=checked.updated,
        )

    def finish(self) -> int:
        write("result", code=int(self.code), cassettes=self.cassettes, changed=self.changed)
        return self.code
