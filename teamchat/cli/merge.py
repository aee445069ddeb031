from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import note, plural
from teamchat.cli.output.undoing import kept_fields, kept_lines
from teamchat.cli.running.converse import held
from teamchat.cli.startup.complete import members
from teamchat.cli.startup.options import JsonOption, NoWaitOption, PlaceOptions
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import find_root, need_person, open_store
from teamchat.cli.worktrees import describe, lines
from teamchat.core.checkpoint.paths import readable
from teamchat.core.errors import UsageError
from teamchat.core.store.sessions import need_session
from teamchat.core.store.turns import turns_in_places
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.core.turn.files_that_run import files_that_run
from teamchat.core.worktrees import PlaceTurn, first_try
from teamchat.core.worktrees.make import need_worktree, usable
from teamchat.core.worktrees.merging import Merge, difference, merge_into, since_merge, undo_merge
from teamchat.core.worktrees.records import Opened, all_of, opened
from teamchat.core.worktrees.remove import merge_commands, submodules


def merge(
    member: Annotated[
        str | None,
        typer.Argument(
            metavar="MEMBER",
            autocompletion=members,
            help="The member whose changes to bring in (default: list who has something to merge).",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Bring in all that is to be merged, and leave what conflicts.")
    ] = False,
    ours: Annotated[bool, typer.Option("--ours", help="Keep your lines where both changed the same.")] = False,
    theirs: Annotated[
        bool, typer.Option("--theirs", help="Take the member's lines where both changed the same.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Put your files back as before the last merge.")] = False,
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
    no_wait: NoWaitOption = False,
) -> int:
    """Merge a member's worktree into your files, all or nothing.

    A member that does several parts of a process at the same time has a worktree for each: sarah#3.
    """
    if ours + theirs + undo > 1:
        raise UsageError("--ours, --theirs and --undo exclude each other")
    if everything and (member or ours or theirs or undo):
        raise UsageError("--all takes neither a member nor another option", "teamchat merge --all")
    if everything:
        return _merge_all(place, as_json=as_json, wait=not no_wait)
    if member is None:
        if ours or theirs or undo:
            raise UsageError("--ours, --theirs and --undo need a member", "teamchat merge")
        return _list(place, as_json=as_json)
    need_person("changes are merged")
    root = find_root(place.team)
    with open_store(root) as db:
        chosen, state = need_session(db, place.session), db.path.parent
        need_worktree(state, chosen.id, chosen.name, member)
        with held(root, db, chosen, wait=not no_wait):
            there = usable(state, need_worktree(state, chosen.id, chosen.name, member))
            if undo:
                made = undo_merge(state, there)
                if made is None:
                    raise UsageError(f"nothing of {there.tree.member} was merged that could be undone")
            else:
                _refuse_unfit(there.tree.member, turns_in_places(db, chosen.id).get(there.tree.member))
                made = merge_into(state, there, "ours" if ours else "theirs" if theirs else None)
    return _tell(state, there, made, undo=undo, as_json=as_json)


def _refuse_unfit(name: str, turn: PlaceTurn | None) -> None:
    """Raise `UsageError` for a place whose turn was undone, or has not done its part."""
    if turn is None or turn.unfit is None:
        return
    problem, place = f"{name} {turn.unfit}, so what it changed is not merged", quote(name)
    if turn.undone:
        raise UsageError(problem, f"teamchat merge --undo {place}")
    raise UsageError(problem, f"teamchat diff {turn.number}\nteamchat worktrees remove --force {place}")


def _merge_all(place: PlaceOptions, *, as_json: bool, wait: bool) -> int:
    """Merge one worktree after the other: first members' worktrees, then the places in the order of the plan."""
    need_person("changes are merged")
    root = find_root(place.team)
    merged, left = 0, 0
    with open_store(root) as db:
        chosen, state = need_session(db, place.session), db.path.parent
        with held(root, db, chosen, wait=wait):
            turns = turns_in_places(db, chosen.id)
            trees = all_of(state, chosen.id)
            trees.sort(key=lambda tree: turns[tree.member].route if tree.member in turns else 0)
            done = {first_try(name) for name, turn in turns.items() if turn.unfit is None}
            for tree in trees:
                there, turn = opened(state, tree), turns.get(tree.member)
                if turn and (turn.judged or (turn.unfit and (turn.undone or first_try(tree.member) in done))):
                    continue  # a person merges the best; what another try has done is merged with that one
                if isinstance(there, str):
                    note(printable(f"{tree.member}'s worktree cannot be merged: {there}"))
                    left += 1
                elif turn and turn.unfit:
                    left += _tell_unfit(state, there, turn)
                elif (made := merge_into(state, there)).changes or not made.done:
                    _tell(state, there, made, undo=False, as_json=as_json)
                    merged, left = merged + made.done, left + (not made.done)
    if not (as_json or merged or left):
        note(f"nothing is to be merged in session {chosen.name}")
    elif not as_json:
        note(f"{plural(merged, 'worktree')} merged{f', {left} not' if left else ''}")
    return 1 if left else 0


def _tell_unfit(state: Path, there: Opened, turn: PlaceTurn) -> bool:
    """Say that the changes of a part that was not done are not merged. False where there are none."""
    if not difference(state, there).changes:
        return False
    note(f"{there.tree.member} {turn.unfit}, so what it changed is not merged")
    for command in (f"teamchat diff {turn.number}", f"teamchat worktrees remove --force {quote(there.tree.member)}"):
        note(f"try: {printable(placed_here(command))}")
    return True


def _list(place: PlaceOptions, *, as_json: bool) -> int:
    """List the members with something to merge, and the commands."""
    with open_store(find_root(place.team)) as db:
        chosen, state = need_session(db, place.session), db.path.parent
        turns = turns_in_places(db, chosen.id)
        described = (describe(state, tree, turns.get(tree.member)) for tree in all_of(state, chosen.id))
        rows = [row for row in described if row["files"] or row["problem"]]
    for row in rows:
        if as_json:
            write_line("worktree", **row)
            continue
        for line in lines(row):
            print(printable(line))
    if not as_json:
        for command in merge_commands([row["member"] for row in rows if not row["problem"]], turns):
            note(f"try: {printable(placed_here(command))}")
        if not rows:
            note(f"nothing is to be merged in session {chosen.name}")
    return 0


def _tell(state: Path, there: Opened, made: Merge, *, undo: bool, as_json: bool) -> int:
    member, left = there.tree.member, [readable(path) for path in submodules(state, there)]
    files = [{"path": readable(change.path), "what": change.what} for change in made.changes]
    clashes = [{"path": readable(clash.path), "why": clash.why} for clash in made.clashes]
    run = [
        readable(path) for path in files_that_run(change.path for change in made.changes if change.what != "deleted")
    ]
    if as_json:
        fields = {"files_that_run": run, "conflicts": clashes, "kept": kept_fields(made.kept), "submodules": left}
        write_line("merge", member=member, done=made.done, undone=undo, files=files, **fields)
    else:
        for file in files:
            print(printable(f"{file['what']:<8} {file['path']}"))
        if run and made.done and not undo:
            note(f"files that run things: {printable(', '.join(run))}")
        for clash in clashes:
            note(printable(f"conflict: {clash['path']} ({clash['why']})"))
        for line in kept_lines(made.kept):
            note(line)
    if made.done:
        if not as_json:
            what = "put back as before the merge of" if undo else "merged from"
            new = files or left
            note(f"{plural(len(files), 'file')} {what} {member}" if new else f"there is nothing new of {member}")
            if left:
                note(printable(f"submodules are not merged: {', '.join(left)}, in {there.tree.folder}"))
        return 0
    if not as_json:
        note("nothing was changed" if undo else "nothing was changed, and both versions are kept")
        for command in _next(state, there, made, undo=undo):
            note(f"try: {printable(placed_here(command))}")
    return 1


def _next(state: Path, there: Opened, made: Merge, *, undo: bool) -> list[str]:
    """List the commands after a conflict; for an undo they show and drop the changes since the merge."""
    member = quote(there.tree.member)
    if not undo:
        return [f"teamchat merge --theirs {member}", f"teamchat merge --ours {member}"]
    shown, restore = since_merge(state, there, made.clashes)
    return [*shown, *([f"{restore} && teamchat merge --undo {member}"] if restore else [])]
