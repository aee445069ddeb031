"""Running the members of a group: at the same time, except members that may write in the same folder.

These get worktrees of their own, unless the team file says `shared` of them or they work outside of git. In a process a
member may have several turns of a group. They run one after the other, unless each has a place of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

from teamchat.core.engine.state import Route
from teamchat.core.team.team import Member, Team
from teamchat.core.turn.run import NOBODY, Apart
from teamchat.core.turn.run_events import ConversationEvent, Warned


async def run_together(
    lines: Sequence[Sequence[Route]],
    speak: Callable[[Route], Awaitable[bool]],
    emit: Callable[[ConversationEvent], None],
    may_begin: Callable[[Route], bool],
    jobs: int | None = None,
) -> tuple[int, ...]:
    """Let all routes of the `lines` speak, at most `jobs` at the same time. Returns the numbers of the failed ones.

    A failed turn does not stop the others. A route that had to wait for another speaks only if `may_begin` is
    true; else it has neither spoken nor failed. An error of `speak` cancels all others and is raised.
    """
    for line in lines:
        if len(names := [*dict.fromkeys(route.target for route in line)]) > 1:
            together = f"{', '.join(names[:-1])} and {names[-1]}"
            emit(Warned(f"{together} may write in the same folder, so they speak one after the other"))
    places = asyncio.Semaphore(jobs or max(len(lines), 1))

    async def in_turn(line: Sequence[Route]) -> list[int]:
        return [route.number for route in line if not await spoken(route, waits=route is not line[0])]

    async def spoken(route: Route, *, waits: bool) -> bool:
        """Return whether the turn of the route has not failed; one that may not begin has not."""
        waits = waits or places.locked()
        async with places:
            return (waits and not may_begin(route)) or await speak(route)

    tasks = [asyncio.create_task(in_turn(line)) for line in lines]
    try:
        return tuple(number for failed in await asyncio.gather(*tasks) for number in failed)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # no turn runs on after an error


def colliding(team: Team, names: Iterable[str]) -> frozenset[str]:
    """Find members that need worktrees to speak at the same time and have no workspace in the team file."""
    writers = {name: [(member, _place(member)) for member in _writers(team, name)] for name in dict.fromkeys(names)}

    def meets(name: str, place: Path) -> bool:
        return any(_touch(place, theirs) for other in writers if other != name for _, theirs in writers[other])

    return frozenset(
        member.name
        for name, places in writers.items()
        for member, place in places
        if member.workspace is None and meets(name, place)
    )


def set_apart(team: Team, routes: Iterable[Route]) -> frozenset[str]:
    """Find members that get worktrees from a process, whoever else works there and whatever the team file says."""
    names = (route.target for route in routes if _is_apart(route))
    return frozenset(member.name for name in names for member in _writers(team, name, alone=True))


def _is_apart(route: Route) -> bool:
    return route.part is not None and route.part.apart


def with_places(team: Team, routes: Iterable[Route], in_work_tree: Callable[[Path], bool]) -> frozenset[str]:
    """Find members whose parts may each have a place of their own, as far as the parts of the `routes` allow that.

    A member that may write gets a worktree for each, unless the team file says `shared`; so does each of its fallbacks.
    """
    targets = {route.target: _is_apart(route) for route in routes if route.part and route.part.place}
    return frozenset(
        name
        for name, alone in targets.items()
        if all(
            member.workspace != "shared" and in_work_tree(member.cwd) for member in _writers(team, name, alone=alone)
        )
    )


def in_lines(team: Team, routes: Iterable[Route], apart: Apart = NOBODY) -> list[list[Route]]:
    """Sort the routes into lines that may run side by side. A line's routes share a member or may share a folder."""
    lines: list[list[Route]] = []
    places: dict[str, list[Path]] = {}
    alone = []
    for route in routes:
        if apart.gives_place(route):
            alone.append([route])
            continue
        if route.target not in places:
            writers = _writers(team, route.target, alone=_is_apart(route))
            places[route.target] = [_place(member, apart.worktrees) for member in writers]
        touching = [line for line in lines if any(_collide(route.target, other.target, places) for other in line)]
        for line in touching:
            lines.remove(line)
        lines.append(sorted((*(other for line in touching for other in line), route), key=lambda one: one.number))
    return sorted([*lines, *alone], key=lambda line: line[0].number)


def _collide(one: str, other: str, places: Mapping[str, Sequence[Path]]) -> bool:
    return one == other or any(_touch(mine, theirs) for mine in places[one] for theirs in places[other])


def _touch(mine: Path, theirs: Path) -> bool:
    return mine.is_relative_to(theirs) or theirs.is_relative_to(mine)


def _writers(team: Team, name: str, *, alone: bool = False) -> list[Member]:
    """List the member and, unless `alone`, its fallbacks, as far as they may write; nobody if it has left the team."""
    targets = [member for member in team.members if member.name == name]
    fallbacks = () if alone else (other for target in targets for other in target.fallback)
    everybody = [*targets, *map(team.member, fallbacks)]
    return [member for member in everybody if member.access != "read"]


def _place(member: Member, apart: frozenset[str] = frozenset()) -> Path:
    """Return where a member writes: in its folder, or in a worktree of its own."""
    if member.workspace == "worktree" or member.name in apart:
        return Path(f"the worktree of {member.name}")
    return Path(os.path.realpath(member.cwd))
