"""Shows what an undo or a redo changes, asks a person, and does it if the files are still as shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from teamchat.cli.output.lines import confirmed, note
from teamchat.cli.startup.typed import typed_with
from teamchat.core.checkpoint.restore import KeptFile
from teamchat.core.conversation.undo.files import refuse_conflicts
from teamchat.core.conversation.undo.proposal import RedoProposal, UndoProposal
from teamchat.core.errors import UsageError
from teamchat.core.text.clean import visible

P = TypeVar("P", UndoProposal, RedoProposal)


def confirmed_and_done(
    propose: Callable[[], P],
    show: Callable[[P], Iterable[str]],
    question: str,
    do: Callable[[P], tuple[KeptFile, ...]],
    *,
    yes: bool,
    dry_run: bool = False,
    force: bool = False,
    as_json: bool = False,
) -> tuple[P, tuple[KeptFile, ...] | None]:
    """Do the proposal after a yes to the question, or without one if `yes`; return it, and the kept files if done.

    `show` makes its lines, which `as_json` omits. Raises `UsageError` where there is nobody to ask or files changed
    meanwhile, and what `do` raises where others changed files.
    """
    proposal = propose()
    asks = not (yes or dry_run or (proposal.files.conflicts and not force))
    if asks:
        _need_terminal(typed_with("--yes"), as_json=as_json)
    for line in () if as_json else show(proposal):
        print(visible(line), flush=True)
    if asks and not confirmed(question):
        note("nothing was done")
        return proposal, None
    if dry_run:
        return proposal, None
    if asks and propose().files.now != proposal.files.now:
        raise UsageError("files changed while you were asked; nothing was done", typed_with())
    return proposal, do(proposal)


def agreed(lines: Iterable[str], question: str, *, yes: bool, dry_run: bool, as_json: bool) -> bool:
    """Return whether to do what the lines say: after a yes to the question, or without one if `yes`.

    Raises `UsageError` where there is nobody to ask.
    """
    asks = not (yes or dry_run)
    if asks:
        _need_terminal(typed_with("--yes"), as_json=as_json)
    for line in () if as_json else lines:
        print(visible(line), flush=True)
    if asks and not confirmed(question):
        note("nothing was done")
        return False
    return not dry_run


def check_dry_run(proposal: P, *, force: bool) -> None:
    """Raise `CheckpointFailed` where it would be refused, because others changed files."""
    refuse_conflicts(proposal.files, proposal.instead, force=force, what="this would be refused")


def _need_terminal(unasked: str | None, *, as_json: bool) -> None:
    """Raise `UsageError`, with the command that does not ask, where nobody can be asked."""
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("nothing was done: there is no terminal to ask on", unasked)
