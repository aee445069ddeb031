from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import note, plural
from teamchat.cli.running.converse import held
from teamchat.cli.startup.complete import members
from teamchat.cli.startup.options import JsonOption, PlaceOptions, spread
from teamchat.cli.startup.workspace import find_root, need_person, open_store
from teamchat.core.checkpoint.paths import readable
from teamchat.core.conversation.recovery import refuse_on_hosts
from teamchat.core.errors import UsageError
from teamchat.core.store.sessions import need_session
from teamchat.core.store.turns import turns_in_places
from teamchat.core.text.clean import printable
from teamchat.core.worktrees import PlaceTurn
from teamchat.core.worktrees import remove as removing
from teamchat.core.worktrees.make import need_worktree
from teamchat.core.worktrees.merging import difference
from teamchat.core.worktrees.records import Worktree, all_of, opened
from teamchat.core.worktrees.remove import OnlyThere, Removed, only_there


def remove(
    member: Annotated[
        str | None,
        typer.Argument(metavar="MEMBER", autocompletion=members, help="The member whose worktree to remove."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove the worktrees of all members.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Move what only the worktree has elsewhere.")] = False,
    *,
    place: PlaceOptions,
) -> None:
    """Remove a member's worktree. One that has what nothing else has stays, unless you say --force."""
    if (member is None) != everything:
        raise UsageError("name a member, or say --all", "teamchat worktrees")
    need_person("worktrees are removed")
    root = find_root(place.team)
    with open_store(root) as db:
        chosen, state = need_session(db, place.session), db.path.parent
        with held(root, db, chosen, wait=False):
            refuse_on_hosts(db, chosen.id)
            named = [need_worktree(state, chosen.id, chosen.name, member)] if member else all_of(state, chosen.id)
            if not force:
                removing.need_merged(state, named, turns_in_places(db, chosen.id))
            if not named:
                note(f"no member has a worktree in session {chosen.name}")
            for tree in named:
                gone = removing.remove(state, tree)
                note(f"the worktree of {tree.member} is removed")
                for line in removed_lines(gone):
                    note(line)
                removing.told(gone)


def removed_lines(gone: Removed) -> Iterator[str]:
    """Say what stays of a worktree."""
    if gone.commits:
        yield f"its branch {gone.tree.branch} stays: it has {plural(gone.commits, 'commit')} of its own"
    if gone.detached:
        yield f"its commits that were on no branch are on {gone.detached} now"
    if gone.kept:
        yield printable(f"kept: what only that worktree had is at {gone.kept}")


worktrees = typer.Typer(invoke_without_command=True)
worktrees.command()(spread(remove))


@worktrees.callback()
@spread
def list_worktrees(ctx: typer.Context, place: PlaceOptions, as_json: JsonOption = False) -> None:
    """List the members' own git worktrees, or remove one. What is not merged of each is there, too."""
    if ctx.invoked_subcommand:
        source = ctx.get_parameter_source("session")  # TEAMCHAT_SESSION is for both
        if place.team or as_json or (source and source.name == "COMMANDLINE"):
            raise UsageError("options go behind the command", f"teamchat worktrees {ctx.invoked_subcommand} --help")
        return
    with open_store(find_root(place.team)) as db:
        state = db.path.parent
        known = all_of(state, need_session(db, place.session).id if place.session else None)
        if not (known or as_json):
            note("no member has a worktree here")
        turns = {session: turns_in_places(db, session) for session in {tree.session for tree in known}}
        for tree in known:
            row = describe(state, tree, turns[tree.session].get(tree.member))
            if as_json:
                write_line("worktree", **row)
                continue
            for line in lines(row):
                print(printable(line))


def describe(state: Path, tree: Worktree, turn: PlaceTurn | None) -> dict[str, Any]:
    """Describe a worktree for `--json`; `problem` says why it cannot be compared. `turn` is that of a place."""
    row: dict[str, Any] = {
        "member": tree.member,
        "session": tree.session_name,
        "branch": tree.branch,
        "folder": str(tree.folder),
        "of": str(tree.top),
        "turn": turn and turn.number,
        "unfit": turn and turn.unfit,
    }
    there = opened(state, tree)
    if isinstance(there, str):
        nothing = {"added": None, "removed": None, "files": None, "only_there": None, "detached_commits": None}
        return row | {"problem": there, "base": None, **nothing}
    diff = difference(state, there)
    files = [
        {
            "path": readable(change.path),
            "what": change.what,
            "added": diff.lines[change.path].added,
            "removed": diff.lines[change.path].removed,
        }
        for change in diff.changes
    ]
    counted: dict[str, Any] = {"added": diff.added, "removed": diff.removed}
    alone = only_there(state, there)
    counted |= {"only_there": list(alone.files), "detached_commits": alone.commits}
    return row | {"problem": None, "base": there.base, **counted, "files": files}


def lines(row: dict[str, Any]) -> list[str]:
    """Describe a worktree in a few lines for a person."""
    if row["problem"]:
        return [f"{row['member']}  {row['session']}  {row['branch']}  {row['problem']}", f"  in {row['folder']}"]
    alone = OnlyThere(tuple(row["only_there"]), row["detached_commits"]).told
    merged = "what only it has is not merged" if alone else "all is merged"
    what = f"{plural(len(row['files']), 'file')}, +{row['added']} −{row['removed']}" if row["files"] else merged
    what = f"{what}, not to be merged: it {row['unfit']}" if row["unfit"] and row["files"] else what
    return [
        f"{row['member']}  {row['session']}  {row['branch']}  {what}",
        f"  in {row['folder']}",
        *(f"  {file_line(file)}" for file in row["files"]),
        *([f"  only there: {alone}"] if alone else []),
    ]


def file_line(file: dict[str, Any]) -> str:
    """Write `changed  app.py  +3 −1`; a file that is not text has no numbers."""
    count = "" if file["added"] is None else f"  +{file['added']} −{file['removed']}"
    return f"{file['what']:<8} {file['path']}{count}"
