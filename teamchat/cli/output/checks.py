"""The lines about a check that all outputs share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from teamchat.cli.output.lines import moment, plural
from teamchat.cli.output.patch import MARKS, counted
from teamchat.core.receipt import KILLED
from teamchat.core.store.checks import CheckRecord
from teamchat.core.text.clean import printable, visible
from teamchat.patterns import regex
from teamchat.runners.untrusted.file_changes import FileChanges
from teamchat.runners.untrusted.json import first_of

SIGNS = {"green": "✓", "red": "✗", "not_run": "!"}
MOST_NAMED = 5  # changed files and processes
LONGEST = 200  # characters of a command
_RETURNS = regex(r"\r+\n?")


def begins(check: CheckRecord) -> str:
    """Say that a check begins: `check tests runs: pytest -q (check-1)`."""
    return visible(f"{_named(check)} runs{_command(check)} ({check.label})")


def name_and_command(check: CheckRecord) -> tuple[str, str]:
    """Return the name and the command that stand in the line of a running check."""
    return visible("check" if _is_typed(check) else f"check {check.name}"), visible(_command(check).removeprefix(": "))


def check_line(check: CheckRecord, receipt: str = "", *, abandoned: bool = False) -> str:
    """Say how a check ended: `check tests: red, exit code 1 · 3.2 s · check-1`.

    One that is not green ends in the command `receipt`, if there is one. `abandoned`: teamchat was killed while it ran.
    """
    if check.result is None and not abandoned:
        return begins(check)
    shown = receipt if receipt and check.status != "green" else check.label
    return " · ".join((*line_parts(check), visible(shown)))


def line_parts(check: CheckRecord) -> tuple[str, ...]:
    """Return `check tests: red, exit code 1` and `3.2 s`; without a result, a line that teamchat was killed."""
    name, result = " ".join(check.name.split())[:LONGEST], check.result
    if result is None:
        return (visible(f"check {name} {KILLED}"),)
    why = f", {result.reason}" if result.reason else ""
    status = f"{check.status.replace('_', ' ')}{why}"
    return visible(f"check {name}: {status}"), f"{result.seconds:.1f} s"


def check_notes(check: CheckRecord) -> list[str]:
    """List what a check has left behind: changed files, and processes that teamchat ended."""
    notes = []
    if isinstance(check.changes, FileChanges) and check.changes.files:
        names = first_of([file.path for file in check.changes.files], MOST_NAMED, check.changes.more)
        notes.append(f"{check.label} changed {', '.join(names)} (or somebody else did)")
    if check.result and check.result.left:
        names = first_of(check.result.left, MOST_NAMED)
        notes.append(f"{check.label} left running, and teamchat ended: {', '.join(names)}")
    return [printable(note) for note in notes]


def in_lines(output: str) -> str:
    """Break the output of a check at each carriage return, with which a progress bar writes over itself."""
    return _RETURNS.sub("\n", output)


def receipt_lines(check: CheckRecord, *, abandoned: bool) -> Iterator[str]:
    """Write the receipt of a check for a person, without its output. `abandoned`: teamchat was killed while it ran."""
    undone = ", undone" if check.undone is not None else ""
    why = f", {check.result.reason}" if check.result and check.result.reason else ""
    name = "" if _is_typed(check) else f"{check.name} · "
    status = KILLED if abandoned else check.status.replace("_", " ")
    yield visible(f"{check.label} · {name}{status}{why}{undone}".replace("\n", " "))
    for label, value in _rows(check):
        yield f"  {label:<9} {visible(value)}"


def _rows(check: CheckRecord) -> Iterator[tuple[str, str]]:
    result = check.result
    how = "by hand" if check.route is None else "in a process"
    yield "why", f"{how}, " + (f"after turn {check.after}" if check.after else "before any turn")
    yield "started", moment(check.started_at)
    yield "ran", " ".join(check.shown_command.split())
    yield "in", str(check.cwd)
    if result is not None:
        yield "exit code", "none" if result.exit_code is None else str(result.exit_code)
        yield "took", f"{result.seconds:.1f} s"
        yield "wrote", f"{result.output_bytes:,} bytes"
        yield from (("protects", f"{printable(one.path)}, changed during {one.by}") for one in result.touched)
        yield from (("ended", process) for process in result.left)
    changes = check.changes
    if isinstance(changes, FileChanges):
        yield "trees", f"{changes.before}..{changes.after}"
        for file in changes.files:
            yield "changed", counted(printable(file.path), file.added, file.removed, MARKS[file.what])
        if changes.more:
            yield "changed", f"and {plural(changes.more, 'file')} more"
    elif changes is not None:
        yield "files", f"not known ({changes.reason})"


def check_receipt_fields(check: CheckRecord, output: bytes, *, abandoned: bool) -> dict[str, Any]:
    """Return a check as `show --json` has it."""
    from teamchat.core.turn.lines import check_fields  # only that needs the lines

    return {
        **check_fields(check),
        "started_at": check.started_at,
        "cwd": str(check.cwd),
        "abandoned": abandoned,
        "undone": check.undone is not None,
        "output": output.decode(errors="replace"),
    }


def _named(check: CheckRecord) -> str:
    return "check" if _is_typed(check) else f"check {check.name}"


def _command(check: CheckRecord) -> str:
    command = " ".join(check.shown_command.split())
    return f": {command if len(command) <= LONGEST else command[: LONGEST - 1] + '…'}"


def _is_typed(check: CheckRecord) -> bool:
    return check.command == check.name
