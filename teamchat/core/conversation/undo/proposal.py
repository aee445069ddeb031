"""Undo and redo of conversation and files together: planned, shown to a person, then done.

An undo, like a redo, has its row before it touches a file, and every step of it can be done again: a killed one is
completed by running it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint.compare import changes
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.refs import git_command
from teamchat.core.checkpoint.restore import FilesChanged, KeptFile, kept_commands
from teamchat.core.checkpoint.values import NoRepository
from teamchat.core.conversation.undo.files import FilesPlan, plan_redo_of_files, plan_undo_of_files, refuse_conflicts
from teamchat.core.conversation.undo.merged import MergedChanges, merged_since
from teamchat.core.conversation.undo.messages import (
    UndoPlan,
    check_not_called,
    plan_undo,
    redo_conversation,
    start_undo,
    undo_conversation,
    undo_to_redo,
)
from teamchat.core.errors import CheckpointFailed, UsageError
from teamchat.core.store.sessions import Session, name_of
from teamchat.core.store.undos import (
    Scope,
    Undo,
    cancel_undo,
    check_no_unfinished_redo,
    last_undo,
    mark_undo,
    next_undo,
    unfinished_undo,
)
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of, quote
from teamchat.core.turn.run import Run, rules_of
from teamchat.core.turn.run_events import Warned
from teamchat.core.turn.run_file import tell_watchers

MOST_PATHS = 20  # paths in a command that brings files back


class UndoProposal(Struct, frozen=True):
    """The effects of an undo, and the commands to run `instead` where others changed files.

    `begun` is the undo that it completes, `merged` what stays in the user's files.
    """

    number: int
    scope: Scope
    plan: UndoPlan
    files: FilesPlan
    begun: Undo | None
    instead: tuple[str, ...]
    merged: tuple[MergedChanges, ...]


class RedoProposal(Struct, frozen=True):
    """The effects of a redo, as in `UndoProposal`."""

    undo: Undo
    files: FilesPlan
    instead: tuple[str, ...] = ("teamchat redo --force",)


def propose_undo(run: Run, session: Session, turn: int | None, scope: Scope | None) -> UndoProposal:
    """Plan an undo from that turn on, by default of the last one; `scope` is both by default.

    An interrupted undo is completed, with the scope that it had unless another one is given. Raises `UnknownName`,
    `UsageError`, and `CheckpointFailed` where the files cannot be looked at.
    """
    check_no_unfinished_redo(run.db, session.id)
    begun = unfinished_undo(run.db, session.id)
    plan = plan_undo(run.db, session, rules_of(run.team), begun.turn if begun and turn is None else turn)
    if begun and plan.first != begun.turn:
        raise UsageError(f"the undo of turn {begun.turn} was interrupted", f"teamchat undo {begun.turn}")
    number = begun.number if begun else next_undo(run.db, session.id)
    wanted: Scope = scope or (begun.scope if begun else "both")
    files, merged = FilesPlan(), tuple[MergedChanges, ...]()
    if wanted != "conversation":
        merged = tuple(merged_since(run.trees.folder, run.session, plan.turns))
        name = f"undo-{number}/{'again' if begun else 'before'}"
        files = plan_undo_of_files(run.trees, plan.turns, name, plan.checks)
    if wanted == "files" and not (files.trees or begun):
        why = printable("; ".join(files.not_undone)) or f"none changed in turn {plan.first} or later"
        raise UsageError(f"no file was undone: {why}", f"teamchat undo {plan.first} --conversation")
    return UndoProposal(number, wanted, plan, files, begun, tuple(_instead(plan.first, wanted)), merged)


def _instead(first: int, scope: Scope) -> Iterator[str]:
    if scope == "files":
        yield f"teamchat undo {first} --files --force"
    else:
        yield from (f"teamchat undo {first} --force", f"teamchat undo {first} --conversation")


def propose_retry(run: Run, session: Session, by: str | None) -> UndoProposal:
    """Plan the undo of the last turn before it runs again, `by` another member if one is named.

    Raises as `propose_undo` does, and `UsageError` where the last turn is undone already or cannot run again that way.
    """
    check_no_unfinished_redo(run.db, session.id)
    again = f" --with {quote(by)}" if by else ""
    if undone := _just_undone(run, session):
        redo = f"teamchat redo --yes && teamchat retry{again}" if by else "teamchat redo"
        raise UsageError(f"turn {undone.turn} is undone already, and its call is on hold", f"teamchat resume\n{redo}")
    proposal = propose_undo(run, session, None, None)
    if proposal.scope == "files":
        raise UsageError(
            f"the undo of turn {proposal.plan.first} was interrupted", f"teamchat undo {proposal.plan.first}"
        )
    runs = proposal.plan.again
    if not runs:
        raise UsageError(f"turn {proposal.plan.first} cannot run again: its call is no longer queued", "teamchat undo")
    if by:
        if len(runs) > 1:
            why = proposal.plan.why_together or f"{len(runs)} turns would run again"
            raise UsageError(f"{why}: --with would replace one member of them only", "teamchat retry")
        check_not_called(proposal.plan.queue, runs[0], run.team.member(by).name)
    return replace(proposal, instead=(f"teamchat retry --force{again}",))


def _just_undone(run: Run, session: Session) -> Undo | None:
    """Return the undo of a conversation in which nothing happened since, if the undone calls are on hold."""
    try:
        undo = undo_to_redo(run.db, session)
    except UsageError:
        return None
    return undo if undo.scope != "files" and run.state.held else None


def carry_out_undo(run: Run, proposal: UndoProposal, *, force: bool) -> tuple[KeptFile, ...]:
    """Carry out an undo. Returns the files that were kept because no checkpoint has them.

    Raises `CheckpointFailed` with nothing done where others changed files, unless `force` replaces them.
    """
    files, scope, plan = proposal.files, proposal.scope, proposal.plan
    refuse_conflicts(files, proposal.instead, force=force)
    before: dict[str, tuple[str | None, str | None]] = {tree.top: (tree.now, None) for tree in files.trees}
    undo = proposal.begun or start_undo(run, plan, scope, before)
    try:
        kept_files = files.apply(run.trees, force=force)
    except FilesChanged as changed:
        if proposal.begun is None:
            cancel_undo(run.db, undo)
        raise _refused(changed, proposal.instead) from None
    after = files.take(run.trees, f"undo-{proposal.number}/after", force=force)
    done = {top: (undo.trees.get(top, (tree, None))[0], tree) for top, tree in after.items()}
    with run.transaction():
        undo = mark_undo(run.db, undo, "done" if scope == "files" else "files", {**undo.trees, **done})
    if scope != "files":
        undo_conversation(run, plan, undo)
    alone = ", their files alone" if scope == "files" else ""
    _tell(run, f"turn {undo.turn} and all later ones were undone{alone}: teamchat log --all")
    return kept_files


def _tell(run: Run, text: str) -> None:
    tell_watchers(run.db.path.parent, run.session, name_of(run.db, run.session), Warned(text))


def _refused(changed: FilesChanged, instead: Iterable[str]) -> CheckpointFailed:
    commands = kept_commands(changed.kept)
    return CheckpointFailed(str(changed), "\n".join([*([commands] if commands else []), *instead]))


def propose_redo(run: Run, session: Session) -> RedoProposal:
    """Plan a redo of the newest undo. Raises `UsageError` if there is no undo, or if it has to stay."""
    if begun := unfinished_undo(run.db, session.id):
        raise UsageError(f"the undo of turn {begun.turn} was interrupted", f"teamchat undo {begun.turn}")
    try:
        undo = undo_to_redo(run.db, session)
    except UsageError as refused:
        last = last_undo(run.db, session.id)
        if last and (commands := list(_by_git(run, last))):
            raise UsageError(
                f"{refused}; a checkpoint has its files, and this brings them back", "\n".join(commands)
            ) from None
        raise
    return RedoProposal(undo, plan_redo_of_files(run.trees, undo, f"undo-{undo.number}/redo"))


def _by_git(run: Run, undo: Undo) -> Sequence[str]:
    """Give the commands that restore the files of an undo, one for each work tree with checkpoints in git."""
    commands = []
    for number, (top, (before, after)) in enumerate(undo.trees.items()):
        repository = find_repository(Path(top), run.trees.folder)
        if isinstance(repository, NoRepository) or before is None or after is None:
            continue
        try:
            differ = changes(repository, before, after)
        except CheckpointFailed:
            continue
        paths = [change.path for change in differ if change.old is not None]
        few = len(paths) <= MOST_PATHS and all(path.isprintable() for path in paths)
        ref = f"{run.trees.refs}/undo-{undo.number}/before{f'-{number}' if number else ''}"
        if paths:
            named = [f":(top,literal){path}" for path in paths] if few else [":/"]
            commands.append(
                command_of(*git_command(repository), "restore", "--overlay", f"--source={ref}", "--", *named)
            )
    return commands


def carry_out_redo(run: Run, proposal: RedoProposal, *, force: bool) -> tuple[KeptFile, ...]:
    """Carry out a redo. Returns and raises `CheckpointFailed` as `carry_out_undo` does."""
    undo, files = proposal.undo, proposal.files
    refuse_conflicts(files, proposal.instead, force=force)
    with run.transaction():
        begun = mark_undo(run.db, undo, "redoing")
    try:
        kept_files = files.apply(run.trees, force=force)
    except FilesChanged as changed:
        with run.transaction():
            mark_undo(run.db, begun, undo.status)
        raise _refused(changed, proposal.instead) from None
    if undo.scope != "files":
        redo_conversation(run, begun)
    else:
        with run.transaction():
            mark_undo(run.db, begun, "redone")
    _tell(run, f"the undo of turn {undo.turn} was reverted")
    return kept_files
