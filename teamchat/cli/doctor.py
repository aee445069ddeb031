from __future__ import annotations

from typing import TYPE_CHECKING

from teamchat.cli.options import JsonOption, TeamOption

if TYPE_CHECKING:
    from teamchat.core.checks import Check

MARKS = {"ok": "✓", "note": "·", "warning": "!", "unknown": "?", "failed": "✗"}


def doctor(team: TeamOption = None, as_json: JsonOption = False) -> int:
    """Check what the team needs: programs, versions, logins, folders, the store. No model is called."""
    import dataclasses
    import os
    from pathlib import Path

    from teamchat.cli.output.jsonl import write
    from teamchat.core.checks import exit_code
    from teamchat.core.doctor import examine
    from teamchat.core.folders import config_dir
    from teamchat.runners.process import capture

    checks = list(examine(team, Path.cwd(), config_dir(), os.environ, capture))
    code = exit_code(checks)
    if as_json:
        for check in checks:
            write("check", **dataclasses.asdict(check))
        write("result", code=int(code), outcome=code.name.lower())
        return code
    width = max(len(check.member or "") for check in checks)
    for check in checks:
        print(line(check, width))
    return code


def line(check: Check, width: int) -> str:
    """A finding as a person reads it; `width` is that of the longest name."""
    from teamchat.core.printable import printable

    hint = f" (try: {check.hint})" if check.hint else ""
    return printable(f"{MARKS[check.state]} {check.member or '':<{width}} {check.what:<7} {check.text}{hint}")
