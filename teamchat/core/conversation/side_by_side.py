"""The worktrees of a group: who has one, and what their members have changed, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from teamchat.core.checkpoint.compare import changes, entries
from teamchat.core.checkpoint.merge import merge
from teamchat.core.checkpoint.paths import readable
from teamchat.core.conversation.grouping import colliding, set_apart, with_places
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Process
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.turns import Turn
from teamchat.core.text.commands import quote
from teamchat.core.turn.run import Apart, Run
from teamchat.core.turn.run_events import GroupCompared, SameLines, UnmergedChanges, Warned
from teamchat.core.worktrees import PlaceTurn, merging
from teamchat.core.worktrees.records import Opened, find, opened
from teamchat.core.worktrees.remove import merge_commands
from teamchat.runners.untrusted.file_changes import FileChange

_Compared = tuple[Opened, merging.Difference]


def apart_in(run: Run, routes: Sequence[Route]) -> Apart:
    """Find members of the group of `routes` that get worktrees, because of the others or because of the process.

    Those that have spoken already count, too: a member that is asked again works where it worked before. So do all
    members of a process that may take over what another one fails at. Blocks while git looks for them.
    """
    placed = Apart(places=with_places(run.team, routes, run.machine.in_work_tree))
    mates = [mate for route in routes if not placed.gives_place(route) for mate in (*run.state.mates(route), route)]
    together = [mate for mate in mates if not placed.gives_place(mate)]
    alone = set_apart(run.team, together)
    names = [mate.target for mate in together]
    process = run.state.process
    if process and any(route.part and route.group is not None for route in routes):
        names += [name for name in process.members if name not in placed.places]
    colliders = colliding(run.team, names) - alone
    own = {name for name in colliders if run.machine.in_work_tree(run.team.member(name).cwd)}
    return Apart(alone | own, placed.places)


def side_by_side(run: Run, routes: Sequence[Route]) -> GroupCompared | None:
    """Compare what members of a group have changed in their worktrees; None unless two of them changed something.

    Blocks while git compares.
    """
    there = {member.name: member for member in run.team.members}  # a member that left fails alone
    known = [(there[route.target], route) for route in routes if route.target in there and not _is_tried_anew(route)]
    names = [*dict.fromkeys(run.place_name(*one) or one[0].name for one in known if run.has_worktree(*one))]
    judged = any(route.part and route.part.apart for route in routes)
    try:
        differing = list(_differences(run, names)) if len(names) > 1 else []
        if len(differing) < 2:
            return None
        pairs = () if judged else combinations(differing, 2)
        same = tuple(clash for compared, other in pairs for clash in _same_lines(compared, other))
    except CheckpointFailed as failed:
        run.emit(Warned(f"what the group has changed cannot be compared: {failed}"))
        return None
    return GroupCompared(
        tuple(_told(compared) for compared in differing), same, judged, any(route.part for route in routes)
    )


def not_merged(run: Run, turn: Turn) -> str | None:
    """Say what to do with the changes in a turn's worktree; None where all is merged, or without a worktree.

    Blocks while git compares.
    """
    tree = find(run.trees.folder, run.session, turn.member) if run.machine.live else None
    if tree is None or not Path(turn.setup.cwd).is_relative_to(tree.folder):
        return None
    try:
        differing = list(_differences(run, [turn.member]))
    except CheckpointFailed as failed:
        return f"what {turn.member} has changed in its worktree cannot be compared: {failed}"
    if not differing:
        return None
    number = len(differing[0][1].changes)
    commands = f"teamchat worktrees, teamchat merge {quote(turn.member)}"
    return f"not merged: {number} file{'s' * (number > 1)} in {turn.member}'s worktree ({commands})"


def _is_tried_anew(route: Route) -> bool:
    """Whether each try of such a route has a worktree: there may be many, and the end of the run tells of them."""
    return route.part is not None and route.part.place and not route.part.apart


def to_merge(run: Run, process: Process, places: Mapping[str, PlaceTurn]) -> str | None:
    """Give the commands that bring in the changes of a process's members and `places`; None where all is merged.

    Blocks while git compares the worktrees of members.
    """
    names = dict.fromkeys((*process.members, *filter(None, (process.planner, process.reducer, process.lead))))
    try:
        unmerged = [there.tree.member for there, _ in _differences(run, list(names))]
    except CheckpointFailed as failed:
        return f"what the members have changed cannot be compared: {failed}"
    commands = ", ".join(merge_commands([*unmerged, *places], places))
    return f"to be merged: {commands}" if commands else None


def _differences(run: Run, names: Sequence[str]) -> Iterator[_Compared]:
    state = run.trees.folder
    for name in names:
        tree = find(state, run.session, name)
        there = opened(state, tree) if tree else "there is none"
        if isinstance(there, Opened) and (difference := merging.difference(state, there)).changes:
            yield there, difference


def _told(compared: _Compared) -> UnmergedChanges:
    there, difference = compared
    counted = ((change, difference.lines[change.path]) for change in difference.changes)
    files = (FileChange(readable(change.path), change.what, lines.added, lines.removed) for change, lines in counted)
    return UnmergedChanges(there.tree.member, there.tree.branch, str(there.tree.folder), tuple(files))


def _same_lines(one: _Compared, other: _Compared) -> Iterator[SameLines]:
    """Find the changes that neither of the two can bring in after the other."""
    (mine, left), (theirs, right) = one, other
    if mine.home != theirs.home:
        return
    known = entries(mine.home, mine.base)
    changed = {change.path for change in changes(theirs.home, theirs.base, right.tree)}
    for clash in merge(mine.home, mine.base, left.tree, right.tree).clashes:
        if clash.path in changed or clash.path not in known:
            yield SameLines(readable(clash.path), (mine.tree.member, theirs.tree.member), clash.why)
