"""Asks a person before something is taken back or brought back."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from teamchat.cli.output.lines import confirmed, note
from teamchat.core.conversation.undo_files import FilesPlan
from teamchat.core.errors import UsageError


def may_do(
    lines: Iterable[str],
    files: FilesPlan,
    question: str,
    unasked: str | None,
    *,
    yes: bool,
    dry_run: bool = False,
    force: bool = False,
    as_json: bool = False,
) -> bool:
    """Show the lines, and ask; `unasked` is the command that does not.

    True also for what will be refused, because others changed files.
    Raises `UsageError` where there is nobody to ask.
    """
    refused = bool(files.conflicts) and not force
    asks = not (yes or dry_run or refused)
    if asks and (as_json or not (sys.stdin.isatty() and sys.stderr.isatty())):
        raise UsageError("nothing was done: there is no terminal to ask on", unasked)
    for line in () if as_json else lines:
        print(line, flush=True)
    if asks and not confirmed(question):
        note("nothing was done")
        return False
    return not dry_run
