"""The effects of an undo or a redo, in lines for a person and as fields of `--json`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from teamchat.cli.output.lines import called, plural
from teamchat.cli.output.patch import MARKS, counted
from teamchat.core.checkpoint.paths import readable
from teamchat.core.checkpoint.restore import KeptFile
from teamchat.core.conversation.undo.files import FilesPlan
from teamchat.core.conversation.undo.messages import UndoPlan
from teamchat.core.conversation.undo.proposal import RedoProposal, UndoProposal
from teamchat.core.engine.state import Route, RouteStatus
from teamchat.core.messages import name_of
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.runners.untrusted.json import one_line

LONGEST = 60  # characters of a message


def undo_lines(
    proposal: UndoProposal, place: Callable[[str], str], *, force: bool, again: str | None = None
) -> Iterator[str]:
    """List the undone turns, the ones that stay, and the calls on hold afterwards.

    `place` adds team and session to a command. `again` is for a retry: the name of the member that runs the undone
    turn, empty for the member that ran it.
    """
    plan = proposal.plan
    if plan.why_together:
        yield plan.why_together
    if proposal.scope != "files":
        for message in plan.messages:
            yield f"undoes {message.id} {name_of(message)}: {one_line(message.content, LONGEST)}"
        if plan.task_changes:
            yield f"restores the task: {one_line(plan.task or 'none', LONGEST)}"
    yield from _file_lines(proposal.files, "undoes", force=force)
    yield from merged_lines(proposal, place)
    if proposal.scope == "files":
        return
    for lesson in plan.lessons:
        yield f"keeps lesson {lesson.number}"
    if again is None:
        yield from (f"then on hold: {called(route)}" for route in on_hold(plan))
        return
    for route in on_hold(plan):
        if route in plan.again:
            yield f"runs again{f' with {again}' if again else ''}: {called(route)}"
        elif route.answer is None:
            yield f"stays on hold: {called(route)}"


def merged_lines(proposal: UndoProposal, place: Callable[[str], str]) -> Iterator[str]:
    """Say what stays in the user's files since it was merged, and which command removes or shows it."""
    for merge in proposal.merged:
        yield f"stays in your files, merged from {merge.member}'s worktree: {printable(', '.join(merge.paths))}"
        if merge.last:
            yield f"undo the merge: {place(f'teamchat merge --undo {quote(merge.member)}')}"
        else:
            shown = ", ".join(place(f"teamchat diff {turn}") for turn in merge.turns)
            yield f"it came by several merges, of which only the last can be undone: {shown}"


def on_hold(plan: UndoPlan) -> list[Route]:
    """List the calls that are on hold after the undo."""
    return [route for route in plan.queue if route.status is RouteStatus.HELD]


def redo_lines(proposal: RedoProposal, *, force: bool) -> Iterator[str]:
    undo = proposal.undo
    if undo.scope != "files":
        yield f"restores the conversation as it was before turn {undo.turn} was undone"
    yield from _file_lines(proposal.files, "redoes", force=force)


def _file_lines(files: FilesPlan, does: str, *, force: bool) -> Iterator[str]:
    several = len(files.trees) > 1
    for tree in files.trees:
        if tree.member:
            yield f"in {tree.member}'s worktree:"
        elif several:
            yield f"in {printable(tree.top)}:"
        for file in tree.files:
            yield f"{does} {counted(printable(file.path), file.added, file.removed, MARKS[file.what])}"
        if tree.left_out:
            yield f"not in checkpoints: {printable(', '.join(tree.left_out))}"
        if tree.plan.submodules:
            yield f"submodules stay as they are: {printable(', '.join(tree.plan.submodules))}"
    for path in files.conflicts:
        changed = printable(path)
        yield (
            f"overwrites {changed}, which somebody else changed since"
            if force
            else f"changed since, by somebody else: {changed}"
        )
    for line in files.not_undone:
        yield printable(line)


def kept_lines(kept: Sequence[KeptFile]) -> Iterator[str]:
    """Say where something is now that no checkpoint has, and which command brings it back."""
    for file in kept:
        path, place = printable(readable(file.path)), printable(readable(str(file.place)))
        yield f"kept: {path}, which no checkpoint has as it was, is at {place}"
        if file.command.isprintable():
            yield f"try: {file.command}"


def kept_fields(kept: Sequence[KeptFile]) -> list[dict[str, str]]:
    return [{"top": str(file.top), "path": readable(file.path), "place": readable(str(file.place))} for file in kept]


def undone(proposal: UndoProposal, *, force: bool) -> str:
    """Say what was done: `turn 2 is undone: 2 messages, 1 file; teamchat redo restores it`."""
    plan, parts = proposal.plan, []
    if proposal.scope != "files" and plan.messages:
        parts.append(plural(len(plan.messages), "message"))
    parts.extend(_counts(proposal.files, force=force))
    numbers = [turn.number for turn in plan.turns]
    between = "and" if len(numbers) == 2 else "to"
    which = f"turns {numbers[0]} {between} {numbers[-1]} are" if len(numbers) > 1 else f"turn {numbers[0]} is"
    return f"{which} undone{': ' if parts else ''}{', '.join(parts)}"


def redone(proposal: RedoProposal, *, force: bool) -> str:
    parts = ["the messages"] if proposal.undo.scope != "files" else []
    return (
        f"the undo of turn {proposal.undo.turn} is redone: {', '.join([*parts, *_counts(proposal.files, force=force)])}"
    )


def _counts(files: FilesPlan, *, force: bool) -> Iterator[str]:
    if files.files:
        yield plural(len(files.files), "file")
    if force and files.conflicts:
        yield f"{plural(len(files.conflicts), 'file')} of somebody else overwritten"


def undo_fields(proposal: UndoProposal) -> dict[str, object]:
    plan = proposal.plan
    return {
        "turn": plan.first,
        "scope": proposal.scope,
        "turns": [turn.number for turn in plan.turns],
        "checks": [check.label for check in plan.checks],
        "messages": [] if proposal.scope == "files" else [message.id for message in plan.messages],
        "on_hold": [] if proposal.scope == "files" else [route.target for route in on_hold(plan)],
        **file_fields(proposal.files),
        "merged": [
            {"member": merge.member, "paths": list(merge.paths), "last": merge.last} for merge in proposal.merged
        ],
    }


def file_fields(plan: FilesPlan) -> dict[str, object]:
    files = [
        {"top": tree.top, "path": file.path, "what": file.what, "added": file.added, "removed": file.removed}
        for tree in plan.trees
        for file in tree.files
    ]
    return {"files": files, "conflicts": list(plan.conflicts), "not_undone": list(plan.not_undone)}
